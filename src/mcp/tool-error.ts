/** An error of a tool as the sentence that its caller sees (spec 7). What is not the caller's business stays in the log. */
import { KubeApiError, KubeConnectionError, isConflict } from '../kube/errors.js';
import { StartRunError } from '../run/start/start-run.js';
import { UserError } from '../api/user-error.js';

export interface ToolFailure {
  message: string;
  /** True for faults of ours or of the cluster: they go to the log with their cause. */
  fault: boolean;
}

const UNCLEAR =
  'the Kubernetes API did not answer in time; look with a list or get tool whether it happened before trying again';

export function toolFailure(error: unknown): ToolFailure {
  if (error instanceof UserError) return { message: error.message, fault: false };
  if (error instanceof StartRunError) return startFailure(error);
  if (isConflict(error)) {
    return { message: 'somebody else changed the object at the same time: try again', fault: false };
  }
  if (error instanceof KubeApiError) return { message: refusal(error), fault: true };
  if (error instanceof KubeConnectionError) return { message: UNCLEAR, fault: true };
  return { message: 'internal error: the call failed; the log of the API pod has the cause', fault: true };
}

function startFailure(error: StartRunError): ToolFailure {
  if (error.kind === 'too-large') return { message: error.message, fault: false };
  if (error.kind === 'unconfirmed') return { message: UNCLEAR, fault: true };
  const cause = error.cause instanceof KubeApiError ? refusal(error.cause) : error.message;
  return { message: `the run was not started: ${cause}`, fault: true };
}

/** The API server's own words name fields and rules; values are cut out of them already (src/kube/errors.ts). */
function refusal(error: KubeApiError): string {
  if (error.status === 422) return `Kubernetes refused the values: ${error.message}`;
  if (error.status === 403)
    return 'the cluster refused the change (quota, admission policy or a namespace that is being deleted): ask the platform team';
  return error.status >= 500 || error.status === 429
    ? UNCLEAR
    : `Kubernetes refused the call (${error.status} ${error.reason})`;
}
