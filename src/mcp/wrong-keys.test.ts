import { FakeClock } from '../../test/builders/fake-clock.js';
import { createLogger } from '../observability/logger.js';
import { DELAY_MS, FREE_TRIES, MAX_LATE, WrongKeys } from './wrong-keys.js';

function fixture() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const wrongKeys = new WrongKeys({ clock, log: createLogger('api', 'info', { write: (line) => lines.push(line) }) });
  const answers: boolean[] = [];
  const tries = (count: number, address = '203.0.113.7') => {
    for (let n = 0; n < count; n++) wrongKeys.tried(address, (close) => answers.push(close));
  };
  return { clock, lines, answers, tries };
}

test('the first of a minute are logged with their address and answered at once, more are answered late and not logged', async () => {
  const { clock, lines, answers, tries } = fixture();
  tries(FREE_TRIES + 5);
  expect(answers).toHaveLength(FREE_TRIES);
  expect(lines).toHaveLength(FREE_TRIES);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ audit: true, outcome: 'wrong_key', address: '203.0.113.7' });
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ throttled: true });
  await clock.advance(DELAY_MS);
  expect(answers).toHaveLength(FREE_TRIES + 5);
  await clock.advance(60_000);
  tries(1);
  expect(answers).toHaveLength(FREE_TRIES + 6);
});

test('other addresses are not held up', () => {
  const { answers, tries } = fixture();
  tries(FREE_TRIES + 1);
  tries(1, '203.0.113.8');
  expect(answers).toHaveLength(FREE_TRIES + 1);
});

test('no more answers wait than a number: the others are sent at once and close', () => {
  const { clock, answers, tries } = fixture();
  tries(FREE_TRIES + MAX_LATE + 100);
  expect(clock.pending).toBe(MAX_LATE);
  expect(answers.filter((close) => close)).toHaveLength(100);
});
