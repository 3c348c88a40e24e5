/**
 * The calls of a run in the order in which the model made them: those that may stand beside each other do, any other one waits
 * for all before it, and all behind it wait for it. So what is written, asked or approved happens as if there were one at a time.
 */
export class CallOrder {
  /** Settles with the last call that stands alone. */
  #alone: Promise<unknown> = Promise.resolve();
  /** Calls since then that are under way. */
  readonly #beside = new Set<Promise<unknown>>();

  /** Gives the result of the work, or its error. A call that waits for this one waits for `after` as well. */
  run<T>(isParallel: boolean, work: () => Promise<T>, after?: Promise<void>): Promise<T> {
    const before = isParallel ? this.#alone : Promise.all([this.#alone, ...this.#beside]);
    const mine = before.then(work);
    const settled: Promise<unknown> = mine
      .then(
        () => after,
        () => after,
      )
      .then(() => this.#beside.delete(settled));
    if (isParallel) this.#beside.add(settled);
    else this.#alone = settled;
    return mine;
  }
}
