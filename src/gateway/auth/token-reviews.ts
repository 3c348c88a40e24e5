/**
 * Asks the API server whether a token is genuine, as seldom as possible: answers are cached 30 s by digest, equal questions
 * share one call, and a pod whose unknown tokens keep failing must wait.
 */
import { createHash } from 'node:crypto';
import { TokenReviews, type TokenReview } from '../../kube/core-types.js';
import { KubeApiError } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import type { Clock } from '../../runtime/clock.js';
import { GatewayError, tryAgain } from '../errors.js';
import type { GatewayMetrics } from '../metrics.js';
import type { PodTokenClaims } from './pod-token.js';

const KEEP_MS = 30_000;
const MAX_ENTRIES = 2048;
const TIMEOUT_MS = 3_000;
/** Unknown tokens of one pod that may fail within {@link KEEP_MS}. */
const MAX_FAILURES = 3;

export interface TokenReviewerOptions {
  api: Pick<KubeApi, 'create'>;
  clock: Clock;
  metrics: Pick<GatewayMetrics, 'reviewed'>;
}

export class TokenReviewer {
  readonly #options: TokenReviewerOptions;
  /** Digest -> when the answer must be asked again, on the monotonic clock. Insertion order is age of use. */
  readonly #accepted = new Map<string, number>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, { count: number; until: number }>();

  #failedAt = -Infinity;

  constructor(options: TokenReviewerOptions) {
    this.#options = options;
  }

  /** When the API server last could not answer, on the monotonic clock: until then no run can be blamed for silence. */
  get failedAt(): number {
    return this.#failedAt;
  }

  /** Resolves when the API server confirms the claims. Rejects with 401, 429 (too many failures) or 503. */
  async confirm(token: string, claims: PodTokenClaims): Promise<void> {
    const digest = createHash('sha256').update(token).digest('base64');
    const freshUntil = this.#accepted.get(digest);
    if (freshUntil !== undefined && freshUntil > this.#options.clock.monotonic())
      return this.#touch(digest, freshUntil);
    // A token that was accepted before may always be asked about: forged ones of the same pod must not lock it out.
    if (freshUntil === undefined) this.#expectFewFailures(claims.podUid);
    const running = this.#running.get(digest);
    if (running !== undefined) return running;
    const review = this.#review(token, digest, claims).finally(() => this.#running.delete(digest));
    this.#running.set(digest, review);
    return review;
  }

  async #review(token: string, digest: string, claims: PodTokenClaims): Promise<void> {
    const { clock, metrics } = this.#options;
    const status = await this.#ask(token, claims.audience);
    if (!confirms(status, claims)) {
      metrics.reviewed('rejected');
      this.#accepted.delete(digest);
      this.#countFailure(claims.podUid);
      throw new GatewayError(401, 'the API server does not accept the token', { type: 'Unauthorized' });
    }
    metrics.reviewed('accepted');
    this.#failures.delete(claims.podUid);
    this.#touch(digest, clock.monotonic() + Math.min(KEEP_MS, claims.expiresAt - clock.now()));
  }

  async #ask(token: string, audience: string): Promise<TokenReview['status']> {
    const { api, clock, metrics } = this.#options;
    const bound = timeoutSignal(clock, TIMEOUT_MS);
    try {
      const review = await api.create(
        TokenReviews,
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenReview',
          metadata: { name: '' },
          spec: { token, audiences: [audience] },
        },
        { signal: bound.signal },
      );
      return review.status;
    } catch (error) {
      // The message of an error may describe what was sent, which is the token: only its code is passed on.
      metrics.reviewed('failed');
      this.#failedAt = clock.monotonic();
      const code = error instanceof KubeApiError ? `${error.status} ${error.reason}` : 'no answer';
      throw tryAgain(`the API server cannot check the token now (${code})`);
    } finally {
      bound.dispose();
    }
  }

  #touch(digest: string, freshUntil: number): void {
    this.#accepted.delete(digest);
    this.#accepted.set(digest, freshUntil);
    dropOldest(this.#accepted);
  }

  #expectFewFailures(podUid: string): void {
    const failures = this.#failures.get(podUid);
    const waitMs = (failures?.until ?? 0) - this.#options.clock.monotonic();
    if (failures === undefined || waitMs <= 0 || failures.count < MAX_FAILURES) return;
    this.#options.metrics.reviewed('limited');
    throw new GatewayError(429, 'too many tokens of this pod were not accepted', {
      type: 'TooManyRequests',
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    });
  }

  #countFailure(podUid: string): void {
    const now = this.#options.clock.monotonic();
    const known = this.#failures.get(podUid);
    const entry = known === undefined || known.until <= now ? { count: 0, until: now + KEEP_MS } : known;
    this.#failures.delete(podUid);
    this.#failures.set(podUid, { ...entry, count: entry.count + 1 });
    dropOldest(this.#failures);
  }
}

function confirms(status: TokenReview['status'], claims: PodTokenClaims): boolean {
  const extra = status?.user?.extra ?? {};
  return (
    status?.authenticated === true &&
    status.audiences?.includes(claims.audience) === true &&
    status.user?.username === claims.username &&
    extra['authentication.kubernetes.io/pod-name']?.[0] === claims.podName &&
    extra['authentication.kubernetes.io/pod-uid']?.[0] === claims.podUid
  );
}

function dropOldest(map: Map<string, unknown>): void {
  if (map.size <= MAX_ENTRIES) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
