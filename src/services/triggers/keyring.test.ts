import { createSecretKey } from 'node:crypto';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { recordingLog } from '../../../test/builders/log.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { formatKeyring } from '../../api/keyring.js';
import { Secrets } from '../../kube/core-types.js';
import { createKeyringReader } from './keyring.js';

function setup() {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const { log, lines } = recordingLog();
  const reader = createKeyringReader({ api, clock, log, namespace: 'system' });
  const store = (ids: string[], current: string) => {
    const keys = new Map(ids.map((id) => [id, createSecretKey(Buffer.alloc(32, id))]));
    const data = { 'keys.json': Buffer.from(formatKeyring({ current, keys })).toString('base64') };
    api.seed(Secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'system', name: 'boxwright-keyring' },
      data,
    });
  };
  const stop = new AbortController();
  return { clock, api, reader, store, lines, stop };
}

test('the keyring is read until it is there, then once a minute', async () => {
  const { clock, api, reader, store, stop } = setup();
  const running = reader.run(stop.signal);
  await clock.advance(2_500);
  expect(reader.keyring).toBeUndefined();
  expect(api.reads.map(({ key }) => key)).toEqual(Array(3).fill('system/boxwright-keyring'));
  store(['k1'], 'k1');
  await clock.advance(500);
  expect(reader.keyring?.current).toBe('k1');
  store(['k1', 'k2'], 'k2');
  await clock.advance(59_999);
  expect(reader.keyring?.current).toBe('k1');
  await clock.advance(1);
  expect(reader.keyring?.current).toBe('k2');
  stop.abort();
  await running;
  expect(clock.pending).toBe(0);
});

test('an unknown key id is read at once, but not more often than every 5 seconds', async () => {
  const { clock, api, reader, store } = setup();
  store(['k1'], 'k1');
  await reader.ensure('k1');
  expect(reader.keyring?.keys.has('k1')).toBe(true);
  await reader.ensure('k9');
  await reader.ensure(undefined);
  expect(api.reads).toHaveLength(1);
  await clock.advance(5_000);
  await reader.ensure('k9');
  await reader.ensure('k1');
  expect(api.reads).toHaveLength(2);
});

test('whoever asks for an unknown key while it is read waits for that read', async () => {
  const { api, reader, store } = setup();
  store(['k1'], 'k1');
  const known = [1, 2].map(async () => {
    await reader.ensure('k1');
    return reader.keyring?.keys.has('k1');
  });
  expect(await Promise.all(known)).toEqual([true, true]);
  expect(api.reads).toHaveLength(1);
});

test('a damaged keyring keeps the known one, and no key is logged', async () => {
  const { clock, api, reader, store, lines } = setup();
  store(['k1'], 'k1');
  await reader.ensure('k1');
  const data = { 'keys.json': Buffer.from('{"current":"secret-text"}').toString('base64') };
  api.seed(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'system', name: 'boxwright-keyring' },
    data,
  });
  await clock.advance(5_000);
  await reader.ensure('k2');
  expect(reader.keyring?.current).toBe('k1');
  expect(lines.map(({ message }) => message)).toEqual(['keyring not readable']);
  expect(String(lines[0]?.fields['err'])).not.toContain('secret-text');
});
