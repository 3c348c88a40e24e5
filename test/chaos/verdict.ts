/** The bookkeeping of a chaos run, and what it proves. Pure. */

/** What became of one webhook. */
export type Answer =
  | { kind: 'accepted'; runId: string }
  /** An HTTP answer other than 202. */
  | { kind: 'refused'; status: number }
  /** The connection broke, or nothing came in time: a run may or may not exist. */
  | { kind: 'unanswered' };

export interface ObservedRun {
  name: string;
  phase: string;
  reason: string;
  /** Every pod that the run's claim named while it was watched. */
  claimPods: readonly { uid: string; name: string }[];
  /** What the shell of each execution left in the transcript: the name of its pod. */
  marks: readonly string[];
  /** The same outside of the cluster, also of executions whose transcript was lost; absent where it was not measured. */
  outside?: readonly string[];
}

export interface Evidence {
  answers: readonly Answer[];
  runs: readonly ObservedRun[];
  fireCountBefore: number;
  fireCountAfter: number;
}

export interface Check {
  promise: string;
  holds: boolean;
  /** The numbers, or the first offenders. */
  found: string;
}

const TERMINAL = new Set(['done', 'error', 'cancelled']);
const SHOWN = 5;

export function judge(evidence: Evidence): Check[] {
  const { answers, runs } = evidence;
  const accepted = answers.flatMap((answer) => (answer.kind === 'accepted' ? [answer.runId] : []));
  const unanswered = answers.filter(({ kind }) => kind === 'unanswered').length;
  const names = new Set(runs.map(({ name }) => name));
  const open = runs.filter(({ phase }) => !TERMINAL.has(phase)).map(({ name }) => name);
  const grown = evidence.fireCountAfter - evidence.fireCountBefore;
  const surplus = runs.length - new Set(accepted).size;
  return [
    none(
      'every 202 is an AgentRun',
      accepted.filter((id) => !names.has(id)),
      `${accepted.length} answers 202`,
    ),
    none('no two answers name the same run', repeated(accepted), `${new Set(accepted).size} ids`),
    none('every AgentRun has ended', open, `${runs.length} runs`),
    {
      promise: 'fireCount grew by the AgentRuns',
      holds: grown === runs.length,
      found: `${grown} fires, ${runs.length} runs`,
    },
    {
      promise: 'runs that nobody was told of ≤ requests without an answer',
      holds: surplus >= 0 && surplus <= unanswered,
      found: `${surplus} runs, ${unanswered} requests`,
    },
    none('no run had two claims', runs.filter((run) => podsOf(run).length > 1).map(nameOf), `${runs.length} runs`),
    none(
      'no run was executed twice: at most one mark, of the pod that claimed it',
      runs.filter((run) => !isExecutedOnce(run)).map(nameOf),
      `${runs.filter(({ marks }) => marks.length === 1).length} marks`,
    ),
    outsideCheck(
      'no run was executed twice: at most one mark outside',
      runs,
      ({ outside = [], claimPods }) => outside.length === 0 || isOnce(outside, claimPods),
    ),
    outsideCheck(
      'every run that is done left its mark outside',
      runs,
      ({ phase, outside = [] }) => phase !== 'done' || outside.length === 1,
    ),
    none(
      'every run that is done left its mark',
      runs.filter(({ phase, marks }) => phase === 'done' && marks.length === 0).map(nameOf),
      `${runs.filter(({ phase }) => phase === 'done').length} runs done`,
    ),
    none(
      'every run that failed says why',
      runs.filter(({ phase, reason }) => phase === 'error' && reason === '').map(nameOf),
      reasons(runs),
    ),
  ];
}

function isExecutedOnce({ marks, claimPods }: ObservedRun): boolean {
  return marks.length === 0 || isOnce(marks, claimPods);
}

function isOnce(marks: readonly string[], claimPods: ObservedRun['claimPods']): boolean {
  return marks.length === 1 && claimPods.some(({ name }) => hostname(name) === marks[0]);
}

function outsideCheck(promise: string, runs: readonly ObservedRun[], holds: (run: ObservedRun) => boolean): Check {
  const measured = runs.filter(({ outside }) => outside !== undefined);
  if (measured.length === 0) return { promise, holds: true, found: 'not measured: runs do not reach this machine' };
  const marks = measured.reduce((sum, { outside = [] }) => sum + outside.length, 0);
  return none(promise, measured.filter((run) => !holds(run)).map(nameOf), `${marks} marks outside`);
}

/** Kubernetes cuts the name of a pod to a host name. */
function hostname(pod: string): string {
  return pod.slice(0, 63).replace(/[-.]+$/, '');
}

function podsOf({ claimPods }: ObservedRun): string[] {
  return [...new Set(claimPods.map(({ uid }) => uid))];
}

function nameOf({ name }: ObservedRun): string {
  return name;
}

function none(promise: string, offenders: readonly string[], found: string): Check {
  if (offenders.length === 0) return { promise, holds: true, found };
  const more = offenders.length > SHOWN ? ` and ${offenders.length - SHOWN} more` : '';
  return { promise, holds: false, found: `not: ${offenders.slice(0, SHOWN).join(', ')}${more}` };
}

function repeated(ids: readonly string[]): string[] {
  return [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))];
}

/** `Completed 190, PodDeleted 10`, the most frequent first. */
export function reasons(runs: readonly Pick<ObservedRun, 'reason'>[]): string {
  const counts = Map.groupBy(runs, ({ reason }) => reason);
  const sorted = [...counts].sort(([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1));
  return sorted.map(([reason, of]) => `${reason || '(none)'} ${of.length}`).join(', ');
}

/** The checks as lines of a table. */
export function renderChecks(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ promise }) => promise.length));
  return checks
    .map(({ promise, holds, found }) => `${holds ? 'holds ' : 'BROKEN'}  ${promise.padEnd(width)}  ${found}`)
    .join('\n');
}
