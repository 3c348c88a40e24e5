/** Kubernetes' MicroTime accepts exactly six digits after the second; our times have three. */
export function microTime(time: string): string {
  return time.replace(/\.(\d{3})Z$/, '.$1000Z');
}
