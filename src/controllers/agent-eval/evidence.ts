/** What is known of a run of an eval that has ended: one GET, and the chunks of its transcript where they are needed. */
import { objectKey } from '../../api/meta.js';
import { acceptedAt } from '../../api/names.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { RunEvent } from '../../protocol/run.js';
import { isTerminal } from '../../run/status.js';
import { parseMicroUsd } from '../../run/usage/money.js';
import { cutUtf8 } from '../../runtime/text.js';
import { readTranscript } from '../../transcript/chunk-store.js';
import type { Evidence } from './assertions.js';

/** Assertions see this much of the last message: they are checked on the thread of the leading controller. */
export const MAX_EVIDENCE_TEXT_BYTES = 32 * 1024;

export interface EvidenceDependencies {
  api: Pick<KubeApi, 'get'>;
  runs: Pick<Cache<ControllerRun>, 'get'>;
}

/** `waits`: it works, or its usage still grows. `gone`: there is none of this name and of this eval. */
export type EndedRun = { kind: 'waits' } | { kind: 'gone' } | { kind: 'ended'; run: AgentRun };

/** A run of the eval with that UID. A cache that does not show it may be behind, so the API server is asked. */
export async function endedRun(
  { api, runs }: EvidenceDependencies,
  ref: { namespace: string; name: string },
  evalUid: string | undefined,
  signal: AbortSignal,
): Promise<EndedRun> {
  const known = runs.get(objectKey(ref));
  if (known !== undefined && !isSettled(known)) return { kind: 'waits' };
  const run = await orUndefined(api.get(AgentRuns, ref, { signal }));
  if (run === undefined || run.spec.trigger?.uid !== evalUid) return { kind: 'gone' };
  return isSettled(run) ? { kind: 'ended', run } : { kind: 'waits' };
}

/** Whether usage, and with it the cost, will not change any more. */
export function isSettled(run: Pick<ControllerRun, 'status'>): boolean {
  return isTerminal(run) && run.status?.usageFinal === true;
}

/** What assertions are about. */
export async function evidenceOf(
  api: Pick<KubeApi, 'get'>,
  run: AgentRun,
  want: { tools: boolean },
): Promise<Evidence> {
  const { output = '', outputTruncated, usage } = run.status ?? {};
  const isNeeded = want.tools || outputTruncated === true;
  const { events, state } = isNeeded ? await readTranscript(api, run) : { events: [], state: 'full' };
  const whole = events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).at(-1);
  return {
    text: cutUtf8(whole ?? output, MAX_EVIDENCE_TEXT_BYTES),
    tools: new Set(events.flatMap(toolsIn)),
    hasAllTools: state === 'full',
    costMicroUsd: parseMicroUsd(usage?.costUsd),
    steps: usage?.steps ?? 0,
  };
}

/** Seconds from acceptance to end. */
export function secondsOf(run: AgentRun): number {
  const ended = Date.parse(run.status?.finishedAt ?? '');
  const seconds = (ended - Date.parse(acceptedAt(run))) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
}

function toolsIn(event: RunEvent): string[] {
  if (event.type === 'tool') return [event.tool];
  if (event.type !== 'message' || event.message.role !== 'assistant') return [];
  return (event.message.toolCalls ?? []).map(({ tool }) => tool);
}
