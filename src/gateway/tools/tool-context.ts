/** What every tool of the gateway gets, and how it says no. */
import { objectKey } from '../../api/meta.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache } from '../../kube/types.js';
import type { ToolAnswer } from '../../protocol/run.js';
import type { ServedRun } from '../runs/served-runs.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';

export interface ToolContext {
  namespace: string;
  /** A working run; its status is the newest that is known. */
  run: AgentRun;
  served: ServedRun;
  agent: GatewayAgent;
  box: GatewayBox;
  /** Number of the call in its run: with the run's UID it names what the call makes, so that a repeated one makes nothing new. */
  call: number;
  /** What the runner sent besides the input, base64. */
  content?: string | undefined;
}

/** The call is not possible; the message is for the model: what is wrong and what it can do. */
export class ToolRefusal extends Error {
  override readonly name = 'ToolRefusal';
}

/** An answer that is no error. */
export function answer(result: Record<string, unknown>): ToolAnswer {
  return { result, isError: false };
}

/** An answer that is an error, in the words of a {@link ToolRefusal}. */
export function refusal(error: string): ToolAnswer {
  return { result: { error }, isError: true };
}

/** The agent of the run, and not a namesake that was made later. */
export function agentOf(run: AgentRun, agents: Pick<Cache<GatewayAgent>, 'get'>): GatewayAgent | undefined {
  const agent = agents.get(objectKey({ namespace: run.metadata.namespace ?? '', name: run.spec.agent }));
  const uid = run.spec.agentUid ?? run.status?.agentUid;
  return uid === undefined || agent?.uid === uid ? agent : undefined;
}
