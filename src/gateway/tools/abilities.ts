/** What a run can do beyond shell and files, and what its agent is told about it at the claim. */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache } from '../../kube/types.js';
import { GATEWAY_TOOLS, type GatewayToolName } from '../../protocol/gateway-tools.js';
import type { Abilities } from '../../protocol/run.js';
import type { WebSearch } from '../search/web-search.js';
import type { NoteStore } from './note-store.js';
import { policyOf } from './approvals.js';
import { refuses, isUntrusted } from '../../run/trust.js';
import type { GatewaySkill } from '../../projections/agent-skill.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayBox } from '../../projections/box.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';

/** Notes that the system prompt shows; the agent searches for older ones. */
const MAX_SHOWN_NOTES = 20;
const MAX_SHOWN_NOTE_BYTES = 8 * 1024;
const MAX_SHOWN_SKILLS = 100;

/** Whether the agent has that tool now: what its families and skills allow, and the Box has. Enforced at every call, not only here. */
export function hasTool(
  name: GatewayToolName,
  agent: GatewayAgent,
  has: { skills: boolean; search: boolean },
): boolean {
  const { selfImprovement, tools } = agent.spec;
  if (name === 'edit_soul') return selfImprovement.allowSoulEdit && !agent.gitOps;
  if (name === 'install_skill' || name === 'install_mcp') return selfImprovement.allowToolInstall && !agent.gitOps;
  const { family } = GATEWAY_TOOLS[name];
  if (family === 'skills') return has.skills;
  return tools[family] && (name !== 'web_search' || has.search);
}

export interface AbilitiesOptions {
  notes: Pick<NoteStore, 'of'>;
  skills: Pick<Cache<GatewaySkill>, 'byIndex'>;
  search: Pick<WebSearch, 'isThereFor'>;
}

export class AbilitiesReader {
  readonly #options: AbilitiesOptions;

  constructor(options: AbilitiesOptions) {
    this.#options = options;
  }

  /** The tools that the run has now, by name. */
  toolsOf(run: AgentRun, agent: GatewayAgent, box: GatewayBox): GatewayToolName[] {
    const has = {
      skills: this.#skillsOf(run.metadata.namespace ?? '', agent).length > 0,
      search: this.#options.search.isThereFor(box),
    };
    return (Object.keys(GATEWAY_TOOLS) as GatewayToolName[]).filter(
      (name) => hasTool(name, agent, has) && !refuses(box, run, name),
    );
  }

  /** For the answer to the claim. No request. */
  of(run: AgentRun, agent: GatewayAgent, box: GatewayBox): Abilities {
    const namespace = run.metadata.namespace ?? '';
    const skills = this.#skillsOf(namespace, agent)
      .map(({ slug, description }) => ({ slug, description }))
      .sort((a, b) => (a.slug < b.slug ? -1 : 1));
    return {
      tools: this.toolsOf(run, agent, box),
      parallel: true,
      subtasks: agent.spec.tools.agents,
      untrusted: isUntrusted(run),
      memories: agent.spec.tools.memory ? this.#recentNotes(namespace, agent) : [],
      skills: skills.slice(0, MAX_SHOWN_SKILLS),
      approvals: policyOf(run, agent, box),
    };
  }

  #skillsOf(namespace: string, agent: GatewayAgent): readonly GatewaySkill[] {
    return this.#options.skills.byIndex(BY_AGENT, agentKey(namespace, agent.name));
  }

  #recentNotes(namespace: string, agent: GatewayAgent): Abilities['memories'] {
    let bytes = 0;
    return this.#options.notes
      .of(namespace, agent.name)
      .slice(0, MAX_SHOWN_NOTES)
      .filter(({ text }) => (bytes += Buffer.byteLength(text)) <= MAX_SHOWN_NOTE_BYTES)
      .map(({ name, text, untrusted }) => ({ id: name, text, untrusted }));
  }
}
