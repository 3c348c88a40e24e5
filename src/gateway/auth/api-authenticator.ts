/** Whether a bearer token is one of an API pod of this installation. */
import type { Clock } from '../../runtime/clock.js';
import type { PeerPod } from '../../projections/pod.js';
import { readApiToken } from './pod-token.js';
import { bearerIn, unauthorized } from './run-authenticator.js';
import type { TokenReviewer } from './token-reviews.js';

export interface ApiAuthenticatorOptions {
  /** Of the installation. */
  namespace: string;
  clock: Clock;
  reviews: Pick<TokenReviewer, 'confirm'>;
  /** The API pods of the installation. */
  apis: { values(): Iterable<PeerPod> };
}

export class ApiAuthenticator {
  readonly #options: ApiAuthenticatorOptions;

  constructor(options: ApiAuthenticatorOptions) {
    this.#options = options;
  }

  /** Resolves for an `Authorization` header of an API pod. Rejects with 401, 429 or 503. */
  async authenticate(authorization: string | undefined): Promise<void> {
    const { namespace, clock, reviews, apis } = this.#options;
    const token = bearerIn(authorization);
    if (token === undefined) throw unauthorized('send the token of an API pod as Authorization: Bearer');
    const read = readApiToken(token, clock.now(), namespace);
    if ('refused' in read) throw unauthorized(read.refused);
    const { claims } = read;
    // Before anything is asked of the API server: anybody can invent a pod.
    const isKnown = [...apis.values()].some(({ uid, name }) => uid === claims.podUid && name === claims.podName);
    if (!isKnown) throw unauthorized('the pod of the token is not there');
    await reviews.confirm(token, claims);
  }
}
