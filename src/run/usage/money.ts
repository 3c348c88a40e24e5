/** Money is counted in whole millionths of a US dollar and shown as US dollars with six decimals. */
import { sumOf, withinCounts } from './saturating.js';

/** `1234567` -> `"1.234567"`. */
export function formatMicroUsd(micro: number): string {
  const known = withinCounts(micro);
  const whole = Math.floor(known / 1_000_000);
  return `${whole}.${String(known - whole * 1_000_000).padStart(6, '0')}`;
}

/** `"1.234567"` -> `1234567`; undefined stays undefined (unknown price, never 0). */
export function parseMicroUsd(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [whole = '0', fraction = ''] = text.split('.');
  return sumOf(Number(whole) * 1_000_000, Number(fraction.padEnd(6, '0').slice(0, 6)));
}
