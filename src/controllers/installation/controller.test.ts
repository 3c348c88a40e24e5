import { ANNOTATION_ROTATE } from '../../api/labels.js';
import { installationSecretInformer } from '../../projections/installation-secret.js';
import { KEYRING_ENTRY, parseKeyring } from '../../api/keyring.js';
import { Secrets } from '../../kube/core-types.js';
import type { Secret } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { createInstallationController } from './controller.js';
import { CA_SECRET, GATEWAY_TLS_SECRET, entryOf } from './secrets.js';

const HOUR = 60 * 60 * 1000;
const DAY = 24 * HOUR;
const signal = new AbortController().signal;

function setup() {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const lines: string[] = [];
  const log = createLogger('test', 'debug', { write: (line) => lines.push(line) });
  const watchOf = (name: string) => api.informer(installationSecretInformer('rel', name));
  const caches = { certificates: watchOf(GATEWAY_TLS_SECRET), authority: watchOf(CA_SECRET) };
  const ends: Record<string, number> = {};
  const metrics = { expires: (name: string, atMs: number) => void (ends[name] = atMs) };
  const options = { api, clock, log, namespace: 'rel', gatewayService: 'gw', caches, metrics };
  const create = () => createInstallationController(options);
  const secret = (name: string) => api.peek(Secrets, `rel/${name}`);
  const reconcile = () => create().reconcile('installation', signal);
  /** As `kubectl annotate secret NAME boxwright.dev/rotate=now`. */
  const askFor = (name: string) =>
    api.patch(
      Secrets,
      { namespace: 'rel', name },
      { metadata: { annotations: { [ANNOTATION_ROTATE]: 'now', note: 'stays' } } },
      { type: 'merge' },
    );
  return { clock, api, lines, ends, create, secret, reconcile, askFor };
}

const summary = (api: RecordingApi) => api.writes.map(({ verb, key }) => `${verb} ${key}`);

describe('the installation', () => {
  it('makes keyring, CA and certificate, looks again in an hour, and then writes nothing', async () => {
    const { api, lines, create, secret } = setup();
    const installation = create();
    expect(installation.caBundle()).toBeUndefined();
    expect(await installation.reconcile('installation', signal)).toEqual({ requeueAfterMs: HOUR });
    expect(summary(api)).toEqual([
      'create rel/boxwright-keyring',
      'create rel/boxwright-ca',
      'create rel/boxwright-gateway-tls',
    ]);
    const keyring = secret('boxwright-keyring');
    expect(keyring?.metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    expect(parseKeyring(entryOf(keyring, KEYRING_ENTRY) ?? '').keys.get('k1')?.symmetricKeySize).toBe(32);
    expect(installation.keyIds()).toEqual({ current: 'k1', all: new Set(['k1']) });
    expect(installation.caBundle()).toBe(entryOf(secret('boxwright-gateway-tls'), 'ca.crt'));
    expect(secret('boxwright-gateway-tls')?.type).toBe('kubernetes.io/tls');
    expect(lines.join('')).not.toMatch(/PRIVATE|k1/);

    api.clearRecords();
    await create().reconcile('installation', signal);
    expect(api.writes).toEqual([]);
    expect(api.reads.map(({ verb, key }) => `${verb} ${key}`)).toEqual([
      'get rel/boxwright-keyring',
      'get rel/boxwright-ca',
      'get rel/boxwright-gateway-tls',
    ]);
  });

  it('hears at once that a certificate is gone, and makes it again', async () => {
    const { api, create, secret } = setup();
    const installation = create();
    await installation.reconcile('installation', signal);
    const woken: string[] = [];
    const unwatch = installation.watch((key) => woken.push(key));
    for (const name of [GATEWAY_TLS_SECRET, CA_SECRET]) {
      woken.length = 0;
      await api.delete(Secrets, { namespace: 'rel', name });
      expect(woken).toEqual(['installation']);
      await installation.reconcile('installation', signal);
      expect(secret(name)).toBeDefined();
    }
    unwatch();
  });

  it('changes a certificate when an administrator asks for it, once', async () => {
    const { api, reconcile, secret, askFor } = setup();
    await reconcile();
    const before = secret(GATEWAY_TLS_SECRET);
    await askFor(GATEWAY_TLS_SECRET);
    await reconcile();
    const after = secret(GATEWAY_TLS_SECRET);
    expect(entryOf(after, 'tls.crt')).not.toBe(entryOf(before, 'tls.crt'));
    expect(entryOf(after, 'ca.crt')).toBe(entryOf(before, 'ca.crt'));
    expect(after?.metadata.annotations).toEqual({ note: 'stays' });
    api.clearRecords();
    await reconcile();
    expect(api.writes).toEqual([]);
  });

  it('publishes the next CA when an administrator asks for it, and no second one', async () => {
    const { clock, api, reconcile, secret, askFor } = setup();
    await reconcile();
    const before = secret(CA_SECRET);
    for (let times = 0; times < 2; times++) {
      await askFor(CA_SECRET);
      await reconcile();
    }
    const asked = secret(CA_SECRET);
    expect(entryOf(asked, 'ca.crt')).toBe(entryOf(before, 'ca.crt'));
    expect(entryOf(asked, 'next.crt')).toBeDefined();
    expect(asked?.metadata.annotations).toEqual({ note: 'stays' });
    await clock.advance(8 * DAY);
    await reconcile();
    expect(entryOf(secret(CA_SECRET), 'ca.crt')).toBe(entryOf(asked, 'next.crt'));
    api.clearRecords();
    await reconcile();
    expect(api.writes).toEqual([]);
  });

  it('says when the certificates end', async () => {
    const { clock, ends, reconcile } = setup();
    await reconcile();
    await reconcile();
    const days = Object.entries(ends).map(([name, at]) => [name, Math.round((at - clock.now()) / DAY)]);
    expect(Object.fromEntries(days)).toEqual({ [CA_SECRET]: 3650, [GATEWAY_TLS_SECRET]: 90 });
  });

  it('renews the certificate alone after 60 days', async () => {
    const { api, clock, reconcile, secret } = setup();
    await reconcile();
    const before = secret('boxwright-gateway-tls');
    api.clearRecords();
    await clock.advance(60 * DAY);
    await reconcile();
    expect(summary(api)).toEqual(['replace rel/boxwright-gateway-tls']);
    const after = secret('boxwright-gateway-tls');
    expect(entryOf(after, 'tls.crt')).not.toBe(entryOf(before, 'tls.crt'));
    expect(entryOf(after, 'ca.crt')).toBe(entryOf(before, 'ca.crt'));
  });

  it('publishes the next CA without touching the certificate in use, and changes over a week later', async () => {
    const { api, clock, reconcile, secret } = setup();
    await reconcile();
    const oldCa = entryOf(secret('boxwright-ca'), 'ca.crt') ?? 'missing';
    await clock.advance(2433 * DAY);
    await reconcile();
    await clock.advance(DAY);
    const served = entryOf(secret('boxwright-gateway-tls'), 'tls.crt');
    api.clearRecords();
    await reconcile();
    expect(summary(api)).toEqual(['replace rel/boxwright-ca', 'replace rel/boxwright-gateway-tls']);
    expect(entryOf(secret('boxwright-gateway-tls'), 'tls.crt')).toBe(served);
    const nextCa = entryOf(secret('boxwright-ca'), 'next.crt') ?? 'missing';
    expect(entryOf(secret('boxwright-gateway-tls'), 'ca.crt')).toContain(nextCa.trim());

    await clock.advance(7 * DAY);
    await reconcile();
    expect(entryOf(secret('boxwright-ca'), 'ca.crt')).toBe(nextCa);
    expect(entryOf(secret('boxwright-ca'), 'next.key')).toBeUndefined();
    expect(entryOf(secret('boxwright-gateway-tls'), 'tls.crt')).not.toBe(served);
    expect(entryOf(secret('boxwright-gateway-tls'), 'ca.crt')).toContain(oldCa.trim());
  });

  it('never writes a keyring that is there, even a damaged one', async () => {
    const { api, reconcile } = setup();
    const damaged: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'boxwright-keyring', namespace: 'rel' },
      data: { [KEYRING_ENTRY]: Buffer.from('{}').toString('base64') },
    };
    api.seed(Secrets, damaged);
    await expect(reconcile()).rejects.toThrow('boxwright-keyring: keys.json must be');
    expect(api.writes).toEqual([]);
  });
});
