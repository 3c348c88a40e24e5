/** Templates and their agents as the tools show them; what other workspaces must not see is left out. */
import type { AgentTemplate } from '../../api/v1alpha1/agent-template.js';
import { modelControlOf } from '../../api/v1alpha1/agent.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import { mcpServerRecord } from '../connectors/mcp-servers.js';
import type { Caller } from '../keys/key-check.js';
import type { ScopeDeps } from '../scope.js';
import { templateIdOf } from './find.js';
import { installsOf } from './install-count.js';
import { isoTime } from '../../api/time.js';
import type { TemplateProjection } from '../../projections/agent-template.js';

export type PublishedVersion = AgentTemplate['spec']['published'][number];

/** The newest published version. */
export function latestOf(template: Pick<TemplateProjection, 'published'>): PublishedVersion | undefined {
  return template.published.at(-1);
}

/** Whether the draft is what the newest version holds. */
export function isUnchanged(template: TemplateProjection): boolean {
  const latest = latestOf(template);
  return (
    latest !== undefined &&
    latest.sha256 === template.draft.sha256 &&
    latest.name === template.displayName &&
    latest.description === template.description &&
    latest.category === template.category &&
    latest.tags.join('\n') === template.tags.join('\n')
  );
}

/** The Template record: of the own workspace the draft, of another the newest version. `shown` = another version. No request. */
export function templateRecord(
  deps: Pick<ScopeDeps, 'caches'>,
  caller: Caller,
  template: TemplateProjection,
  shown?: PublishedVersion,
) {
  const own = template.workspace === caller.workspace;
  const latest = latestOf(template);
  const version = shown ?? (own ? undefined : latest);
  return {
    templateId: templateIdOf(template),
    name: version?.name ?? template.displayName,
    description: version?.description ?? template.description,
    category: (version?.category ?? template.category) || null,
    tags: version?.tags ?? template.tags,
    status: template.listed ? 'published' : 'draft',
    version: shown?.version ?? latest?.version ?? 0,
    hasUnpublishedChanges: own && !isUnchanged(template),
    own,
    agentCount: (version ?? template.draft).agents,
    installCount: installsOf(deps, template),
    createdAt: template.createdAt,
    updatedAt: own || latest === undefined ? template.updatedAt : isoTime(latest.publishedAt),
    publishedAt: publishedAtOf(shown ?? latest),
    ...(own && template.requiredEvals.length > 0 ? { requiredEvals: template.requiredEvals } : {}),
  };
}

function publishedAtOf(version: PublishedVersion | undefined): string | null {
  return version === undefined ? null : isoTime(version.publishedAt);
}

/** The TemplateAgent record. Of another workspace: without soul, bodies, setup prompt, values and the source's id. */
export function templateAgentRecord(snapshot: AgentSnapshot, own = true) {
  const { spec } = snapshot;
  const body = (text: string) => (own ? text : null);
  const { setup } = spec;
  return {
    templateAgentId: snapshot.id,
    sourceAgentId: own ? snapshot.sourceAgentId : null,
    name: spec.name,
    handle: snapshot.handle,
    description: spec.description,
    soul: body(spec.soul),
    provider: spec.provider,
    model: spec.model ?? null,
    temperature: spec.temperature ?? null,
    stepLimit: spec.stepLimit ?? null,
    ...modelControlOf(spec),
    tools: spec.tools,
    selfImprovement: spec.selfImprovement,
    setup: setup === undefined ? null : { required: setup.required, prompt: own ? (setup.prompt ?? null) : null },
    mcpServers: (spec.mcpServers ?? []).map((server) => {
      const record = mcpServerRecord(server, []);
      return own ? record : { ...record, headers: {}, args: [], env: {} };
    }),
    skills: snapshot.skills.map(({ slug, spec: skill }) => ({
      slug,
      name: skill.name,
      description: skill.description,
      body: body(skill.body),
      files: skill.files.map(({ path, bytes }) => ({ path, bytes })),
    })),
    schedules: snapshot.schedules.map(({ slug, spec: schedule }) => ({
      slug,
      name: schedule.name,
      description: schedule.description,
      body: body(schedule.body),
      cron: schedule.cron ?? null,
      runAt: schedule.runAt ?? null,
      timezone: schedule.timezone,
      enabled: schedule.enabled,
    })),
    triggers: snapshot.triggers.map(({ slug, spec: trigger }) => ({
      slug,
      name: trigger.name,
      description: trigger.description,
      body: body(trigger.body),
      methods: trigger.methods,
      enabled: trigger.enabled,
    })),
    connectors: spec.connectors ?? [],
    capturedAt: snapshot.capturedAt,
  };
}
