/** What a terminal shows of a run: pure texts. */
import { stringify } from 'yaml';
import { QUEUE_REASONS, RUN_REASONS } from '../run/reasons.js';

/** The part of an answer of get_run that is shown; the rest passes through in JSON and YAML. */
export interface RunAnswer {
  runId: string;
  status: string;
  sessionId: string;
  reason: string | null;
  error: string | null;
  note?: string;
  steps: number;
  totalTokens: number;
  costUsd: number | null;
  output: string | null;
  pending: { kind: 'question' | 'approval'; text: string; choices: string[] | null; tool: string | null } | null;
  warnings: string[];
  toolCalls?: { step: number; tool: string; input: string; result: string; isError: boolean; durationMs: number }[];
}

export type Format = 'table' | 'json' | 'yaml';

/** Longest text of a tool call on its line; the whole stands in JSON and YAML. */
const MAX_INPUT = 160;
// Line ends and tabs stay. What an agent or a tool wrote must not steer the terminal of its reader.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** The text without what would steer a terminal. */
export function plain(text: string): string {
  return text.replace(CONTROL, '');
}

/** A value for programs: each character that could steer a terminal is escaped. */
export function structured(value: unknown, format: 'json' | 'yaml'): string {
  const text = format === 'json' ? `${JSON.stringify(value, null, 2)}\n` : stringify(value);
  const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return format === 'json' ? text.replace(CONTROL, escaped) : plain(text);
}

/** Whether the run has ended. */
export function hasEnded({ status }: Pick<RunAnswer, 'status'>): boolean {
  return status !== 'running';
}

/** The lines that are new since `before`: tool calls, warnings, and for a run that waits the note that says for what. */
export function news(before: RunAnswer | undefined, now: RunAnswer): string {
  const calls = (now.toolCalls ?? []).slice(before?.toolCalls?.length ?? 0).map((call) => {
    const input = plain(call.input).replace(/\s+/g, ' ');
    const shown = input.length > MAX_INPUT ? `${input.slice(0, MAX_INPUT)}…` : input;
    return `step ${call.step}  ${plain(call.tool)} ${shown}  ${call.isError ? 'failed' : 'ok'}, ${call.durationMs} ms`;
  });
  const warnings = now.warnings.slice(before?.warnings.length ?? 0).map((text) => `warning: ${plain(text)}`);
  const note = now.note !== undefined && now.note !== before?.note ? [plain(now.note)] : [];
  return [...note, ...calls, ...warnings].map((line) => `${line}\n`).join('');
}

/** How the run stands: output, what it waits for, and one line with reason, steps, tokens and cost. */
export function summary(run: RunAnswer): string {
  const cost = run.costUsd === null ? 'cost unknown' : `$${run.costUsd.toFixed(6)}`;
  const { pending } = run;
  const choices = pending?.choices ? ` (${pending.choices.join(', ')})` : '';
  const lines = [
    run.output === null || run.output === '' ? [] : [run.output],
    pending === null
      ? []
      : [`waits for ${pending.kind === 'approval' ? 'approval' : 'an answer'}: ${pending.text}${choices}`],
    run.error === null ? [] : [`error: ${run.error}`],
    [
      `${run.runId}: ${run.status}, ${run.reason ?? 'no reason yet'}, ${run.steps} steps, ${run.totalTokens} tokens, ${cost}`,
    ],
  ];
  return lines
    .flat()
    .map((line) => `${plain(line)}\n`)
    .join('');
}

/** Reason, cause and next step of docs/reasons.md. */
export function why(run: RunAnswer): { reason: string; cause: string; nextStep: string; detail: string } {
  const reason = run.reason ?? 'Accepted';
  const all = { ...QUEUE_REASONS, ...RUN_REASONS } as Record<string, { cause: string; nextStep: string }>;
  const known = Object.hasOwn(all, reason) ? all[reason] : undefined;
  return {
    reason,
    cause: known?.cause ?? 'The run was accepted, and the controller has not said more yet.',
    nextStep: known?.nextStep ?? 'None: ask again in a moment; if it lasts, look at the logs of the controller.',
    detail: run.error ?? run.note ?? '',
  };
}
