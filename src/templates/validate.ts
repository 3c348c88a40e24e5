/** Everything that would break an install of a template, or give away what it must not, found before it is published. */
import { referencesOf } from '../api/credentials.js';
import { mentionsIn } from './mentions.js';
import { secretIn } from './secret-text.js';
import { afterStep } from '../runtime/event-loop.js';
import { textsOf } from './snapshot.js';
import type { AgentSnapshot } from './snapshot.js';

export interface Finding {
  /** For example `agents.ta-1.soul`. */
  path: string;
  message: string;
}

export interface TemplateToCheck {
  description: string;
  agents: readonly AgentSnapshot[];
}

/** What the check has to know of the world. */
export interface CheckContext {
  /** What to say about a connector that is not in the catalogue; undefined when it is. */
  unknownConnector(slug: string): string | undefined;
  /** Whether the connector needs a credential. */
  needsSecrets(slug: string): boolean;
  /** Why no Box of the workspace can run the model; undefined when one can. */
  whyUnavailable(spec: AgentSnapshot['spec']): string | undefined;
}

export interface CheckResult {
  problems: Finding[];
  warnings: Finding[];
}

/** Of a template full of faults; the rest is told once these are mended. */
const MAX_PROBLEMS = 200;
/** Of the files of all skills, not compressed. A stored template of 16 MiB could hold gigabytes. */
const MAX_FILES_BYTES = 64 * 1024 * 1024;

/** Findings in the order of the agents. Whatever the texts hold, others are served between two of them. */
export async function checkTemplate(template: TemplateToCheck, context: CheckContext): Promise<CheckResult> {
  const { agents } = template;
  const handles = new Set(agents.map(({ handle }) => handle));
  const problems: Finding[] = [
    ...(template.description.trim() === ''
      ? [{ path: 'description', message: 'the template has no description: set one with update_template' }]
      : []),
    ...(agents.length === 0
      ? [{ path: 'agents', message: 'the template has no agent: add one with add_template_agent' }]
      : []),
    ...secretProblems({ path: 'description', text: template.description }),
  ];
  const isReadable = filesBytesOf(agents) <= MAX_FILES_BYTES;
  if (!isReadable) problems.push({ path: 'agents', message: TOO_MANY_FILES });
  for (const agent of isReadable ? agents : []) {
    problems.push(...settingProblems(agent, context), ...(await textProblems(agent, handles)));
    if (problems.length > MAX_PROBLEMS) break;
  }
  const isCut = problems.splice(MAX_PROBLEMS).length > 0;
  if (isCut) problems.push({ path: 'agents', message: 'there are more problems: mend these and check again' });
  return { problems, warnings: agents.flatMap((agent) => agentWarnings(agent, context)) };
}

const TOO_MANY_FILES = `files of skills have more than ${MAX_FILES_BYTES} bytes (64 MiB) together: remove some`;

function filesBytesOf(agents: readonly AgentSnapshot[]): number {
  const files = agents.flatMap(({ skills }) => skills.flatMap(({ spec }) => spec.files));
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

function settingProblems({ id, spec: { setup, connectors } }: AgentSnapshot, context: CheckContext): Finding[] {
  const at = `agents.${id}`;
  return [
    ...(setup?.required === true && (setup.prompt ?? '').trim() === ''
      ? [{ path: `${at}.setup`, message: 'setup is required but has no prompt' }]
      : []),
    ...(connectors ?? []).flatMap((slug) => {
      const message = context.unknownConnector(slug);
      return message === undefined ? [] : [{ path: `${at}.connectors.${slug}`, message }];
    }),
  ];
}

/** Unknown mentions, then secrets; no more than can be told. */
async function textProblems(agent: AgentSnapshot, handles: ReadonlySet<string>): Promise<Finding[]> {
  const mentions: Finding[] = [];
  const secrets: Finding[] = [];
  for await (const placed of textsOf(agent)) {
    for (const handle of placed.code === true ? [] : mentionsIn(placed.text)) {
      if (handles.has(handle) || mentions.length > MAX_PROBLEMS) continue;
      const message = `@${handle} is no agent of this template: add that agent or remove it`;
      mentions.push({ path: placed.path, message });
    }
    secrets.push(...secretProblems(placed));
    if (mentions.length + secrets.length > MAX_PROBLEMS) break;
    await afterStep(4 * placed.text.length);
  }
  return [...mentions, ...secrets];
}

function secretProblems({ path, text }: { path: string; text: string }): Finding[] {
  const what = secretIn(text);
  return what === undefined ? [] : [{ path, message: `holds what looks like ${what}: remove it` }];
}

function agentWarnings(agent: AgentSnapshot, context: CheckContext): Finding[] {
  const at = `agents.${agent.id}`;
  const { spec } = agent;
  const unavailable = context.whyUnavailable(spec);
  const needsCredentials =
    (spec.connectors ?? []).some((slug) => context.needsSecrets(slug)) ||
    (spec.mcpServers ?? []).some((server) => referencesOf(server).length > 0);
  return [
    ...(unavailable === undefined ? [] : [{ path: `${at}.model`, message: unavailable }]),
    ...(needsCredentials && spec.setup?.required !== true
      ? [{ path: `${at}.setup`, message: 'the agent needs credentials, but no setup tells whoever installs it' }]
      : []),
  ];
}
