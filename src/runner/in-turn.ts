/**
 * One model call at a time: a gateway serves no more of a run, because what a call may use is known to its budgets only when the
 * one before has ended. Subtasks that work at the same time take turns, in the order in which they ask.
 */
export function inTurn(send: typeof globalThis.fetch): typeof globalThis.fetch {
  let last: Promise<unknown> = Promise.resolve();
  return (input, init) => {
    const mine = last.then(() => {
      init?.signal?.throwIfAborted();
      return send(input, init);
    });
    last = mine.catch(() => undefined);
    return mine;
  };
}
