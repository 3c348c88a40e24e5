/**
 * Who waits until a watch has seen a write. resourceVersions are numbers that grow over all objects of a kind (they
 * are etcd revisions), so "at or past" is a comparison; they may exceed 2^53.
 */

interface Waiter {
  target: bigint;
  settle(reached: boolean): void;
}

export class PositionWaiters {
  readonly #waiters = new Set<Waiter>();
  #position: bigint | undefined;
  #closed = false;

  /** Resolves true when the position is at or past `resourceVersion`, false when the signal fires or after close(). */
  wait(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    const target = parseVersion(resourceVersion);
    if (target === undefined) return Promise.resolve(false);
    if (this.#position !== undefined && this.#position >= target) return Promise.resolve(true);
    if (signal.aborted || this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        target,
        settle: (reached) => {
          this.#waiters.delete(waiter);
          signal.removeEventListener('abort', onAbort);
          resolve(reached);
        },
      };
      const onAbort = () => waiter.settle(false);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  /** The watch is now at this position. It may go back when the API server's data did. */
  moved(resourceVersion: string): void {
    const position = parseVersion(resourceVersion);
    if (position === undefined) return;
    this.#position = position;
    for (const waiter of this.#waiters) if (waiter.target <= position) waiter.settle(true);
  }

  close(): void {
    this.#closed = true;
    for (const waiter of this.#waiters) waiter.settle(false);
  }
}

function parseVersion(resourceVersion: string): bigint | undefined {
  return /^\d+$/.test(resourceVersion) ? BigInt(resourceVersion) : undefined;
}
