/**
 * What an eval says something about: settings and skills of an agent, as a template keeps them. The same whether it is taken of
 * the agent or of its snapshot, so that a template can demand that an eval has passed for what is published.
 */
import { createHash } from 'node:crypto';
import { letOthersRun } from '../runtime/event-loop.js';
import { SnapshotAgentSpec, SnapshotSkillSpec } from './snapshot.js';

/** Digests of the skills of an agent, by slug. */
export type SkillDigests = ReadonlyMap<string, string>;

/** SHA-256 in hex of an agent's settings and its skills. Fields that no template keeps do not count. */
export function evaluatedContent(spec: unknown, skills: SkillDigests): string {
  const sorted = [...skills].sort(([a], [b]) => (a < b ? -1 : 1));
  return digestOf([SnapshotAgentSpec.parse(spec), sorted]);
}

/** SHA-256 in hex of one skill; when it was written does not count. */
export function skillDigest(spec: unknown): string {
  const { updatedAt: _when, ...content } = SnapshotSkillSpec.parse(spec);
  return digestOf(content);
}

/** That of an agent in a template. Others are served between two skills. */
export async function snapshotContent(snapshot: {
  spec: unknown;
  skills: readonly { slug: string; spec: unknown }[];
}): Promise<string> {
  const digests = new Map<string, string>();
  for (const { slug, spec } of snapshot.skills) {
    await letOthersRun();
    digests.set(slug, skillDigest(spec));
  }
  return evaluatedContent(snapshot.spec, digests);
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value, inOrder)).digest('hex');
}

/** The order of keys is no content. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
