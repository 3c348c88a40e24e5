/** Many keys that become due at their own times, on one timer of the clock. */
import type { Clock } from './clock.js';

interface Entry {
  key: string;
  dueAt: number;
}

/** Node fires longer timers at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class TimerHeap {
  readonly #clock: Clock;
  readonly #onDue: (key: string) => void;
  /** A binary heap by dueAt; an entry whose time is not the one in #due was replaced by an earlier one. */
  readonly #heap: Entry[] = [];
  readonly #due = new Map<string, number>();
  #timer: { at: number; cancel: () => void } | undefined;

  constructor(clock: Clock, onDue: (key: string) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Keys that wait. */
  get size(): number {
    return this.#due.size;
  }

  /** Of several times for one key the earliest counts. */
  add(key: string, ms: number): void {
    const dueAt = this.#clock.monotonic() + ms;
    const known = this.#due.get(key);
    if (known !== undefined && known <= dueAt) return;
    this.#due.set(key, dueAt);
    this.#heap.push({ key, dueAt });
    this.#siftUp(this.#heap.length - 1);
    this.#arm();
  }

  clear(): void {
    this.#heap.length = 0;
    this.#due.clear();
    this.#arm();
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (let first = this.#heap[0]; first !== undefined && first.dueAt <= now; first = this.#heap[0]) {
      this.#removeFirst();
      if (this.#due.get(first.key) !== first.dueAt) continue;
      this.#due.delete(first.key);
      this.#onDue(first.key);
    }
    this.#arm();
  }

  /** Keeps one timer, for the earliest entry. */
  #arm(): void {
    const first = this.#heap[0];
    if (this.#timer !== undefined && this.#timer.at === first?.dueAt) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (first === undefined) return;
    // Timers may fire a little early: rounding up makes the entry due when they do.
    const ms = Math.min(MAX_TIMER_MS, Math.ceil(Math.max(0, first.dueAt - this.#clock.monotonic())));
    this.#timer = { at: first.dueAt, cancel: this.#clock.after(ms, () => this.#fire()) };
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#siftDown(0);
  }

  #siftUp(index: number): void {
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#dueAt(parent) <= this.#dueAt(index)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  #siftDown(index: number): void {
    for (;;) {
      const left = 2 * index + 1;
      const smallest = this.#dueAt(left + 1) < this.#dueAt(left) ? left + 1 : left;
      if (this.#dueAt(index) <= this.#dueAt(smallest)) return;
      this.#swap(index, smallest);
      index = smallest;
    }
  }

  #dueAt(index: number): number {
    return this.#heap[index]?.dueAt ?? Infinity;
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (first === undefined || second === undefined) return;
    this.#heap[a] = second;
    this.#heap[b] = first;
  }
}
