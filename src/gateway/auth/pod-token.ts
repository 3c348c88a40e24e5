/**
 * What the token of a pod says about itself, without trusting it: enough to turn random and foreign tokens away before anything
 * is asked of the API server. Only a TokenReview makes these claims true.
 */
import { z } from 'zod';
import {
  API_SERVICE_ACCOUNT,
  GATEWAY_TOKEN_AUDIENCE,
  RUN_TOKEN_AUDIENCE,
  RUNNER_SERVICE_ACCOUNT,
} from '../../api/labels.js';

/** A projected service-account token is about 1 KiB. */
const MAX_TOKEN_LENGTH = 8192;

const Claims = z.object({
  aud: z.union([z.string(), z.array(z.string())]),
  exp: z.number(),
  iss: z.string().min(1).max(512),
  sub: z.string(),
  'kubernetes.io': z.object({
    namespace: z.string().min(1).max(63),
    pod: z.object({ name: z.string().min(1).max(253), uid: z.string().min(1).max(64) }),
    serviceaccount: z.object({ name: z.string() }),
  }),
});

/** Whose tokens are taken, and for what. */
interface TokenKind {
  audience: string;
  serviceAccount: string;
  of: string;
}

const OF_RUNS: TokenKind = { audience: RUN_TOKEN_AUDIENCE, serviceAccount: RUNNER_SERVICE_ACCOUNT, of: 'a run' };
const OF_API_PODS: TokenKind = {
  audience: GATEWAY_TOKEN_AUDIENCE,
  serviceAccount: API_SERVICE_ACCOUNT,
  of: 'an API pod',
};

/** The unverified claims that the checks need. */
export interface PodTokenClaims {
  audience: string;
  namespace: string;
  podName: string;
  podUid: string;
  /** The user that a TokenReview must confirm. */
  username: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

export type ReadToken = { claims: PodTokenClaims } | { refused: string };

/** The claims of a token that could be one of a run, or the reason why it cannot. */
export function readRunToken(token: string, nowMs: number): ReadToken {
  return readPodToken(token, nowMs, OF_RUNS);
}

/** The claims of a token that could be one of an API pod in this namespace, or the reason why it cannot. */
export function readApiToken(token: string, nowMs: number, namespace: string): ReadToken {
  const read = readPodToken(token, nowMs, OF_API_PODS);
  if ('refused' in read || read.claims.namespace === namespace) return read;
  return { refused: 'the token is not one of this installation' };
}

function readPodToken(token: string, nowMs: number, { audience, serviceAccount, of }: TokenKind): ReadToken {
  const payload = decodePayload(token);
  if (payload === undefined) return { refused: 'the token is not a service-account token' };
  const parsed = Claims.safeParse(payload);
  if (!parsed.success) return { refused: 'the token is not one of a pod' };
  const { aud, exp, sub, 'kubernetes.io': bound } = parsed.data;
  if (exp * 1000 <= nowMs) return { refused: 'the token has expired' };
  if (![aud].flat().includes(audience)) return { refused: `the token is not for ${audience}` };
  const username = `system:serviceaccount:${bound.namespace}:${serviceAccount}`;
  if (sub !== username || bound.serviceaccount.name !== serviceAccount) {
    return { refused: `the token is not one of ${of}` };
  }
  return {
    claims: {
      audience,
      namespace: bound.namespace,
      podName: bound.pod.name,
      podUid: bound.pod.uid,
      username,
      expiresAt: exp * 1000,
    },
  };
}

function decodePayload(token: string): unknown {
  if (token.length > MAX_TOKEN_LENGTH) return undefined;
  const [header, payload, signature, ...rest] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) return undefined;
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
