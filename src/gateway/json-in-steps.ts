/** JSON of others that may be large: its limits, its parser and what follows are steps, between which others are served. */
import { expectLimits, parseCheckedJson, type JsonLimits } from '../protocol/json-limits.js';
import { afterStep } from '../runtime/event-loop.js';

/** Rejects as `parseJson` throws. */
export async function parseJsonInSteps(bytes: Uint8Array, limits: Partial<JsonLimits> = {}): Promise<unknown> {
  expectLimits(bytes, limits);
  await afterStep(bytes.length);
  const json = parseCheckedJson(bytes);
  await afterStep(bytes.length);
  return json;
}
