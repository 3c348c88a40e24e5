/**
 * Signatures of webhook senders (spec.verify of AgentTriggers): HMAC-SHA256 over the bytes of the body as they came, in
 * the form of each sender. Pure.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { SignatureScheme } from '../api/webhook-keys.js';

/** How far the time of a signature may be from ours, both ways: what all senders with a time recommend. */
export const TOLERANCE_MS = 5 * 60_000;

/** A call as received. */
export interface SignedCall {
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Milliseconds since the epoch. */
  receivedAt: number;
}

/** Missing: no signature of this form; stale: its time is out of tolerance; wrong: none of the keys has made it. */
export type SignatureVerdict = 'valid' | 'missing' | 'stale' | 'wrong';

/** What the headers say. */
interface Claim {
  /** Every signature that may be the right one. */
  signatures: readonly Buffer[];
  /** Seconds since the epoch as sent; absent where the sender signs no time. */
  timestamp?: string;
  /** What is signed before the body. */
  prefix: string;
}

/** Whether one of the keys made the signature of the call. */
export function verifySignature(
  scheme: SignatureScheme,
  keys: readonly Buffer[],
  { headers, body, receivedAt }: SignedCall,
): SignatureVerdict {
  const claim = CLAIMS[scheme](headers);
  if (claim === undefined || claim.signatures.length === 0) return 'missing';
  if (claim.timestamp !== undefined && !isCurrent(claim.timestamp, receivedAt)) return 'stale';
  // Every pair is compared to its end: the time tells neither which key it was nor how far a signature was right.
  let matches = 0;
  for (const key of keys) {
    const expected = createHmac('sha256', key).update(claim.prefix).update(body).digest();
    for (const signature of claim.signatures) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) matches += 1;
    }
  }
  return matches > 0 ? 'valid' : 'wrong';
}

function isCurrent(timestamp: string, receivedAt: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(receivedAt - Number(timestamp) * 1000) <= TOLERANCE_MS;
}

type ReadClaim = (headers: IncomingHttpHeaders) => Claim | undefined;

const CLAIMS: Record<SignatureScheme, ReadClaim> = {
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  github: (headers) => ({
    signatures: hexIn([textOf(headers, 'x-hub-signature-256')], /^sha256=([0-9a-f]{64})$/),
    prefix: '',
  }),
  // https://docs.stripe.com/webhooks/signature (v0 is for tests of Stripe and never counts)
  stripe: (headers) => {
    const items = textOf(headers, 'stripe-signature').split(',');
    const timestamp = items.find((item) => item.startsWith('t='))?.slice(2);
    if (timestamp === undefined) return undefined;
    return { signatures: hexIn(items, /^v1=([0-9a-f]{64})$/), timestamp, prefix: `${timestamp}.` };
  },
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  slack: (headers) => {
    const timestamp = textOf(headers, 'x-slack-request-timestamp');
    if (timestamp === '') return undefined;
    const signatures = hexIn([textOf(headers, 'x-slack-signature')], /^v0=([0-9a-f]{64})$/);
    return { signatures, timestamp, prefix: `v0:${timestamp}:` };
  },
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  'standard-webhooks': (headers) => {
    const [id, timestamp] = [textOf(headers, 'webhook-id'), textOf(headers, 'webhook-timestamp')];
    if (id === '' || timestamp === '') return undefined;
    const items = textOf(headers, 'webhook-signature').split(' ');
    const signatures = decoded(items, /^v1,([A-Za-z0-9+/]{43}=)$/, 'base64');
    return { signatures, timestamp, prefix: `${id}.${timestamp}.` };
  },
};

function textOf(headers: IncomingHttpHeaders, name: string): string {
  return String(headers[name] ?? '');
}

/** Hexadecimal digits in lower case, as all senders write them: one signature has one spelling. */
function hexIn(items: readonly string[], form: RegExp): Buffer[] {
  return decoded(items, form, 'hex');
}

function decoded(items: readonly string[], form: RegExp, encoding: 'hex' | 'base64'): Buffer[] {
  return items.map((item) => Buffer.from(form.exec(item)?.[1] ?? '', encoding)).filter(({ length }) => length > 0);
}
