/**
 * What a run token says about itself, without trusting it: enough to turn random and foreign tokens away before anything
 * is asked of the API server. Only a TokenReview makes these claims true.
 */
import { z } from 'zod';
import { RUN_TOKEN_AUDIENCE, RUNNER_SERVICE_ACCOUNT } from '../../api/labels.js';

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

/** The unverified claims that the checks need. */
export interface RunTokenClaims {
  namespace: string;
  podName: string;
  podUid: string;
  /** The user that a TokenReview must confirm. */
  username: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** The service account of run pods of a Box namespace, as the API server names it. */
export function runnerUsername(namespace: string): string {
  return `system:serviceaccount:${namespace}:${RUNNER_SERVICE_ACCOUNT}`;
}

/** The claims of a token that could be one of a run, or the reason why it cannot. */
export function readRunToken(token: string, nowMs: number): { claims: RunTokenClaims } | { refused: string } {
  const payload = decodePayload(token);
  if (payload === undefined) return { refused: 'the token is not a service-account token' };
  const parsed = Claims.safeParse(payload);
  if (!parsed.success) return { refused: 'the token is not one of a pod' };
  const { aud, exp, sub, 'kubernetes.io': bound } = parsed.data;
  if (exp * 1000 <= nowMs) return { refused: 'the token has expired' };
  if (![aud].flat().includes(RUN_TOKEN_AUDIENCE)) return { refused: `the token is not for ${RUN_TOKEN_AUDIENCE}` };
  const username = runnerUsername(bound.namespace);
  if (sub !== username || bound.serviceaccount.name !== RUNNER_SERVICE_ACCOUNT) {
    return { refused: 'the token is not one of a run' };
  }
  return {
    claims: {
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
