/** Whether the assertions of a case hold for what its run said and did. Each is one step of the event loop. */
import { MAX_EVAL_FAILURES, MAX_EVAL_FILE_BYTES, MAX_EVAL_SEEN_BYTES } from '../../api/v1alpha1/agent-eval.js';
import type { AgentEval, EvalAssertion, EvalFile, EvalResult } from '../../api/v1alpha1/agent-eval.js';
import { formatMicroUsd, parseMicroUsd } from '../../run/usage/money.js';
import { letOthersRun } from '../../runtime/event-loop.js';
import { cutUtf8 } from '../../runtime/text.js';
import { compileJsonSchema } from './json-schemas.js';
import { compilePattern } from './patterns.js';

export type EvalFailure = NonNullable<EvalResult['failures']>[number];

/** What is known of a run that has ended. */
export interface Evidence {
  /** The last message of the agent. */
  text: string;
  /** Names of the tools that it called, as far as the transcript has them. */
  tools: ReadonlySet<string>;
  /** False when the transcript is cut, or gone. */
  hasAllTools: boolean;
  /** Undefined when it is unknown. */
  costMicroUsd: number | undefined;
  steps: number;
}

const MAX_SHOWN_BYTES = 256;

/** What a person sees of a text: without characters that no XML can hold, since results become reports of CI. */
export function shownText(text: string, maxBytes = MAX_EVAL_SEEN_BYTES): string {
  // One long text is not walked through for its beginning.
  return cutUtf8(text.slice(0, maxBytes), maxBytes)
    .replace(/[^\P{Cc}\t\n\r]|[\ufffe\uffff]/gu, '?')
    .trim();
}

/** A failure with bounded texts. */
export function failure(assertion: string, seen: string): EvalFailure {
  return { assertion: shownText(assertion, MAX_SHOWN_BYTES), seen: shownText(seen) };
}

/** The assertions that do not hold, in their order. */
export async function failuresOf(assertions: readonly EvalAssertion[], evidence: Evidence): Promise<EvalFailure[]> {
  const failed: EvalFailure[] = [];
  for (const assertion of assertions) {
    const seen = seenInstead(assertion, evidence);
    if (seen !== undefined) failed.push(failure(nameOf(assertion), seen));
    await letOthersRun();
  }
  return failed.slice(0, MAX_EVAL_FAILURES);
}

/** Whether the assertion needs the transcript. */
export function needsTools({ toolCalled, toolNotCalled }: EvalAssertion): boolean {
  return toolCalled !== undefined || toolNotCalled !== undefined;
}

/** What no API server can check of a spec: a sentence about the first assertion that means nothing. */
export async function problemOfCases({ cases }: Pick<AgentEval['spec'], 'cases'>): Promise<string | undefined> {
  for (const { name, assertions, files } of cases) {
    const file = problemOfFiles(files ?? []);
    if (file !== undefined) return `case ${name}: files: ${file}`;
    for (const { matches, jsonSchema } of assertions) {
      const pattern = matches === undefined ? undefined : compilePattern(matches).problem;
      if (pattern !== undefined) return `case ${name}: matches: ${pattern}`;
      const schema = jsonSchema === undefined ? undefined : compileJsonSchema(jsonSchema).problem;
      if (schema !== undefined) return `case ${name}: jsonSchema: ${schema}`;
      await letOthersRun();
    }
  }
  return undefined;
}

function problemOfFiles(files: readonly EvalFile[]): string | undefined {
  const paths = files.map(({ path }) => path);
  for (const [at, { path, content }] of files.entries()) {
    const bytes = Buffer.byteLength(content);
    if (bytes > MAX_EVAL_FILE_BYTES) return `${path} has ${bytes} bytes, and may have ${MAX_EVAL_FILE_BYTES}`;
    if (path.split('/').some((part) => part === '.' || part === '..')) return `${path} has . or .. in it`;
    if (paths.indexOf(path) !== at) return `${path} is there twice`;
  }
  return undefined;
}

function nameOf(assertion: EvalAssertion): string {
  const [[kind, value] = ['', '']] = Object.entries(assertion);
  return `${kind}: ${typeof value === 'object' ? JSON.stringify(value) : value}`;
}

/** Undefined when the assertion holds. */
function seenInstead(assertion: EvalAssertion, evidence: Evidence): string | undefined {
  return (
    textInstead(assertion, evidence.text) ?? toolInstead(assertion, evidence) ?? amountInstead(assertion, evidence)
  );
}

function textInstead({ contains, equals, matches, jsonSchema }: EvalAssertion, text: string): string | undefined {
  const matched = matches === undefined || compilePattern(matches).check?.(text);
  if (matched === undefined) return `the message is too long for this expression: ${text}`;
  const holds =
    matched &&
    (contains === undefined || text.includes(contains)) &&
    (equals === undefined || text.trim() === equals.trim());
  if (!holds) return text === '' ? 'an empty message' : text;
  if (jsonSchema === undefined) return undefined;
  const { problem, check } = compileJsonSchema(jsonSchema);
  const misfit = problem ?? check?.(text);
  return misfit === undefined ? undefined : `${misfit}: ${text}`;
}

function toolInstead({ toolCalled, toolNotCalled }: EvalAssertion, evidence: Evidence): string | undefined {
  const { tools, hasAllTools } = evidence;
  const called = tools.size === 0 ? 'no tool was called' : `called: ${[...tools].join(', ')}`;
  if (toolCalled !== undefined && !tools.has(toolCalled)) {
    return hasAllTools ? called : `${called}; the transcript is not complete`;
  }
  if (toolNotCalled === undefined) return undefined;
  if (tools.has(toolNotCalled)) return called;
  return hasAllTools ? undefined : `${called}; the transcript is not complete, so nobody can tell`;
}

function amountInstead({ costBelow, stepsBelow }: EvalAssertion, evidence: Evidence): string | undefined {
  const { costMicroUsd, steps } = evidence;
  if (costBelow !== undefined && costMicroUsd === undefined) return 'the cost is unknown: its model has no price';
  if (costBelow !== undefined && (costMicroUsd ?? 0) >= (parseMicroUsd(costBelow) ?? 0)) {
    return `${formatMicroUsd(costMicroUsd ?? 0)} USD`;
  }
  return stepsBelow !== undefined && steps >= stepsBelow ? `${steps} steps` : undefined;
}
