/**
 * What makes a run untrusted, and what such a run may do that outlives it: the setting of its Box. Pure.
 * See docs/architecture.md#trust.
 */
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import type { Box } from '../api/v1alpha1/box.js';
import { GATEWAY_TOOLS, type GatewayToolName } from '../protocol/gateway-tools.js';

type Asking = Pick<AgentRun, 'status'>;
type Rules = Pick<Box['spec'], 'untrusted'>;

/** What is known of a run when a pod claims it. */
export interface TrustFacts {
  run: Pick<AgentRun, 'spec'>;
  /** The run of its session that it continues; undefined when there is none, or when it cannot be read. */
  previous: Pick<AgentRun, 'status'> | undefined;
  /** Whether something of the session could not be read. */
  isIncomplete: boolean;
}

/**
 * What makes a run untrusted: a trigger started it, the run that called it is untrusted, or so is the run that it continues,
 * or may be. Decided once, at the claim; from then on `status.untrusted` says so.
 */
export function startsUntrusted({ run, previous, isIncomplete }: TrustFacts): boolean {
  return (
    run.spec.trigger?.origin === 'trigger' ||
    run.spec.parent?.untrusted === true ||
    previous?.status?.untrusted === true ||
    // Nobody can tell now.
    (previous === undefined && isIncomplete)
  );
}

/** Whether the run came from outside, as its claim said. */
export function isUntrusted({ status }: Pick<AgentRun, 'status'>): boolean {
  return status?.untrusted === true;
}

/** Whether the run does not have the tool, whatever its agent allows. */
export function refuses({ untrusted }: Rules, run: Asking, name: GatewayToolName): boolean {
  if (!isUntrusted(run)) return false;
  const { family } = GATEWAY_TOOLS[name];
  if (family === 'memory') return untrusted.memory === 'refuse' && name !== 'memory_search';
  if (family === 'agents') return untrusted.callAgents === 'refuse';
  return family === 'self' && untrusted.selfImprovement === 'refuse';
}

/** Whether what the run changes about its agent waits for a person. */
export function proposes(run: Asking, { untrusted }: Rules): boolean {
  return isUntrusted(run) && untrusted.selfImprovement === 'propose';
}
