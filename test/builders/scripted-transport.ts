/** A transport whose answers a test writes by hand: lists in pages, and one open watch at a time. */
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { KubeConnectionError } from '../../src/kube/errors.js';
import type { KubeRequest, KubeTransport } from '../../src/kube/transport.js';

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export const ConfigMaps: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

/** In namespace `ns`, with one value. */
export function configMap(name: string, resourceVersion: string, value = ''): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'ns', resourceVersion },
    data: { v: value },
  };
}

type Answer = { json: unknown } | { error: Error };

export class ScriptedTransport implements KubeTransport {
  readonly requests: KubeRequest[] = [];
  readonly #answers: Answer[] = [];
  #waiting: ((answer: Answer) => void) | undefined;
  #watch: ScriptedWatch | undefined;
  #watchFailures: Error[] = [];

  /** The answer to the next list, in pages; an Error in place of a page is what its request gets. */
  list(resourceVersion: string, ...pages: (ConfigMap[] | Error)[]): void {
    const all = pages.length === 0 ? [[]] : pages;
    all.forEach((page, index) => {
      const next = index + 1 < all.length ? { continue: `page-${index + 2}` } : {};
      const json = { metadata: { resourceVersion, ...next }, items: page };
      this.#answer(page instanceof Error ? { error: page } : { json });
    });
  }

  failNextList(error: Error): void {
    this.#answer({ error });
  }

  failNextWatch(error: Error): void {
    this.#watchFailures.push(error);
  }

  event(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', object: ConfigMap): void {
    this.raw({ type, object });
  }

  raw(event: unknown): void {
    this.#watch?.push(event);
  }

  /** The open watch ends: as it should, or with an error. */
  endWatch(error?: Error): void {
    this.#watch?.end(error);
  }

  get openWatches(): number {
    return this.#watch?.open === true ? 1 : 0;
  }

  request(request: KubeRequest): Promise<unknown> {
    this.requests.push(withoutUndefined(request));
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer) => ('error' in answer ? reject(answer.error) : resolve(answer.json));
      const ready = this.#answers.shift();
      if (ready === undefined) this.#waiting = settle;
      else settle(ready);
      request.signal?.addEventListener('abort', () => reject(new KubeConnectionError('aborted', 'aborted')));
    });
  }

  watch(request: KubeRequest): Promise<AsyncIterable<unknown>> {
    this.requests.push(withoutUndefined(request));
    const failure = this.#watchFailures.shift();
    if (failure !== undefined) return Promise.reject(failure);
    this.#watch = new ScriptedWatch(request.signal);
    return Promise.resolve(this.#watch.events());
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #answer(answer: Answer): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#answers.push(answer);
    else waiting(answer);
  }
}

class ScriptedWatch {
  open = true;
  readonly #events: unknown[] = [];
  #error: Error | undefined;
  #wake: () => void = () => undefined;

  constructor(signal: AbortSignal | undefined) {
    signal?.addEventListener('abort', () => this.end(new KubeConnectionError('aborted', 'aborted')));
  }

  push(event: unknown): void {
    this.#events.push(event);
    this.#wake();
  }

  end(error?: Error): void {
    if (!this.open) return;
    this.open = false;
    this.#error = error;
    this.#wake();
  }

  async *events(): AsyncIterable<unknown> {
    try {
      for (;;) {
        while (this.#events.length > 0) yield this.#events.shift();
        if (!this.open) break;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.open = false;
    }
    if (this.#error !== undefined) throw this.#error;
  }
}

function withoutUndefined(request: KubeRequest): KubeRequest {
  const query = Object.fromEntries(Object.entries(request.query ?? {}).filter(([, value]) => value !== undefined));
  return { ...request, query };
}
