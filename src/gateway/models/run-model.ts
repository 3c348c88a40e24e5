/** What the calls of a run have shown of one model: how its provider counts, and what it does not take. */
import type { OptionalParameter } from '../../models/optional-parameters.js';
import { CallEstimates } from './call-estimates.js';

export class RunModel {
  readonly estimates: CallEstimates;
  /** What calls are sent without, and why, for a person. */
  readonly #refused = new Map<OptionalParameter, string>();
  readonly #told = new Set<OptionalParameter>();

  constructor(provider: string) {
    this.estimates = new CallEstimates(provider);
  }

  /** From now on no call has the parameter. */
  refuses(parameter: OptionalParameter, why: string): void {
    this.#refused.set(parameter, why);
  }

  /** Of these, the ones that the model takes as far as anybody knows. */
  taken(parameters: readonly OptionalParameter[]): OptionalParameter[] {
    return parameters.filter((parameter) => !this.#refused.has(parameter));
  }

  /** For the transcript: what of these was left out and has not been told yet. */
  news(parameters: readonly OptionalParameter[]): string[] {
    return parameters.flatMap((parameter) => {
      const why = this.#refused.get(parameter);
      if (why === undefined || this.#told.has(parameter)) return [];
      this.#told.add(parameter);
      return [`The model works without parameter ${parameter} of the agent: ${why}`];
    });
  }
}
