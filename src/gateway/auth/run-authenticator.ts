/**
 * From a bearer token to the run that it may act for: token -> pod -> Job -> AgentRun, by UIDs.
 * See docs/architecture.md#run-reports-and-ownership.
 */
import type { Grant } from '../../run/usage/budget.js';
import { AgentRuns, type AgentRun } from '../../api/v1alpha1/agent-run.js';
import { objectKey, type KubeObject, type ResourceType } from '../../api/meta.js';
import { Jobs, Pods } from '../../kube/core-types.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi, ObjectRef } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { GatewayError } from '../errors.js';
import { readRunToken } from './pod-token.js';
import type { TokenReviewer } from './token-reviews.js';
import { projectGatewayRun } from '../../projections/agent-run.js';
import { projectGatewayJob } from '../../projections/job.js';
import type { GatewayJob } from '../../projections/job.js';
import { projectGatewayRunPod } from '../../projections/pod.js';
import type { GatewayRunPod } from '../../projections/pod.js';

/** Who calls, proved by the token. */
export interface RunIdentity {
  namespace: string;
  runName: string;
  runUid: string;
  podName: string;
  podUid: string;
  /** Set when the session has earlier runs. */
  previousRun?: string;
  /** From the Job: what the budgets left to the run when it was admitted. */
  grant?: Grant | undefined;
}

export interface RunAuthenticatorOptions {
  api: Pick<KubeApi, 'get'>;
  clock: Clock;
  reviews: Pick<TokenReviewer, 'confirm'>;
  pods: Pick<Cache<GatewayRunPod>, 'get'>;
  jobs: Pick<Cache<GatewayJob>, 'get'>;
  runs: Pick<Cache<AgentRun>, 'get'>;
}

/** Live reads of pods that the cache does not know, for all callers together: anybody can invent a pod. */
const POD_READS_PER_SECOND = 5;
const POD_READS_AT_ONCE = 20;

export class RunAuthenticator {
  readonly #options: RunAuthenticatorOptions;
  #podReads = POD_READS_AT_ONCE;
  #podReadsAt: number;

  constructor(options: RunAuthenticatorOptions) {
    this.#options = options;
    this.#podReadsAt = options.clock.monotonic();
  }

  /**
   * The run of an `Authorization` header. Rejects with 401 (no or wrong token), 404 (unknown run), 410 (the pod's Job is
   * gone), 429 or 503.
   */
  async authenticate(authorization: string | undefined): Promise<RunIdentity> {
    const token = bearerIn(authorization);
    if (token === undefined) throw unauthorized('send the run token as Authorization: Bearer');
    const read = readRunToken(token, this.#options.clock.now());
    if ('refused' in read) throw unauthorized(read.refused);
    const { claims } = read;
    const pod = await this.#livePod(claims.namespace, claims.podName, claims.podUid);
    await this.#options.reviews.confirm(token, claims);
    const job = await this.#jobOf(pod);
    const run = await this.#runOf(job);
    if (pod.run !== run.metadata.name) throw unauthorized('the pod is not labelled with its run');
    return {
      namespace: pod.namespace,
      runName: run.metadata.name,
      runUid: job.runUid,
      podName: pod.name,
      podUid: pod.uid,
      ...(job.previousRun === undefined ? {} : { previousRun: job.previousRun }),
      ...(job.grant === undefined ? {} : { grant: job.grant }),
    };
  }

  async #livePod(namespace: string, name: string, uid: string): Promise<GatewayRunPod> {
    const ref = { namespace, name };
    const cached = this.#options.pods.get(objectKey(ref));
    const pod =
      cached?.uid === uid ? cached : this.#mayReadPod() ? await this.#live(Pods, ref, projectGatewayRunPod) : undefined;
    if (pod === undefined || pod.uid !== uid) throw unauthorized('the pod of the token is not there');
    if (pod.ended) throw unauthorized('the pod of the token has ended');
    return pod;
  }

  async #jobOf(pod: GatewayRunPod): Promise<GatewayJob> {
    const ref = { namespace: pod.namespace, name: pod.jobName };
    if (ref.name === '') throw unauthorized('the pod has no Job');
    const cached = this.#options.jobs.get(objectKey(ref));
    const job = cached?.uid === pod.jobUid ? cached : await this.#live(Jobs, ref, projectGatewayJob);
    // A run that goes back to the queue loses its Job: this pod must not execute it any more.
    if (job === undefined || job.uid !== pod.jobUid) {
      throw new GatewayError(410, 'the Job of this pod is gone', { type: 'RunEnded' });
    }
    return job;
  }

  async #runOf(job: GatewayJob): Promise<AgentRun> {
    const ref = { namespace: job.namespace, name: job.runName };
    if (ref.name === '') throw unauthorized('the Job has no AgentRun');
    const cached = this.#options.runs.get(objectKey(ref));
    const run = cached?.metadata.uid === job.runUid ? cached : await this.#live(AgentRuns, ref, projectGatewayRun);
    if (run === undefined || run.metadata.uid !== job.runUid) {
      throw new GatewayError(404, 'the run is not there any more', { type: 'RunNotFound' });
    }
    return run;
  }

  async #live<T extends KubeObject, P>(
    type: ResourceType<T>,
    ref: ObjectRef,
    project: (object: T) => P,
  ): Promise<P | undefined> {
    const live = await orUndefined(this.#options.api.get(type, ref));
    return live === undefined ? undefined : project(live);
  }

  #mayReadPod(): boolean {
    const now = this.#options.clock.monotonic();
    const earned = ((now - this.#podReadsAt) / 1000) * POD_READS_PER_SECOND;
    this.#podReads = Math.min(POD_READS_AT_ONCE, this.#podReads + earned);
    this.#podReadsAt = now;
    if (this.#podReads < 1) return false;
    this.#podReads -= 1;
    return true;
  }
}

/** The token of an `Authorization` header. */
export function bearerIn(authorization: string | undefined): string | undefined {
  return /^Bearer ([^\s]+)$/i.exec(authorization ?? '')?.[1];
}

/** 401. */
export function unauthorized(message: string): GatewayError {
  return new GatewayError(401, message, { type: 'Unauthorized' });
}
