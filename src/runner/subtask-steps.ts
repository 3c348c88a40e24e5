/**
 * How the steps of a run are shared with its subtasks: calls of one answer get equal parts of what is left, one step stays for
 * the run itself, and what a subtask does not use goes to those that begin later.
 */
export interface StepShare {
  /** The model has answered: so many steps may others use, and these tools are called. */
  begin(left: number, tools: readonly string[]): void;
  /** What others used since it was asked last. */
  settle(): number;
}

export class SubtaskSteps implements StepShare {
  readonly #tool: string;
  #left: number;
  /** Calls of the answer that have not begun. */
  #calls = 1;
  #used = 0;

  /** `tool` starts subtasks. `left` may be used before the first answer, by a call that a person approved. */
  constructor(tool: string, left: number) {
    this.#tool = tool;
    this.#left = left;
  }

  begin(left: number, tools: readonly string[]): void {
    this.#left = left;
    this.#calls = tools.filter((name) => name === this.#tool).length;
  }

  /** The steps that a subtask gets; 0 when none are left. */
  take(): number {
    const part = Math.floor(this.#left / Math.max(1, this.#calls));
    const steps = Math.max(0, Math.min(this.#left, Math.max(1, part)));
    this.#calls -= 1;
    this.#left -= steps;
    return steps;
  }

  /** A subtask has ended. */
  giveBack(taken: number, used: number): void {
    this.#left += Math.max(0, taken - used);
    this.#used += used;
  }

  settle(): number {
    const used = this.#used;
    this.#used = 0;
    return used;
  }
}
