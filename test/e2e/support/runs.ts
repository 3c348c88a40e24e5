/** AgentRuns as kubectl shows them. */
import { eventually, getObject, kubectlOk } from './install.js';
import type { Tenant } from './tenant.js';

export interface RunObject {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  spec: Record<string, unknown>;
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    output?: string;
    provider?: string;
    model?: string;
    claim?: { podName: string; podUid: string; gatewayPod: string; epoch: number };
    usage?: { steps: number; inputTokens: number; outputTokens: number; totalTokens: number; costUsd?: string };
    usageFinal?: boolean;
    transcript?: { chunks: number };
    atRest?: boolean;
    sessionId?: string;
    retriedBy?: string;
    openCall?: { inputTokens: number; outputTokens: number; costUsd?: string };
  };
}

/** A five-line manifest. */
export async function createRun(tenant: Tenant, agent: string, message: string, name: string): Promise<void> {
  const manifest = `apiVersion: boxwright.dev/v1alpha1
kind: AgentRun
metadata: { name: ${name}, namespace: ${tenant.namespace} }
spec: { agent: ${agent}, message: ${JSON.stringify(message)} }
`;
  await kubectlOk(['create', '-f', '-'], manifest);
}

export function readRun(tenant: Tenant, name: string): Promise<RunObject | undefined> {
  return getObject<RunObject>('agentrun', name, tenant.namespace);
}

/** The run once it has ended. */
export function ended(tenant: Tenant, name: string): Promise<RunObject> {
  return eventually(`run ${name} ends`, async () => {
    const run = await readRun(tenant, name);
    return run?.status?.phase !== undefined && run.status.phase !== 'running' ? run : undefined;
  });
}

/** The run once it has ended and its usage will not change any more. */
export function settled(tenant: Tenant, name: string): Promise<RunObject> {
  return eventually(`run ${name} has ended and its usage is final`, async () => {
    const run = await readRun(tenant, name);
    return run?.status?.usageFinal === true ? run : undefined;
  });
}

/** Asks for the end of a run as a person does with kubectl; `as` are more arguments, such as who asks. */
export async function requestCancel(tenant: Tenant, name: string, as: readonly string[] = []): Promise<void> {
  const patch = ['patch', 'agentrun', name, '-n', tenant.namespace, '--type=merge'];
  await kubectlOk([...as, ...patch, '-p', '{"spec":{"cancelRequested":true}}']);
}

/** The run once a pod has claimed it. */
export function claimed(tenant: Tenant, name: string): Promise<RunObject> {
  return eventually(`run ${name} is claimed`, async () => {
    const run = await readRun(tenant, name);
    return run?.status?.claim === undefined ? undefined : run;
  });
}

/** The run once a model has answered and the step is counted. */
export function stepped(tenant: Tenant, name: string): Promise<RunObject> {
  return eventually(`run ${name} has made a step`, async () => {
    const run = await readRun(tenant, name);
    return (run?.status?.usage?.steps ?? 0) > 0 ? run : undefined;
  });
}

/** The run once it shows this reason. */
export function withReason(tenant: Tenant, name: string, reason: string): Promise<RunObject> {
  return eventually(`run ${name} shows ${reason}`, async () => {
    const run = await readRun(tenant, name);
    return run?.status?.reason === reason ? run : undefined;
  });
}
