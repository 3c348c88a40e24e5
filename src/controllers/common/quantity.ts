/** Kubernetes quantities: the API server rewrites `1024Mi` as `1Gi`, so texts are compared by value. */

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** The value of a quantity, or undefined when the text is none. */
export function parseQuantity(text: string): number | undefined {
  const match = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text);
  if (match === null) return undefined;
  const [, number = '', exponent = '', suffix = ''] = match;
  return Number(number + exponent) * (SUFFIXES[suffix] ?? 1);
}

/** Whether two quantities are the same amount, up to the rounding of floating point. */
export function sameQuantity(a: string, b: string): boolean {
  if (a === b) return true;
  const [left, right] = [parseQuantity(a), parseQuantity(b)];
  if (left === undefined || right === undefined) return false;
  return Math.abs(left - right) <= 1e-9 * Math.max(Math.abs(left), Math.abs(right));
}
