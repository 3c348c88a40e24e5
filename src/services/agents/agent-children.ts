/** What the objects of an agent have in common when tools write them: names, marks, deletion. */
import { API_VERSION } from '../../api/define-resource.js';
import { ANNOTATION_CREATED_AT, ANNOTATION_REQUESTED_BY, LABEL_AGENT } from '../../api/labels.js';
import { objectKey } from '../../api/meta.js';
import type { KubeObject, ObjectMeta, ResourceType } from '../../api/meta.js';
import { childName, slugFromName } from '../../api/names.js';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.js';
import type { Cache } from '../../kube/types.js';
import { isoNow } from '../../runtime/clock.js';
import type { Caller } from '../keys/key-check.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import type { WriteBarrier } from '../write-barrier.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';

export interface ChildDeps extends ScopeDeps {
  barrier: WriteBarrier;
  randomHex(bytes: number): string;
}

/** The slug of a new trigger, schedule or skill: from its name, or `<kind>-<4>` when nothing of the name is left. */
export function newSlug({ randomHex }: Pick<ChildDeps, 'randomHex'>, kind: ChildKind, name: string): string {
  return slugFromName(name) || `${kind}-${randomHex(2)}`;
}

/** The texts that a new object must have; checked before the agent is looked up. */
export function textsToCreate<F extends string>(
  kind: ChildKind,
  fields: readonly F[],
  input: { readonly [N in F]?: string | undefined },
): Record<F, string> {
  const texts = fields.map((field) => {
    const text = input[field];
    if (text !== undefined) return [field, text];
    throw new UserError(
      `missing required argument: ${field} (string) is needed to create a ${kind}; to update one, pass its slug`,
    );
  });
  return Object.fromEntries(texts) as Record<F, string>;
}

/** apiVersion, kind and metadata of a new object of an agent. */
export function newChild(
  deps: ChildDeps,
  type: ResourceType,
  caller: Caller,
  child: { agent: ApiAgent; slug: string },
) {
  const metadata: ObjectMeta = {
    namespace: child.agent.namespace,
    name: childName(child.agent.name, child.slug),
    labels: { [LABEL_AGENT]: child.agent.name },
    annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix, [ANNOTATION_CREATED_AT]: isoNow(deps.clock) },
  };
  return { apiVersion: API_VERSION, kind: type.kind, metadata };
}

/** Creates it and waits for the write barrier; for a taken slug the error says how to update the object that has it. */
export async function createChild<T extends KubeObject>(
  deps: ChildDeps,
  type: ResourceType<T>,
  object: T,
  names: { kind: ChildKind; slug: string },
): Promise<T> {
  // Known to be taken: no request is needed.
  const known = cacheOf(deps, names.kind).get(objectKey(object.metadata));
  if (known?.deleting === false) throw slugTaken(names);
  try {
    const created = await kubeCall(deps, (signal) => deps.api.create(type, object, { signal }));
    await passBarrier(deps, type, created);
    return created;
  } catch (error) {
    throw isAlreadyExists(error) ? slugTaken(names) : error;
  }
}

type ChildKind = 'trigger' | 'schedule' | 'skill';

function cacheOf({ caches }: ChildDeps, kind: ChildKind): Pick<Cache<{ deleting: boolean }>, 'get'> {
  if (kind === 'trigger') return caches.AgentTrigger;
  return kind === 'schedule' ? caches.AgentSchedule : caches.AgentSkill;
}

function slugTaken({ kind, slug }: { kind: ChildKind; slug: string }): UserError {
  return new UserError(
    `this agent already has a ${kind} with slug ${slug}: pass slug "${slug}" to update it, or choose another name`,
  );
}

/** Resolves false when not every API pod has confirmed within the deadline that it sees the object as written. */
export function passBarrier(
  { barrier }: Pick<ChildDeps, 'barrier'>,
  type: ResourceType,
  { metadata }: KubeObject,
): Promise<boolean> {
  return barrier.passed({ kind: type.kind, resourceVersion: metadata.resourceVersion ?? '' });
}

/**
 * Deletes the object that the caller saw; one that is gone by now is a success. Resolves false when not every API pod has
 * confirmed within the deadline that it is gone.
 */
export async function deleteChild(
  deps: Pick<ChildDeps, 'api' | 'clock' | 'barrier'>,
  type: ResourceType,
  { namespace, name, uid }: { namespace: string; name: string; uid: string },
): Promise<boolean> {
  try {
    await kubeCall(deps, (signal) =>
      deps.api.delete(type, { namespace, name }, { uid, propagationPolicy: 'Background', signal }),
    );
  } catch (error) {
    if (isConflict(error)) throw new UserError('it was deleted and made again meanwhile: look at it and try again');
    if (!isNotFound(error)) throw error;
  }
  return await deps.barrier.passed({ kind: type.kind, gone: { key: `${namespace}/${name}`, uid } });
}
