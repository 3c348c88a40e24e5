import { FakeClock } from '../../../test/builders/fake-clock.js';
import { recordingLog } from '../../../test/builders/log.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import { createKeyUsage } from './key-usage.js';
import { projectApiKey } from '../../projections/api-key.js';

function setup() {
  const clock = new FakeClock(Date.parse('2026-05-01T10:00:30.000Z'));
  const api = new RecordingApi({ clock });
  const stop = new AbortController();
  const usage = createKeyUsage({ api, clock, log: recordingLog().log });
  const key = () => {
    const found = api.all(APIKeys)[0];
    if (found === undefined) throw new Error('seeded');
    return projectApiKey(found);
  };
  api.seed(APIKeys, {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'APIKey',
    metadata: { namespace: 'bw-ws-a', name: 'key' },
    spec: { revoked: false, readOnly: false },
    status: { hash: 'x' },
  });
  const running = usage.run(stop.signal);
  return { clock, api, usage, key, stop, running };
}

test('many uses are one write a minute, with the minute', async () => {
  const { clock, api, usage, key, stop, running } = setup();
  for (let i = 0; i < 1000; i++) usage.used(key());
  expect(api.writes).toEqual([]);
  await clock.advance(60_000);
  expect(api.writes).toHaveLength(1);
  expect(api.peek(APIKeys, 'bw-ws-a/key')?.status).toEqual({ hash: 'x', lastUsedAt: '2026-05-01T10:00:00.000Z' });
  await clock.advance(60_000);
  expect(api.writes).toHaveLength(1);
  stop.abort();
  await running;
});

test('a use within the minute that is stored already is not written again', async () => {
  const { clock, api, usage, key } = setup();
  usage.used(key());
  await clock.advance(60_000);
  await clock.advance(-60_000);
  usage.used(key());
  await clock.advance(120_000);
  expect(api.writes).toHaveLength(1);
});

test('a failed write stops nothing', async () => {
  const { clock, api, usage, key } = setup();
  api.failNext({ verb: 'patch', error: apiError(500, 'InternalError') });
  usage.used(key());
  await clock.advance(60_000);
  usage.used(key());
  await clock.advance(60_000);
  expect(api.peek(APIKeys, 'bw-ws-a/key')?.status?.lastUsedAt).toBe('2026-05-01T10:01:00.000Z');
});
