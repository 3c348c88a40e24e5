/** The typed client: turns kinds and options into requests, and nothing more. All objects are plain JSON. */
import type { KubeObject, ResourceType } from '../api/meta.js';
import { isGone } from './errors.js';
import { apiVersionOf } from './owner-references.js';
import type { KubeRequest, KubeTransport } from './transport.js';
import type { CallOptions, DeleteOptions, GetOptions, KubeApi, ListOptions, ObjectRef, PatchOptions } from './types.js';

/** Large lists come in pages of this size (a page of 500 costs the API server 0.16 s at most). */
const PAGE_SIZE = 500;
/** How often a list begins again because its continue token became too old. */
const MAX_LIST_STARTS = 3;

const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

const PATCH_CONTENT_TYPES = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** A client over one transport; see {@link KubeApi} for what the calls promise. */
export function createKubeApi(transport: KubeTransport): KubeApi {
  return new TransportKubeApi(transport);
}

class TransportKubeApi implements KubeApi {
  readonly #transport: KubeTransport;

  constructor(transport: KubeTransport) {
    this.#transport = transport;
  }

  async get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options: GetOptions = {}): Promise<T> {
    const accept = options.metadataOnly === true ? { accept: METADATA } : {};
    const path = objectPath(type, ref);
    return this.#call({ verb: 'get', resource: type.plural, method: 'GET', path, ...accept }, options);
  }

  async list<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions = {},
  ): Promise<{ items: T[]; resourceVersion: string }> {
    for (let starts = 1; ; starts++) {
      const items: T[] = [];
      try {
        const resourceVersion = await listPages(this.#transport, type, options, (page) => items.push(...page));
        return { items, resourceVersion };
      } catch (error) {
        if (!isGone(error) || starts >= MAX_LIST_STARTS) throw error;
      }
    }
  }

  async create<T extends KubeObject>(type: ResourceType<T>, object: T, options: CallOptions = {}): Promise<T> {
    const path = collectionPath(type, object.metadata.namespace, 'needed');
    return this.#call({ verb: 'create', resource: type.plural, method: 'POST', path, body: object }, options);
  }

  async replace<T extends KubeObject>(type: ResourceType<T>, object: T, options: CallOptions = {}): Promise<T> {
    const path = objectPath(type, object.metadata);
    return this.#call({ verb: 'update', resource: type.plural, method: 'PUT', path, body: object }, options);
  }

  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    body: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const suffix = options.subresource === undefined ? '' : `/${options.subresource}`;
    const query = { fieldManager: options.fieldManager, force: options.type === 'apply' ? 'true' : undefined };
    const request: KubeRequest = {
      verb: 'patch',
      resource: type.plural + suffix,
      method: 'PATCH',
      path: objectPath(type, ref) + suffix,
      query,
      body,
      contentType: PATCH_CONTENT_TYPES[options.type],
    };
    return this.#call(request, options);
  }

  async delete<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<void> {
    const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
    // JSON leaves undefined fields out.
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid, resourceVersion },
      propagationPolicy,
      gracePeriodSeconds,
    };
    const path = objectPath(type, ref);
    await this.#call({ verb: 'delete', resource: type.plural, method: 'DELETE', path, body }, options);
  }

  async #call<T>(request: KubeRequest, options: CallOptions): Promise<T> {
    const signal = options.signal === undefined ? {} : { signal: options.signal };
    return (await this.#transport.request({ ...request, ...signal })) as T;
  }
}

interface ListPage<T> {
  metadata: { resourceVersion: string; continue?: string };
  items: T[] | null;
}

/**
 * Reads a list page by page (empty resourceVersion: with `0` the server would ignore the limit) and hands
 * over each page; resolves with the list's resourceVersion. Rejects with 410 when the list must begin again.
 */
export async function listPages<T extends KubeObject>(
  transport: KubeTransport,
  type: ResourceType<T>,
  options: ListOptions,
  onPage: (items: T[]) => void,
): Promise<string> {
  const { labelSelector, fieldSelector, signal, pageSize = PAGE_SIZE } = options;
  const path = collectionPath(type, options.namespace, 'optional');
  const accept = options.metadataOnly === true ? { accept: METADATA_LIST } : {};
  let next: string | undefined;
  for (;;) {
    const page = (await transport.request({
      verb: 'list',
      resource: type.plural,
      method: 'GET',
      path,
      query: { limit: String(pageSize), continue: next, labelSelector, fieldSelector },
      ...accept,
      ...(signal === undefined ? {} : { signal }),
    })) as ListPage<T>;
    onPage((page.items ?? []).map((item) => withKind(type, item)));
    next = page.metadata.continue;
    if (next === undefined || next === '') return page.metadata.resourceVersion;
  }
}

/** Items of built-in lists carry no kind; with it they have the same shape as in a watch. */
function withKind<T extends KubeObject>(type: ResourceType<T>, item: T): T {
  item.apiVersion ??= apiVersionOf(type);
  item.kind ??= type.kind;
  return item;
}

/** The path of a collection; `namespace` absent means all namespaces, which only reads may ask for. */
export function collectionPath(type: ResourceType, namespace: string | undefined, need: 'needed' | 'optional'): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  if (!type.namespaced) return `${root}/${type.plural}`;
  if (namespace === undefined) {
    if (need === 'needed') throw new Error(`${type.kind} lives in a namespace: name it`);
    return `${root}/${type.plural}`;
  }
  return `${root}/namespaces/${segment(namespace)}/${type.plural}`;
}

function objectPath(type: ResourceType, ref: ObjectRef): string {
  return `${collectionPath(type, ref.namespace, 'needed')}/${segment(ref.name)}`;
}

/** An empty or dotted name would address the collection: a delete would then take everything. */
function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') throw new Error(`"${name}" is no name of a Kubernetes object`);
  return encodeURIComponent(name);
}
