import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { loadConnection } from './kube-config.js';
import { createFileToken } from './token-file.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'boxwright-kubeconfig-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function kubeconfig(user: object, cluster: object = {}): Promise<string> {
  const path = join(folder, 'config');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', namespace: 'here' } }],
    clusters: [{ name: 'k', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user }],
  };
  await writeFile(path, JSON.stringify(content));
  return path;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

test('certificates come from the kubeconfig as base64 or by path', async () => {
  await writeFile(join(folder, 'key.pem'), 'KEY');
  const path = await kubeconfig(
    { 'client-certificate-data': base64('CERT'), 'client-key': join(folder, 'key.pem') },
    { 'certificate-authority-data': base64('CA') },
  );

  const connection = await loadConnection({ clock: new FakeClock(), kubeconfig: path, env: {} });

  expect(connection).toEqual({
    server: 'https://10.0.0.1:6443',
    ca: 'CA',
    cert: 'CERT',
    key: 'KEY',
    namespace: 'here',
  });
});

test('KUBECONFIG is used when no path is given, and a token is a token source', async () => {
  const path = await kubeconfig({ token: 't-1' });

  const connection = await loadConnection({ clock: new FakeClock(), env: { KUBECONFIG: path } });

  expect(await connection.token?.()).toBe('t-1');
});

test('a user that logs in by a program is refused with the way out', async () => {
  const path = await kubeconfig({ exec: { command: 'aws' } });

  await expect(loadConnection({ clock: new FakeClock(), kubeconfig: path, env: {} })).rejects.toThrow(
    /user u logs in by exec.*needs a client certificate or a token/,
  );
});

test('a file that is not there is named', async () => {
  const kubeconfigPath = join(folder, 'nothing');

  await expect(loadConnection({ clock: new FakeClock(), kubeconfig: kubeconfigPath })).rejects.toThrow(
    `kubeconfig ${kubeconfigPath} cannot be read`,
  );
});

test('outside a pod and without a kubeconfig the error says what to set', async () => {
  await expect(loadConnection({ clock: new FakeClock(), env: {} })).rejects.toThrow('set KUBECONFIG or --kubeconfig');
});

test.each([
  ['an IPv4 address', '10.96.0.1', 'https://10.96.0.1:443'],
  ['an IPv6 address', 'fd00::1', 'https://[fd00::1]:443'],
])('in a pod the mounted service account is used: %s', async (_name, host, server) => {
  await writeFile(join(folder, 'token'), 'pod-token\n');
  await writeFile(join(folder, 'ca.crt'), 'CA');
  await writeFile(join(folder, 'namespace'), 'boxwright\n');
  const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: '443' };

  const connection = await loadConnection({ clock: new FakeClock(), env, serviceAccountFolder: folder });

  expect(connection).toMatchObject({ server, ca: 'CA', namespace: 'boxwright' });
  expect(await connection.token?.()).toBe('pod-token');
});

test('a token file is read again when the last reading is 60 seconds old', async () => {
  const clock = new FakeClock();
  const path = join(folder, 'token');
  await writeFile(path, 'first');
  const token = createFileToken(path, clock);
  const seen = [await token()];

  await writeFile(path, 'second');
  await clock.advance(59_999);
  seen.push(await token());
  await clock.advance(1);
  seen.push(await token());

  expect(seen).toEqual(['first', 'first', 'second']);
});

test('the last token is used on while the file cannot be read; the first reading must succeed', async () => {
  const clock = new FakeClock();
  const path = join(folder, 'token');
  await expect(createFileToken(path, clock)()).rejects.toThrow('ENOENT');
  await writeFile(path, 'first');
  const token = createFileToken(path, clock);
  await token();

  await writeFile(path, '');
  await clock.advance(60_000);

  expect(await token()).toBe('first');
});
