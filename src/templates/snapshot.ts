/**
 * What a template keeps of an agent, and the one mapping between it and the kinds: a snapshot never holds memory, secrets,
 * runs, tokens or counts.
 */
import { z } from 'zod';
import { AgentScheduleSpec } from '../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../api/v1alpha1/agent-schedule.js';
import { AgentSkillSpec } from '../api/v1alpha1/agent-skill.js';
import type { AgentSkill } from '../api/v1alpha1/agent-skill.js';
import { MAX_TEMPLATE_AGENTS } from '../api/v1alpha1/agent-template.js';
import { AgentTriggerSpec } from '../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../api/v1alpha1/agent-trigger.js';
import { AgentSpec } from '../api/v1alpha1/agent.js';
import type { Agent } from '../api/v1alpha1/agent.js';
import { Name, listOf } from '../protocol/sizes.js';
import { letOthersRun } from '../runtime/event-loop.js';
import { mapSkillTexts, skillTexts } from './skill-texts.js';

/** What of an agent's settings a template keeps. */
export const SnapshotAgentSpec = AgentSpec.omit({ handle: true, paused: true });
/** What of a skill a template keeps. */
export const SnapshotSkillSpec = AgentSkillSpec.omit({ agent: true });
const SnapshotScheduleSpec = AgentScheduleSpec.omit({ agent: true, keyId: true });
const SnapshotTriggerSpec = AgentTriggerSpec.omit({ agent: true, tokenId: true, keyId: true });

export const AgentSnapshot = z.object({
  /** templateAgentId: unique in the template. */
  id: Name,
  sourceAgentId: Name,
  sourceUid: Name,
  capturedAt: Name,
  handle: Name,
  spec: SnapshotAgentSpec,
  skills: listOf(z.object({ slug: Name, spec: SnapshotSkillSpec })),
  schedules: listOf(z.object({ slug: Name, spec: SnapshotScheduleSpec })),
  triggers: listOf(z.object({ slug: Name, spec: SnapshotTriggerSpec })),
});
export type AgentSnapshot = z.output<typeof AgentSnapshot>;

/** The content of a draft or version as it is stored. */
export const ContentFile = z.object({ format: z.literal(1), agents: z.array(AgentSnapshot).max(MAX_TEMPLATE_AGENTS) });

/** What belongs to an agent, by slug. */
export interface AgentParts {
  skills: readonly { slug: string; spec: AgentSkill['spec'] }[];
  schedules: readonly { slug: string; spec: Omit<AgentSchedule['spec'], 'agent'> }[];
  triggers: readonly { slug: string; spec: Omit<AgentTrigger['spec'], 'agent'> }[];
}

export interface Origin {
  id: string;
  agentId: string;
  capturedAt: string;
}

/** The schemas drop every field that must not travel. */
export function toSnapshot(agent: Agent, parts: AgentParts, origin: Origin): AgentSnapshot {
  return AgentSnapshot.parse({
    id: origin.id,
    sourceAgentId: origin.agentId,
    sourceUid: agent.metadata.uid ?? '',
    capturedAt: origin.capturedAt,
    handle: agent.spec.handle ?? agent.metadata.name,
    spec: agent.spec,
    skills: parts.skills,
    schedules: parts.schedules,
    triggers: parts.triggers,
  });
}

/** The specs of the objects that an install makes of a snapshot for an agent of that name: schedules off, triggers on. */
export function fromSnapshot(snapshot: AgentSnapshot, agent: string, token: () => { tokenId: string; keyId: string }) {
  return {
    agent: { ...snapshot.spec, paused: false } satisfies Agent['spec'],
    skills: snapshot.skills.map(({ slug, spec }) => ({ slug, spec: { ...spec, agent } })),
    schedules: snapshot.schedules.map(({ slug, spec }) => ({ slug, spec: { ...spec, agent, enabled: false } })),
    triggers: snapshot.triggers.map(({ slug, spec }) => ({
      slug,
      spec: { ...spec, agent, enabled: true, ...token() },
    })),
  };
}

/** A text of an agent with its place, for checks. */
export interface PlacedText {
  /** For example `agents.ta-1.skills.review.body`. */
  path: string;
  text: string;
  /** An `@name` in it is no mention of an agent. */
  code?: boolean;
}

/** Every text that a person or model wrote. Skills are unpacked one at a time, and others are served in between. */
export async function* textsOf(snapshot: AgentSnapshot): AsyncGenerator<PlacedText> {
  for (const text of shortTextsOf(snapshot)) if (text.text !== '') yield text;
  for (const { slug, spec } of snapshot.skills) {
    const at = `agents.${snapshot.id}.skills.${slug}.files`;
    await letOthersRun();
    for (const file of skillTexts(spec)) if (file.text !== '') yield { ...file, path: `${at}.${file.path}` };
  }
}

/** All but the files of skills. */
function shortTextsOf(snapshot: AgentSnapshot): PlacedText[] {
  const at = `agents.${snapshot.id}`;
  const { spec } = snapshot;
  const children = (['skills', 'schedules', 'triggers'] as const).flatMap((kind) =>
    snapshot[kind].flatMap(({ slug, spec: child }) => [
      { path: `${at}.${kind}.${slug}.body`, text: child.body },
      { path: `${at}.${kind}.${slug}.description`, text: child.description },
    ]),
  );
  return [
    { path: `${at}.soul`, text: spec.soul },
    { path: `${at}.description`, text: spec.description },
    { path: `${at}.setup.prompt`, text: spec.setup?.prompt ?? '' },
    ...children,
    ...(spec.mcpServers ?? []).flatMap((server) => {
      const values = [...(server.headers ?? []), ...(server.env ?? [])].map(({ value }) => value);
      return [server.url ?? '', ...(server.args ?? []), ...values].map((text) => ({
        path: `${at}.mcpServers.${server.name}`,
        text,
      }));
    }),
  ];
}

/** The snapshot with every text changed that tells agents of each other: prompts, descriptions, and files of skills. */
export async function mapPrompts(snapshot: AgentSnapshot, change: (text: string) => string): Promise<AgentSnapshot> {
  const { spec } = snapshot;
  const texts = <C extends { spec: { body: string; description: string } }>(child: C): C => ({
    ...child,
    spec: { ...child.spec, body: change(child.spec.body), description: change(child.spec.description) },
  });
  const setup = spec.setup;
  const prompt = setup?.prompt;
  const skills: AgentSnapshot['skills'] = [];
  for (const skill of snapshot.skills.map(texts)) {
    await letOthersRun();
    skills.push({ ...skill, spec: await mapSkillTexts(skill.spec, change) });
  }
  return {
    ...snapshot,
    spec: {
      ...spec,
      soul: change(spec.soul),
      description: change(spec.description),
      ...(setup === undefined || prompt === undefined ? {} : { setup: { ...setup, prompt: change(prompt) } }),
    },
    skills,
    schedules: snapshot.schedules.map(texts),
    triggers: snapshot.triggers.map(texts),
  };
}
