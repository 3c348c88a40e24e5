import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import {
  advanceAuthority,
  bundleOf,
  createCa,
  decideAuthority,
  issueServerCertificate,
  needsServerCertificate,
} from './certificates.js';
import type { Authority, KeyPair } from './certificates.js';

const DAY = 24 * 60 * 60 * 1000;
const NOW = Date.parse('2026-01-01T00:00:00Z');
const NAMES = ['boxwright-gateway.boxwright.svc', 'boxwright-gateway.boxwright.svc.cluster.local'];

/** A real handshake; resolves with the error code, or `ok`. */
async function handshake(leaf: KeyPair, ca: string, servername: string): Promise<string> {
  const server = createServer({ cert: leaf.cert, key: leaf.key }, (socket) => socket.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const result = await new Promise<string>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, ca, servername }, () => resolve('ok'));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.resume();
  });
  server.close();
  return result;
}

describe('the gateway certificate', () => {
  it('is trusted under the name of the Service by who has the bundle, and by nobody else', async () => {
    // Handshakes look at the real clock.
    const now = Date.now();
    const [ca, other] = [await createCa(now), await createCa(now)];
    const leaf = await issueServerCertificate(ca, NAMES, now);
    const bundle = bundleOf({ current: other, previous: [ca.cert] });
    await expect(handshake(leaf, bundle, NAMES[0] ?? '')).resolves.toBe('ok');
    await expect(handshake(leaf, bundle, 'elsewhere.boxwright.svc')).resolves.toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    await expect(handshake(leaf, other.cert, NAMES[0] ?? '')).resolves.toMatch(
      /UNABLE_TO_VERIFY|SELF_SIGNED|SIGNATURE/,
    );
  });

  it('is valid for 90 days, for servers only, and cannot sign', async () => {
    const ca = await createCa(NOW);
    const leaf = new X509Certificate((await issueServerCertificate(ca, NAMES, NOW)).cert);
    expect(new Date(leaf.validTo).toISOString()).toBe('2026-04-01T00:00:00.000Z');
    expect(leaf.ca).toBe(false);
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(leaf.subjectAltName).toBe(`DNS:${NAMES[0]}, DNS:${NAMES[1]}`);
    const issuer = new X509Certificate(ca.cert);
    expect(issuer.ca).toBe(true);
    expect(leaf.checkIssued(issuer)).toBe(true);
    expect(leaf.verify(issuer.publicKey)).toBe(true);
    expect(new Date(issuer.validTo).toISOString()).toBe('2035-12-30T00:00:00.000Z');
  });

  it('is renewed at two thirds of its life, for a new name, under a new CA, and when it is damaged', async () => {
    const ca = await createCa(NOW);
    const { cert } = await issueServerCertificate(ca, NAMES, NOW);
    const isDue = (at: number, names = NAMES, authority = ca, text: string | undefined = cert) =>
      needsServerCertificate(text, authority, names, at);
    expect(await isDue(NOW)).toBe(false);
    expect(await isDue(NOW + 59 * DAY)).toBe(false);
    expect(await isDue(NOW + 60 * DAY)).toBe(true);
    expect(await isDue(NOW, [...NAMES, 'new.boxwright.svc'])).toBe(true);
    expect(await isDue(NOW, NAMES, await createCa(NOW))).toBe(true);
    expect(await isDue(NOW, NAMES, ca, 'nonsense')).toBe(true);
    expect(await needsServerCertificate(undefined, ca, NAMES, NOW)).toBe(true);
  });
});

describe('a change of the CA', () => {
  it('publishes the next one, lets it sign a week later, and drops the old one when it has expired', async () => {
    const first: Authority = { current: await createCa(NOW), previous: [] };
    expect(decideAuthority(first, NOW + 2433 * DAY)).toBe('none');
    const rotation = NOW + 2434 * DAY;
    expect(decideAuthority(first, rotation)).toBe('publish-next');

    const published = await advanceAuthority(first, 'publish-next', rotation);
    expect(published.current).toEqual(first.current);
    expect(bundleOf(published)).toContain(published.next?.cert.trim());
    expect(decideAuthority(published, rotation + 6 * DAY)).toBe('none');
    expect(decideAuthority(published, rotation + 7 * DAY)).toBe('promote-next');

    const promoted = await advanceAuthority(published, 'promote-next', rotation + 7 * DAY);
    expect(promoted.current).toEqual(published.next);
    expect(promoted.next).toBeUndefined();
    expect(promoted.previous).toEqual([first.current.cert]);
    expect(bundleOf(promoted)).toContain(first.current.cert.trim());
    expect(decideAuthority(promoted, rotation + 8 * DAY)).toBe('none');

    const end = NOW + 3651 * DAY;
    expect(decideAuthority(promoted, end)).toBe('drop-expired');
    const dropped = await advanceAuthority(promoted, 'drop-expired', end);
    expect(dropped).toEqual({ current: promoted.current, previous: [] });
  });
});
