/**
 * Ids and names: one pure function for each, used by every process.
 * agentId = `<box>.<agent>`, spaceId = Box name, runId = AgentRun name, sessionId = spec.sessionId or `s-` + run name.
 * See docs/architecture.md#names-and-identifiers.
 */
import type { AgentRun } from './v1alpha1/agent-run.js';

/** Longest slug, handle and Agent name. */
export const MAX_SLUG = 36;

/** Namespace of a Box. */
export function boxNamespace(box: string): string {
  return `bw-${box}`;
}

/** The Box of a namespace, or undefined when the namespace is not one of a Box. */
export function boxOfNamespace(namespace: string): string | undefined {
  return namespace.startsWith('bw-') && !namespace.startsWith('bw-ws-') ? namespace.slice(3) : undefined;
}

/** Namespace with the API keys and templates of a Workspace. */
export function workspaceNamespace(workspace: string): string {
  return `bw-ws-${workspace}`;
}

/** The Workspace of such a namespace, or undefined. */
export function workspaceOfNamespace(namespace: string): string | undefined {
  return namespace.startsWith('bw-ws-') ? namespace.slice(6) : undefined;
}

export interface AgentRef {
  box: string;
  agent: string;
}

/** `<box>.<agent>`: unambiguous because neither part has a dot. */
export function agentId(ref: AgentRef): string {
  return `${ref.box}.${ref.agent}`;
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Parses an agentId; undefined when it cannot be one. */
export function parseAgentId(id: string): AgentRef | undefined {
  const parts = id.split('.');
  const [box, agent] = parts;
  if (parts.length !== 2 || box === undefined || agent === undefined) return undefined;
  if (box.length > 60 || agent.length > MAX_SLUG || !DNS_LABEL.test(box) || !DNS_LABEL.test(agent)) return undefined;
  return { box, agent };
}

/** Object name of a trigger, schedule or skill of an agent. */
export function childName(agent: string, slug: string): string {
  return `${agent}.${slug}`;
}

/** The slug of a child name, or undefined. */
export function slugOfChildName(name: string): string | undefined {
  const dot = name.indexOf('.');
  return dot === -1 ? undefined : name.slice(dot + 1);
}

/** Whether the text can be a slug. */
export function isSlug(text: string): boolean {
  return text.length <= MAX_SLUG && DNS_LABEL.test(text);
}

/**
 * Slug or handle from a display name: NFKD, lower case, a-z 0-9 and hyphens, none doubled or at an edge, at most 36.
 * Empty when nothing is left; the caller then chooses `<kind>-<4 random>`.
 */
export function slugFromName(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG + 1)
    .replace(/^-+/, '')
    .slice(0, MAX_SLUG)
    .replace(/(?<!-)-+$/, '');
}

/** When the run was accepted: `spec.createdAt` (milliseconds), else creationTimestamp. */
export function acceptedAt(run: Pick<AgentRun, 'metadata' | 'spec'>): string {
  return run.spec.createdAt ?? run.metadata.creationTimestamp ?? '1970-01-01T00:00:00Z';
}

/** The spec's `trigger` of a run: `chat`, `api`, `schedule:<slug>` or `trigger:<slug>`. */
export function originOf(run: Pick<AgentRun, 'spec'>): string {
  const trigger = run.spec.trigger;
  if (trigger === undefined) return 'api';
  return trigger.name === undefined ? trigger.origin : `${trigger.origin}:${trigger.name}`;
}

/** The runs above one whose agent was called, the outermost first; its parent alone for runs of before it was noted. */
export function callersOf({ spec: { parent } }: Pick<AgentRun, 'spec'>): readonly { name: string; uid: string }[] {
  if (parent === undefined) return [];
  return parent.callers ?? [{ name: parent.name, uid: parent.uid }];
}

/** Name of chunk `seq` of a run: fixed width, so that names sort like positions. */
export function chunkName(run: string, seq: number): string {
  return `${run}.${String(seq).padStart(2, '0')}`;
}

/** Name of the piece of a published file at this position of its run. */
export function filePartName(run: string, position: number): string {
  return `${run}.f${String(position).padStart(2, '0')}`;
}
