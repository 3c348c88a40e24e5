/**
 * Keeps one built-in object as we want it: creates it when it is missing, repairs it when it has drifted, and does not write it
 * when it is right. Fields that we do not name, and labels of others, stay; annotations too, unless we say which there are.
 */
import { isDeepStrictEqual } from 'node:util';
import { objectKey } from '../../api/meta.js';
import type { KubeObject, ObjectMeta, ResourceType } from '../../api/meta.js';
import { isAlreadyExists } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import { refOf } from './finalizer.js';
import { sameQuantity } from './quantity.js';

export type ObjectWriter = Pick<KubeApi, 'get' | 'create' | 'replace'>;

export interface EnsuredObject<T extends KubeObject> {
  type: ResourceType<T>;
  /** Objects that carry our label; one that has lost it is found by name. */
  cache: Pick<Cache<T>, 'get'>;
  desired: T;
  /** What we want of an object that is there, when others have a say in it. */
  adjust?: (desired: T, actual: T) => T;
}

/** Creates or repairs. An object of our name in our namespace is ours, whoever made it. */
export async function ensureObject<T extends KubeObject>(
  api: ObjectWriter,
  { type, cache, desired, adjust = (wanted) => wanted }: EnsuredObject<T>,
  signal: AbortSignal,
): Promise<void> {
  const actual = cache.get(objectKey(desired.metadata)) ?? (await createOrRead(api, type, desired, signal));
  const wanted = adjust(desired, actual);
  if (isAsDesired(actual, wanted)) return;
  await api.replace(type, repaired(actual, wanted), { signal });
}

async function createOrRead<T extends KubeObject>(
  api: ObjectWriter,
  type: ResourceType<T>,
  desired: T,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await api.create(type, desired, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return await api.get(type, refOf(desired.metadata), { signal });
  }
}

/** Whether every field that we name has exactly our value: an added selector or rule would change what a policy means. */
export function isAsDesired(actual: KubeObject, desired: KubeObject): boolean {
  if (!isSubset(actual.metadata.labels, desired.metadata.labels)) return false;
  if (!hasOwners(actual.metadata, desired.metadata)) return false;
  const { annotations } = desired.metadata;
  if (annotations !== undefined && !isSame(actual.metadata.annotations ?? {}, annotations, [])) return false;
  const amounts = AMOUNTS[desired.kind] ?? [];
  return Object.entries(bodyOf(desired)).every(([field, value]) =>
    // The API server leaves out lists that are empty.
    isSame((actual as unknown as Record<string, unknown>)[field] ?? [], value, below(amounts, field)),
  );
}

/** The object to write: our fields over those that are there, with the version that was seen as precondition. */
export function repaired<T extends KubeObject>(actual: T, desired: T): T {
  const { ownerReferences: owners, annotations } = desired.metadata;
  return {
    ...actual,
    ...bodyOf(desired),
    metadata: {
      ...actual.metadata,
      labels: { ...actual.metadata.labels, ...desired.metadata.labels },
      ...(annotations === undefined ? {} : { annotations }),
      ...(owners === undefined ? {} : { ownerReferences: owners }),
    },
  };
}

function bodyOf(object: KubeObject): Record<string, unknown> {
  const { apiVersion: _version, kind: _kind, metadata: _metadata, ...body } = object;
  return body;
}

function isSubset(actual: Record<string, string> = {}, wanted: Record<string, string> = {}): boolean {
  return Object.entries(wanted).every(([key, value]) => actual[key] === value);
}

function hasOwners(actual: ObjectMeta, desired: ObjectMeta): boolean {
  return (desired.ownerReferences ?? []).every((wanted) =>
    (actual.ownerReferences ?? []).some(
      ({ uid, controller }) => uid === wanted.uid && controller === wanted.controller,
    ),
  );
}

/** Where the kinds that we keep have quantities: `*` is any key or position. */
const AMOUNTS: Readonly<Record<string, readonly Path[]>> = {
  ResourceQuota: [['spec', 'hard', '*']],
  LimitRange: ['default', 'defaultRequest', 'min', 'max'].map((field) => ['spec', 'limits', '*', field, '*']),
};

type Path = readonly string[];

/** Deep equality in which `1024Mi` is `1Gi` at the paths of amounts, and nowhere else. */
function isSame(actual: unknown, wanted: unknown, amounts: readonly Path[]): boolean {
  if (typeof actual === 'string' && typeof wanted === 'string') {
    return amounts.some((path) => path.length === 0) ? sameQuantity(actual, wanted) : actual === wanted;
  }
  if (!isContainer(actual) || !isContainer(wanted) || Array.isArray(actual) !== Array.isArray(wanted)) {
    return isDeepStrictEqual(actual, wanted);
  }
  const keys = Object.keys(wanted);
  return (
    Object.keys(actual).length === keys.length &&
    keys.every((key) => key in actual && isSame(actual[key], wanted[key], below(amounts, key)))
  );
}

/** What is left of the paths that lead through this key. */
function below(paths: readonly Path[], key: string): Path[] {
  return paths.filter(([first]) => first === key || first === '*').map(([, ...rest]) => rest);
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
