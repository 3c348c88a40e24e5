import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { turnsDuring } from '../../../test/builders/turns.js';
import { BodyBudget } from '../../net/body-budget.js';
import { readJson } from './body.js';

const MIB = 1024 * 1024;

/** How often others were served from the end of the body on. */
async function turnsFor(text: string): Promise<number> {
  const request = Object.assign(Readable.from([Buffer.from(text)]), { socket: {} }) as unknown as IncomingMessage;
  const bodies = new BodyBudget(16 * MIB);
  const before = await turnsDuring(() => new Promise((resolve) => setImmediate(resolve)));
  const turns = await turnsDuring(async () => {
    expect(JSON.stringify(await readJson(request, { maxBytes: 9 * MIB, bodies }))).toBe(text);
  });
  return turns - before;
}

test('between the steps of reading a large body others are served', async () => {
  const small = await turnsFor(JSON.stringify('x'));
  expect(await turnsFor(JSON.stringify('x'.repeat(MIB)))).toBeGreaterThanOrEqual(small + 2);
});
