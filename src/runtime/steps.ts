import type { KubeObject } from '../api/meta.js';
import type { ReconcileResult } from './controller.js';
/** What a step says about the rest of the list. */
export interface StepResult {
  stop: boolean;
  requeueAfterMs?: number;
}
export declare const CONTINUE: StepResult;
export declare const DONE: StepResult;
/** Stop here, look again later. */
export declare function requeueAfter(ms: number): StepResult;
/** Go on with the next step, but look again later. */
export declare function continueAndRequeueAfter(ms: number): StepResult;
export interface Step<T extends KubeObject, Inputs> {
  name: string;
  /** `draft` is a private deep copy of the object: set `draft.status`; a step that writes the object itself copies the answer's metadata into the draft. */
  run(draft: T, inputs: Inputs, signal: AbortSignal): Promise<StepResult> | StepResult;
}
export interface StepRun<T extends KubeObject, Inputs> {
  object: T;
  inputs: Inputs;
  steps: readonly Step<T, Inputs>[];
  /** One write at the end, only when the status really changed; carries the draft's resourceVersion. */
  writeStatus: (object: T, signal: AbortSignal) => Promise<unknown>;
  signal: AbortSignal;
}
export declare function runSteps<T extends KubeObject, Inputs>(run: StepRun<T, Inputs>): Promise<ReconcileResult>;
