/**
 * A reconcile that reads as a table of contents: named steps in order, conditions and status set in memory, and one
 * status write at the end, only when something really changed (it carries the version it saw).
 */
import type { KubeObject } from '../api/meta.js';
import type { ReconcileResult } from './controller.js';

/** What a step says about the rest of the list. */
export interface StepResult {
  /** The steps after this one are not run. */
  readonly stop: boolean;
  /** Look at the object again after this many milliseconds; of several the smallest counts. */
  readonly requeueAfterMs?: number;
}

/** On to the next step. */
export const CONTINUE: StepResult = { stop: false };
/** Nothing more to do for now. */
export const DONE: StepResult = { stop: true };

/** Stop here and look again later: something is awaited that no watch tells us of. */
export function requeueAfter(ms: number): StepResult {
  return { stop: true, requeueAfterMs: ms };
}

/** On to the next step, and look again later: a bound is running. */
export function continueAndRequeueAfter(ms: number): StepResult {
  return { stop: false, requeueAfterMs: ms };
}

type WithStatus = KubeObject & { status?: unknown };

export interface Step<T extends WithStatus, Inputs> {
  /** Is put on the error that the step throws, as `step`, so that the log shows it. */
  name: string;
  /**
   * `draft` is a deep copy that belongs to this run: set `draft.status`. A step that writes the object itself (a
   * finalizer, say) copies the metadata of the answer into the draft, so that the status write names the new version.
   */
  run(draft: T, inputs: Inputs, signal: AbortSignal): Promise<StepResult> | StepResult;
}

export interface StepRun<T extends WithStatus, Inputs> {
  /** As read from a cache or the API server; never changed. */
  object: T;
  inputs: Inputs;
  steps: readonly Step<T, Inputs>[];
  /** PUT of the status subresource. */
  writeStatus: (object: T, signal: AbortSignal) => Promise<unknown>;
  signal: AbortSignal;
}

/**
 * Runs the steps until one stops or throws, then writes the status if it changed. When a step threw, what it and the
 * steps before it put into the status is written all the same, and the step's error is thrown.
 */
export async function runSteps<T extends WithStatus, Inputs>(run: StepRun<T, Inputs>): Promise<ReconcileResult> {
  const draft = structuredClone(run.object);
  let result: ReconcileResult;
  try {
    result = await runInOrder(run, draft);
  } catch (error) {
    await writeChangedStatus(run, draft).catch(() => undefined); // the step's error comes first; the retry writes again
    throw error;
  }
  await writeChangedStatus(run, draft);
  return result;
}

async function runInOrder<T extends WithStatus, Inputs>(run: StepRun<T, Inputs>, draft: T): Promise<ReconcileResult> {
  let requeueAfterMs = Infinity;
  for (const step of run.steps) {
    run.signal.throwIfAborted();
    const result = await runStep(step, draft, run);
    requeueAfterMs = Math.min(requeueAfterMs, result.requeueAfterMs ?? Infinity);
    if (result.stop) break;
  }
  return requeueAfterMs === Infinity ? {} : { requeueAfterMs };
}

async function runStep<T extends WithStatus, Inputs>(
  step: Step<T, Inputs>,
  draft: T,
  run: StepRun<T, Inputs>,
): Promise<StepResult> {
  try {
    return await step.run(draft, run.inputs, run.signal);
  } catch (error) {
    // The error itself goes on: its class decides about the retry.
    if (error instanceof Error) Object.assign(error, { step: step.name });
    throw error;
  }
}

async function writeChangedStatus<T extends WithStatus, Inputs>(run: StepRun<T, Inputs>, draft: T): Promise<void> {
  if (draft.status === undefined || sameStatus(run.object.status, draft.status)) return;
  await run.writeStatus(draft, run.signal);
}

/** Deep comparison of JSON that takes absent and undefined as equal and does not look at `lastTransitionTime`. */
export function sameStatus(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  keys.delete('lastTransitionTime');
  for (const key of keys) if (!sameStatus(a[key], b[key])) return false;
  return true;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object';
}
