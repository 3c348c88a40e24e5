/** read_skill: instructions and files of the agent's skills, a page at a time. */
import { childName, isSlug } from '../../api/names.js';
import { AgentSkills, type AgentSkill } from '../../api/v1alpha1/agent-skill.js';
import { isNotFound } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import { DamagedArchiveError, encodingOf, unpackFiles } from '../../skills/archive.js';
import { ToolRefusal, answer, type ToolContext } from './tool-context.js';
import type { GatewaySkill } from '../../projections/agent-skill.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';

/** Characters of one answer: what a model is shown of a result is bounded (src/runner). A multiple of four, for base64. */
const PAGE = 40_000;

export interface SkillToolsOptions {
  api: Pick<KubeApi, 'get'>;
  skills: Pick<Cache<GatewaySkill>, 'byIndex'>;
}

export class SkillTools {
  readonly #options: SkillToolsOptions;

  constructor(options: SkillToolsOptions) {
    this.#options = options;
  }

  async read({ slug, path, offset = 0 }: GatewayToolInput<'read_skill'>, context: ToolContext): Promise<ToolAnswer> {
    const skill = await this.#find(slug, context);
    if (path !== undefined && path.toLowerCase() !== 'skill.md') {
      return answer({ slug, path, ...filePage(skill, path, offset) });
    }
    const files = skill.spec.files.map(({ path: file, bytes }) => ({ path: file, bytes }));
    return answer({ slug, name: skill.spec.name, ...pageOf(skill.spec.body, offset), files });
  }

  async #find(slug: string, { namespace, agent }: ToolContext): Promise<AgentSkill> {
    try {
      if (!isSlug(slug)) throw this.#unknown(slug, namespace, agent.name);
      const skill = await this.#options.api.get(AgentSkills, { namespace, name: childName(agent.name, slug) });
      if (skill.metadata.deletionTimestamp === undefined) return skill;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    throw this.#unknown(slug, namespace, agent.name);
  }

  #unknown(slug: string, namespace: string, agent: string): ToolRefusal {
    const slugs = this.#options.skills.byIndex(BY_AGENT, agentKey(namespace, agent)).map((skill) => skill.slug);
    const known = slugs.length === 0 ? 'you have none' : `you have: ${slugs.sort().join(', ')}`;
    return new ToolRefusal(`there is no skill ${slug}; ${known}`);
  }
}

function filePage(skill: AgentSkill, path: string, offset: number) {
  const content = contentsOf(skill).get(path);
  if (content === undefined) {
    throw new ToolRefusal(`the skill has no file ${path}; read_skill without path lists its files`);
  }
  const encoding = encodingOf(content);
  return { encoding, ...pageOf(content.toString(encoding), offset) };
}

function contentsOf({ spec }: AgentSkill): Map<string, Buffer> {
  try {
    return unpackFiles(spec);
  } catch (error) {
    if (error instanceof DamagedArchiveError) throw new ToolRefusal('the files of this skill are damaged');
    throw error;
  }
}

/** A page of a text, never between the two halves of a character. */
function pageOf(text: string, offset: number) {
  let end = Math.min(offset + PAGE, text.length);
  if (end < text.length && !text.slice(offset, end).isWellFormed()) end -= 1;
  return { content: text.slice(offset, end), nextOffset: end < text.length ? end : null };
}
