/** Triggers as the tools show, write and rotate them (spec 2, 4.2.4). */
import type { Keyring } from '../../api/keyring.js';
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { totalsOf } from '../../run/usage/totals.js';
import { AgentTriggers, MAX_TRIGGER_BODY_BYTES } from '../../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger, TriggerMethod } from '../../api/v1alpha1/agent-trigger.js';
import { isNotFound } from '../../kube/errors.js';
import { createChild, deleteChild, newChild, newSlug, passBarrier, textsToCreate } from '../agents/agent-children.js';
import type { ChildDeps } from '../agents/agent-children.js';
import type { Caller } from '../keys/key-check.js';
import { findAgent, idOf } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { newTokenId, triggerToken, triggerUrl } from './trigger-token.js';
import { UserError } from '../../api/user-error.js';
import { isoTime } from '../../api/time.js';
import { BY_TRIGGER_UID } from '../../projections/agent-run.js';
import { projectApiTrigger } from '../../projections/agent-trigger.js';
import type { ApiTrigger } from '../../projections/agent-trigger.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';
import { triggersOf, findTrigger } from '../agents/find-child.js';
import { refuseGitOps } from '../../api/gitops.js';

export interface TriggerDeps extends ChildDeps {
  /** The keys; undefined until they have been read. */
  keyring(): Keyring | undefined;
  /** `https://agents.example.com`, without a trailing slash. */
  publicUrl: string;
}

/** The triggers of an agent in get_agent: no body, no URL. */
export function listTriggerSummaries(deps: Pick<ScopeDeps, 'caches'>, agent: ApiAgent) {
  return triggersOf(deps, agent).map((trigger) => ({
    slug: trigger.slug,
    name: trigger.displayName,
    methods: trigger.methods,
    enabled: trigger.enabled,
    ...firesOf(deps, trigger),
  }));
}

/** Exact: rolled-up base + live runs, never a counter in the request path. */
function firesOf({ caches }: Pick<ScopeDeps, 'caches'>, trigger: ApiTrigger) {
  const live = caches.AgentRun.byIndex(BY_TRIGGER_UID, trigger.uid);
  const totals = totalsOf(trigger.folded, trigger.folding, live);
  return { fireCount: totals.runs, lastFiredAt: totals.lastRunAt === null ? null : isoTime(totals.lastRunAt) };
}

/** The Trigger record of spec 2 with its URL. */
function record(deps: TriggerDeps, agent: ApiAgent, trigger: ApiTrigger) {
  return { ...recordWithoutUrl(deps, trigger), url: urlOf(deps, agent, trigger) };
}

/** For callers that may start nothing: whoever has the URL can start the agent. */
function recordWithoutUrl(deps: Pick<ScopeDeps, 'caches'>, trigger: ApiTrigger) {
  return {
    slug: trigger.slug,
    name: trigger.displayName,
    description: trigger.description,
    body: trigger.body,
    methods: trigger.methods,
    enabled: trigger.enabled,
    ...firesOf(deps, trigger),
  };
}

/** Null while the control plane has not given the trigger its token yet, or its key is not in the keyring. */
function urlOf(deps: TriggerDeps, agent: ApiAgent, trigger: ApiTrigger): string | null {
  const { slug, tokenId, keyId } = trigger;
  const key = keyId === undefined ? undefined : deps.keyring()?.keys.get(keyId);
  if (tokenId === undefined || key === undefined) return null;
  const id = idOf(agent);
  return triggerUrl(deps.publicUrl, id, slug, triggerToken(key, { agentId: id, slug, tokenId }));
}

/** The result of list_triggers, by slug; a read-only key gets no URLs. No request. */
export async function listTriggers(deps: TriggerDeps, caller: Caller, id: string) {
  const agent = await findAgent(deps, caller, id);
  const shown = (trigger: ApiTrigger) =>
    caller.readOnly ? recordWithoutUrl(deps, trigger) : record(deps, agent, trigger);
  return { triggers: triggersOf(deps, agent).map(shown) };
}

/** Arguments of upsert_trigger after their check. */
export interface TriggerInput {
  slug?: string | undefined;
  name?: string | undefined;
  body?: string | undefined;
  methods?: readonly TriggerMethod[] | undefined;
  description?: string | undefined;
  enabled?: boolean | undefined;
}

/** Creates (no slug) or updates a trigger; at most one write. */
export async function upsertTrigger(deps: TriggerDeps, caller: Caller, id: string, input: TriggerInput) {
  if (input.body !== undefined && Buffer.byteLength(input.body) > MAX_TRIGGER_BODY_BYTES) {
    throw new UserError(`argument "body" must have at most ${MAX_TRIGGER_BODY_BYTES} bytes`);
  }
  if (input.slug === undefined) {
    const texts = textsToCreate('trigger', ['name', 'body'], input);
    return createTrigger(deps, caller, await findAgent(deps, caller, id), { ...input, ...texts });
  }
  const agent = await findAgent(deps, caller, id);
  return updateTrigger(deps, caller, agent, { ...input, slug: input.slug });
}

async function createTrigger(
  deps: TriggerDeps,
  caller: Caller,
  agent: ApiAgent,
  input: TriggerInput & { name: string; body: string },
) {
  const { name, body } = input;
  const slug = newSlug(deps, 'trigger', name);
  const trigger: AgentTrigger = {
    ...newChild(deps, AgentTriggers, caller, { agent, slug }),
    spec: {
      agent: agent.name,
      name,
      body,
      description: input.description ?? '',
      methods: [...new Set<TriggerMethod>(input.methods ?? ['POST'])],
      enabled: input.enabled ?? true,
      tokenId: newTokenId(),
      keyId: currentKey(deps),
    },
  };
  const created = await createChild(deps, AgentTriggers, trigger, { kind: 'trigger', slug });
  return record(deps, agent, projectApiTrigger(created));
}

export function currentKey(deps: Pick<TriggerDeps, 'keyring'>): string {
  const keyring = deps.keyring();
  if (keyring === undefined)
    throw new UserError('trigger URLs cannot be signed yet: the keyring is not there; try again in a moment');
  return keyring.current;
}

async function updateTrigger(
  deps: TriggerDeps,
  caller: Caller,
  agent: ApiAgent,
  input: TriggerInput & { slug: string },
) {
  const known = await findTrigger(deps, agent, input.slug);
  if (input.name !== undefined && input.name !== known.displayName) {
    throw new UserError('cannot be renamed: delete and recreate, which changes the URL');
  }
  refuseGitOps(known);
  const spec = changedFields(known, input);
  const disables = input.enabled === false;
  // A repeated disabling call waits as well: the other pods may not have confirmed the first one.
  if (Object.keys(spec).length === 0 && !disables) return record(deps, agent, known);
  const { trigger, confirmed } = await patchTrigger(deps, caller, known, spec);
  return { ...record(deps, agent, trigger), ...(disables ? unconfirmedNote(confirmed) : {}) };
}

function changedFields(known: ApiTrigger, input: TriggerInput): Partial<AgentTrigger['spec']> {
  const methods = input.methods === undefined ? undefined : [...new Set(input.methods)];
  return {
    ...(input.body === undefined || input.body === known.body ? {} : { body: input.body }),
    ...(input.description === undefined || input.description === known.description
      ? {}
      : { description: input.description }),
    ...(input.enabled === undefined || input.enabled === known.enabled ? {} : { enabled: input.enabled }),
    ...(methods === undefined || methods.join() === known.methods.join() ? {} : { methods }),
  };
}

/** Replaces the secret of a trigger's URL; one write. Also for triggers under GitOps: a leaked URL must stop working at once. */
export async function rotateTriggerToken(deps: TriggerDeps, caller: Caller, id: string, slug: string) {
  const agent = await findAgent(deps, caller, id);
  const known = await findTrigger(deps, agent, slug);
  const spec = { tokenId: newTokenId(), keyId: currentKey(deps) };
  const { trigger, confirmed } = await patchTrigger(deps, caller, known, spec);
  return { slug: trigger.slug, url: urlOf(deps, agent, trigger), ...unconfirmedNote(confirmed) };
}

/** The note of a revoking call that not every replica has confirmed. */
export function unconfirmedNote(confirmed: boolean): { note?: string } {
  if (confirmed) return {};
  return {
    note: 'The change is stored, but not every API pod has confirmed it within 2 seconds: what it revokes may still work for a moment. Repeat the call to be sure.',
  };
}

/** The result of delete_trigger: its URL answers like one that never existed. */
export async function deleteTrigger(deps: TriggerDeps, caller: Caller, id: string, slug: string) {
  const agent = await findAgent(deps, caller, id);
  const known = await findTrigger(deps, agent, slug);
  refuseGitOps(known);
  const confirmed = await deleteChild(deps, AgentTriggers, known);
  return { deleted: known.slug, ...unconfirmedNote(confirmed) };
}

async function patchTrigger(
  deps: TriggerDeps,
  caller: Caller,
  known: ApiTrigger,
  spec: Partial<AgentTrigger['spec']>,
): Promise<{ trigger: ApiTrigger; confirmed: boolean }> {
  // The UID makes it a 409 when the trigger was deleted and made again in between.
  const metadata = { uid: known.uid, annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix } };
  const ref = { namespace: known.namespace, name: known.name };
  try {
    const patched = await kubeCall(deps, (signal) =>
      deps.api.patch(AgentTriggers, ref, { metadata, spec }, { type: 'merge', signal }),
    );
    return { trigger: projectApiTrigger(patched), confirmed: await passBarrier(deps, AgentTriggers, patched) };
  } catch (error) {
    if (isNotFound(error)) throw new UserError('trigger not found: it was deleted meanwhile');
    throw error;
  }
}
