/** Objects of a real API server, as tests make, read and await them. */
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { isNotFound } from '../../src/kube/errors.js';
import { apiVersionOf } from '../../src/kube/owner-references.js';
import type { KubeApi, ObjectRef } from '../../src/kube/types.js';
import { eventually } from './api-server.js';

/** Creates an object as a manifest says it: what the CRD has a default for may be missing. */
export async function createObject<T extends KubeObject>(
  api: Pick<KubeApi, 'create'>,
  type: ResourceType<T>,
  metadata: KubeObject['metadata'],
  spec?: object,
): Promise<T> {
  const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...(spec === undefined ? {} : { spec }) };
  return await api.create(type, object as unknown as T);
}

/** The object; undefined when it is not there. */
export async function readObject<T extends KubeObject>(
  api: Pick<KubeApi, 'get'>,
  type: ResourceType<T>,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await api.get(type, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The object once the check holds. At the bound it fails with the object as it was last and the `errors` of those who work on it. */
export async function objectWhen<T extends KubeObject>(
  api: Pick<KubeApi, 'get'>,
  type: ResourceType<T>,
  ref: ObjectRef,
  check: (object: T) => boolean,
  errors: readonly string[] = [],
): Promise<T> {
  let last: T | undefined;
  const holds = async () => {
    last = await readObject(api, type, ref);
    return last !== undefined && check(last);
  };
  await eventually(holds, `${type.kind} ${ref.name}`).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(last)} ${errors.slice(-3).join('\n')}`);
  });
  return last as T;
}

/** Resolves when the object is not there any more. */
export async function objectGone(api: Pick<KubeApi, 'get'>, type: ResourceType, ref: ObjectRef): Promise<void> {
  const isGone = async () => (await readObject(api, type, ref)) === undefined;
  await eventually(isGone, `${type.kind} ${ref.name} is still there`);
}
