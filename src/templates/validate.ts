/** Everything that would break an install of a template, or give away what it must not, found before it is published. */
import { referencesOf } from '../api/credentials.js';
import { mentionsIn } from './mentions.js';
import { secretIn } from './secret-text.js';
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

/** Pure; findings in the order of the agents. */
export function checkTemplate(template: TemplateToCheck, context: CheckContext): CheckResult {
  const { agents } = template;
  const handles = new Set(agents.map(({ handle }) => handle));
  const problems: Finding[] = [
    ...(template.description.trim() === ''
      ? [{ path: 'description', message: 'the template has no description: set one with update_template' }]
      : []),
    ...(agents.length === 0
      ? [{ path: 'agents', message: 'the template has no agent: add one with add_template_agent' }]
      : []),
    ...secretProblems([{ path: 'description', text: template.description }]),
    ...agents.flatMap((agent) => agentProblems(agent, handles, context)),
  ];
  return { problems, warnings: agents.flatMap((agent) => agentWarnings(agent, context)) };
}

function agentProblems(agent: AgentSnapshot, handles: ReadonlySet<string>, context: CheckContext): Finding[] {
  const at = `agents.${agent.id}`;
  const { setup, connectors } = agent.spec;
  const texts = textsOf(agent);
  return [
    ...(setup?.required === true && (setup.prompt ?? '').trim() === ''
      ? [{ path: `${at}.setup`, message: 'setup is required but has no prompt' }]
      : []),
    ...(connectors ?? []).flatMap((slug) => {
      const message = context.unknownConnector(slug);
      return message === undefined ? [] : [{ path: `${at}.connectors.${slug}`, message }];
    }),
    ...texts.flatMap(({ path, text, code }) =>
      (code === true ? [] : mentionsIn(text))
        .filter((handle) => !handles.has(handle))
        .map((handle) => ({ path, message: `@${handle} is no agent of this template: add that agent or remove it` })),
    ),
    ...secretProblems(texts),
  ];
}

function secretProblems(texts: readonly { path: string; text: string }[]): Finding[] {
  return texts.flatMap(({ path, text }) => {
    const what = secretIn(text);
    return what === undefined ? [] : [{ path, message: `holds what looks like ${what}: remove it` }];
  });
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
