/** An abort signal that fires after a time, or when a parent does. */
import type { Clock } from './clock.js';

export interface TimeoutSignal {
  readonly signal: AbortSignal;
  /** Whether the time ran out (as opposed to the parent's signal). */
  readonly expired: boolean;
  /** The time no longer matters; the parent still does. */
  lift(): void;
  /** Must be called when the work is over: removes the timer and the listener. */
  dispose(): void;
}

/** Unlike AbortSignal.timeout and AbortSignal.any it runs on the given clock and leaves nothing behind. */
export function timeoutSignal(clock: Clock, ms: number, parent?: AbortSignal): TimeoutSignal {
  const controller = new AbortController();
  const onParentAbort = () => controller.abort(parent?.reason);
  let expired = false;
  const cancel = clock.after(ms, () => {
    expired = true;
    controller.abort();
  });
  if (parent?.aborted === true) onParentAbort();
  else parent?.addEventListener('abort', onParentAbort, { once: true });
  return {
    signal: controller.signal,
    get expired() {
      return expired;
    },
    lift: cancel,
    dispose: () => {
      cancel();
      parent?.removeEventListener('abort', onParentAbort);
    },
  };
}
