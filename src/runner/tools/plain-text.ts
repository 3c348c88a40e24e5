/** Words of results that are plain text. */

/** `1 line`, `2 lines`. */
export function count(amount: number, thing: string): string {
  return `${amount} ${thing}${amount === 1 ? '' : 's'}`;
}

/** A name of a file in one line: one with a line end or another control character is written as JSON. */
export function printable(name: string): string {
  return /\p{Cc}/u.test(name) ? JSON.stringify(name) : name;
}
