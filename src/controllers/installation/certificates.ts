/**
 * Our own CA and the gateway's certificate (ECDSA P-256, PEM), and the pure decision of when they change. Nothing here
 * talks to Kubernetes. Times come from the caller.
 *
 * A CA is changed in two steps, because a run carries in its Job the bundle of the day it was admitted: the next CA is
 * published in the bundle first, and signs only after {@link CA_OVERLAP_MS}, when no run is left that does not know it.
 * The previous one stays in the bundle until it expires.
 */
import 'reflect-metadata';
import type { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const DAY_MS = 24 * 60 * 60 * 1000;
export const CA_LIFETIME_MS = 3650 * DAY_MS;
export const LEAF_LIFETIME_MS = 90 * DAY_MS;
/** Longer than any run can take from its admission on (each deadline of a Box is at most a day). */
export const CA_OVERLAP_MS = 7 * DAY_MS;
/** Certificates are valid from some time in the past on, for nodes whose clocks are behind. */
const CLOCK_SKEW_MS = 5 * 60 * 1000;

const EC_P256 = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' } as const;
const CA_NAME = 'CN=Boxwright CA';

/** A certificate with its private key (PKCS #8), both PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** What is stored in the Secret of the CA. */
export interface Authority {
  /** Signs. */
  current: KeyPair;
  /** Published, but not signing yet. */
  next?: KeyPair;
  /** Former ones, as long as they are valid. */
  previous: readonly string[];
}

/** Every certificate that a runner should trust, as one PEM text; the signing one first. */
export function bundleOf(authority: Authority): string {
  const certs = [authority.current.cert, ...(authority.next === undefined ? [] : [authority.next.cert])];
  return [...certs, ...authority.previous].map((cert) => `${cert.trim()}\n`).join('');
}

/** Splits a PEM text into its certificates. */
export function splitPem(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

/** What is due for the CA. */
export type AuthorityStep = 'none' | 'publish-next' | 'promote-next' | 'drop-expired';

/** At two thirds of its life a CA gets a successor; the successor signs after the overlap; expired ones are dropped. */
export function decideAuthority(authority: Authority, nowMs: number): AuthorityStep {
  if (authority.next === undefined) {
    if (isPastTwoThirds(authority.current.cert, nowMs)) return 'publish-next';
  } else if (validity(authority.next.cert).notBefore + CLOCK_SKEW_MS + CA_OVERLAP_MS <= nowMs) return 'promote-next';
  return authority.previous.some((cert) => validity(cert).notAfter <= nowMs) ? 'drop-expired' : 'none';
}

/** Carries out the step. */
export async function advanceAuthority(authority: Authority, step: AuthorityStep, nowMs: number): Promise<Authority> {
  const previous = authority.previous.filter((cert) => validity(cert).notAfter > nowMs);
  if (step === 'publish-next') return { ...authority, previous, next: await createCa(nowMs) };
  if (step === 'promote-next' && authority.next !== undefined) {
    return { current: authority.next, previous: [authority.current.cert, ...previous] };
  }
  return { ...authority, previous };
}

/** A self-signed CA that can sign end certificates only. */
export async function createCa(nowMs: number): Promise<KeyPair> {
  const keys = await crypto.subtle.generateKey(EC_P256, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: CA_NAME,
    keys,
    signingAlgorithm: SIGNATURE,
    notBefore: new Date(nowMs - CLOCK_SKEW_MS),
    notAfter: new Date(nowMs + CA_LIFETIME_MS),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: cert.toString('pem'), key: await exportKey(keys.privateKey) };
}

/** A server certificate for the DNS names, not valid longer than its CA. */
export async function issueServerCertificate(
  ca: KeyPair,
  dnsNames: readonly string[],
  nowMs: number,
): Promise<KeyPair> {
  const issuer = new x509.X509Certificate(ca.cert);
  const keys = await crypto.subtle.generateKey(EC_P256, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.create({
    issuer: issuer.subject,
    subject: 'CN=boxwright gateway',
    publicKey: keys.publicKey,
    signingKey: await importKey(ca.key),
    signingAlgorithm: SIGNATURE,
    notBefore: new Date(nowMs - CLOCK_SKEW_MS),
    notAfter: new Date(Math.min(nowMs + LEAF_LIFETIME_MS, issuer.notAfter.getTime())),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(dnsNames.map((value) => ({ type: 'dns', value }))),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { cert: cert.toString('pem'), key: await exportKey(keys.privateKey) };
}

/** Whether a new server certificate is due: too old, for other names, of another CA, or not readable. */
export async function needsServerCertificate(
  cert: string | undefined,
  ca: Pick<KeyPair, 'cert'>,
  dnsNames: readonly string[],
  nowMs: number,
): Promise<boolean> {
  const leaf = parse(cert);
  if (leaf === undefined || isPastTwoThirds(leaf.toString('pem'), nowMs)) return true;
  const names = leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.items.map(({ value }) => value) ?? [];
  if (dnsNames.some((name) => !names.includes(name))) return true;
  const { publicKey } = new x509.X509Certificate(ca.cert);
  return !(await leaf.verify({ publicKey, signatureOnly: true }));
}

/** Whether the text is one certificate. */
export function isCertificate(text: string | undefined): boolean {
  return parse(text) !== undefined;
}

function parse(text: string | undefined): x509.X509Certificate | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return new x509.X509Certificate(text);
  } catch {
    return undefined;
  }
}

/** When a certificate ends, in milliseconds since the epoch. */
export function certificateEnd(cert: string): number {
  return validity(cert).notAfter;
}

function validity(cert: string): { notBefore: number; notAfter: number } {
  const { notBefore, notAfter } = new x509.X509Certificate(cert);
  return { notBefore: notBefore.getTime(), notAfter: notAfter.getTime() };
}

function isPastTwoThirds(cert: string, nowMs: number): boolean {
  const { notBefore, notAfter } = validity(cert);
  return nowMs >= notBefore + ((notAfter - notBefore) * 2) / 3;
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const [der] = x509.PemConverter.decode(pem);
  if (der === undefined) throw new Error('the private key of the CA is not PEM');
  return await crypto.subtle.importKey('pkcs8', der, EC_P256, false, ['sign']);
}
