/** What it means for a run that the API server did not accept its Job. */
import type { QueueReason } from '../../../run/reasons.js';
import {
  KubeApiError,
  KubeConnectionError,
  isBadRequest,
  isForbidden,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
} from '../../../kube/errors.js';
import {
  saysDeniedByAdmission,
  saysInternalError,
  saysNotReadyOrNoRight,
  saysQuotaExceeded,
} from '../../../kube/kubernetes-messages.js';
import { isRetrySoon, isUnavailable } from '../../../runtime/errors.js';

export type JobRefusal =
  /** Not now: the run waits. `message` replaces the general text of the reason. */
  | {
      result: 'refused';
      reason: Extract<QueueReason, 'NoCapacity' | 'BoxNotReady' | 'WorkspaceNotReady' | 'JobRefused' | 'JobNotCreated'>;
      message?: string;
    }
  /** Never. */
  | { result: 'invalid'; message: string };

/** Reads the answer of the API server to the Job. Throws the error itself where a retry may cure it. */
export function refusalOf(error: unknown): JobRefusal {
  const message = `Kubernetes refused the Job: ${(error as Error).message}`;
  if (isDenied(error)) return { result: 'refused', reason: 'JobRefused', message };
  if (isInvalid(error)) return { result: 'invalid', message };
  if (isNotFound(error) || isNamespaceTerminating(error)) return { result: 'refused', reason: 'BoxNotReady' };
  if (isForbidden(error) && saysQuotaExceeded((error as Error).message)) {
    return { result: 'refused', reason: 'NoCapacity' };
  }
  // As the built-in admission plugins answer: somebody has to fix something.
  if (isBadRequest(error) || (isForbidden(error) && !saysNotReadyOrNoRight((error as Error).message)))
    return { result: 'refused', reason: 'JobRefused', message };
  throw error;
}

/** By an admission policy or webhook, whatever the code. */
function isDenied(error: unknown): boolean {
  return error instanceof KubeApiError && saysDeniedByAdmission(error.message);
}

/**
 * Why there is no Job, for an error of createJob that may last: undefined for an API server that is unavailable,
 * since then the status could not be written either, and for a write that was based on an older version.
 */
export function lastingFailure(error: unknown): string | undefined {
  if (!(error instanceof Error) || isRetrySoon(error)) return undefined;
  if (isUnavailable(error) && !isInternal(error) && !isUnanswered(error)) return undefined;
  return `The Job cannot be created: ${error.message}`;
}

/** No answer in time, say because a webhook takes that long: the Job may appear all the same. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof KubeConnectionError && error.failure === 'timeout';
}

/** A 500 for this Job while everything else works: a webhook failed, or its patch could not be applied. */
function isInternal(error: Error): boolean {
  return error instanceof KubeApiError && saysInternalError(error.message);
}
