/**
 * Tells browsers that something of their workspace has changed, as server-sent events; what it is they read again by the calls
 * that they make anyway. So nothing is lost when a connection breaks: the first event comes with each connection.
 */
import type { ServerResponse } from 'node:http';
import type { CacheChange } from '../kube/types.js';
import type { Clock } from '../runtime/clock.js';
import type { ApiCaches } from '../services/caches.js';
import { DATA_HEADERS } from './headers.js';

/** Browsers that a pod tells at a time. */
export const MAX_WATCHERS = 1_000;
/** Tabs that one key may have open here. */
export const MAX_WATCHERS_OF_KEY = 50;
/** Changes within this time are told at once. */
export const GATHER_MS = 500;
/** How often the key of a watcher is looked at again; also what keeps proxies from closing the connection. */
export const RECHECK_MS = 5_000;

interface Watcher {
  key: string;
  workspace: string;
  response: ServerResponse;
  /** Cancels what is planned for it. */
  planned: Set<() => void>;
  isGathering: boolean;
}

export interface WatchersDeps {
  caches: Pick<ApiCaches, 'Box' | 'Agent' | 'AgentRun'>;
  clock: Clock;
}

export class Watchers {
  readonly #deps: WatchersDeps;
  readonly #watchers = new Set<Watcher>();

  constructor(deps: WatchersDeps) {
    this.#deps = deps;
    const { Box, Agent, AgentRun } = deps.caches;
    Box.onChange(({ previous, current }) => this.#changed((current ?? previous)?.workspace));
    const inBox = ({ previous, current }: CacheChange<{ box: string }>) => {
      if (this.#watchers.size > 0) this.#changed(Box.get((current ?? previous)?.box ?? '')?.workspace);
    };
    Agent.onChange(inBox);
    AgentRun.onChange(inBox);
  }

  /** How many there are. */
  get size(): number {
    return this.#watchers.size;
  }

  /** Begins a stream; false when there are too many. It ends when `isValid` says no. */
  add(response: ServerResponse, who: { key: string; workspace: string }, isValid: () => Promise<boolean>): boolean {
    const ofKey = [...this.#watchers].filter(({ key }) => key === who.key).length;
    if (this.#watchers.size >= MAX_WATCHERS || ofKey >= MAX_WATCHERS_OF_KEY) return false;
    const watcher: Watcher = { ...who, response, planned: new Set(), isGathering: false };
    this.#watchers.add(watcher);
    response.once('close', () => this.#remove(watcher));
    response.writeHead(200, { ...DATA_HEADERS, 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    response.write('retry: 2000\n\n');
    this.#tell(watcher);
    this.#recheck(watcher, isValid);
    return true;
  }

  /** Ends all streams. */
  stop(): void {
    for (const { response } of this.#watchers) response.end();
  }

  #remove(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    for (const cancel of watcher.planned) cancel();
    watcher.planned.clear();
  }

  #changed(workspace: string | undefined): void {
    for (const watcher of this.#watchers) {
      if (watcher.workspace !== workspace || watcher.isGathering) continue;
      watcher.isGathering = true;
      this.#plan(watcher, GATHER_MS, () => {
        watcher.isGathering = false;
        this.#tell(watcher);
      });
    }
  }

  /** Whoever reads nothing is told nothing more: one event says all. */
  #tell({ response }: Watcher): void {
    if (!response.writableNeedDrain) response.write('event: change\ndata: {}\n\n');
  }

  #recheck(watcher: Watcher, isValid: () => Promise<boolean>): void {
    this.#plan(watcher, RECHECK_MS, () => {
      void isValid().then(
        (valid) => {
          if (!this.#watchers.has(watcher)) return;
          if (!valid) return void watcher.response.end('event: signed-out\ndata: {}\n\n');
          if (!watcher.response.writableNeedDrain) watcher.response.write(':\n\n');
          this.#recheck(watcher, isValid);
        },
        // The key could not be looked up: the browser connects again, and is asked for it then.
        () => watcher.response.end(),
      );
    });
  }

  #plan(watcher: Watcher, ms: number, callback: () => void): void {
    const cancel = this.#deps.clock.after(ms, () => {
      watcher.planned.delete(cancel);
      callback();
    });
    watcher.planned.add(cancel);
  }
}
