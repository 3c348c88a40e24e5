/**
 * edit_soul and install_skill: what an agent changes about itself (spec 2, selfImprovement). Each change names its run and
 * can be taken back: a replaced soul is kept in the agent's status, and a skill is only ever added.
 */
import { API_VERSION } from '../../api/define-resource.js';
import { ANNOTATION_CREATED_AT, ANNOTATION_REQUESTED_BY, LABEL_AGENT } from '../../api/labels.js';
import { childName } from '../../api/names.js';
import { MAX_SOUL_REVISIONS, MAX_SOUL_REVISION_BYTES, type Agent } from '../../api/v1alpha1/agent.js';
import { AgentSkills, MAX_SKILL_BYTES, type AgentSkill } from '../../api/v1alpha1/agent-skill.js';
import { isAlreadyExists } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { packFiles } from '../../skills/archive.js';
import { hasFrontMatter } from '../../skills/skill-md.js';
import { folderAndFile, skillPathProblem } from '../../skills/skill-path.js';
import { changeSelf } from './change-self.js';
import { ToolRefusal, answer, type ToolContext } from './tool-context.js';

type Revision = NonNullable<NonNullable<Agent['status']>['revisions']>[number];

export interface SelfToolsOptions {
  api: Pick<KubeApi, 'get' | 'create' | 'patch'>;
  clock: Clock;
}

export class SelfTools {
  readonly #options: SelfToolsOptions;

  constructor(options: SelfToolsOptions) {
    this.#options = options;
  }

  /** The text before is kept in the status. */
  async editSoul({ soul }: GatewayToolInput<'edit_soul'>, context: ToolContext): Promise<ToolAnswer> {
    const { api, clock } = this.#options;
    const isNew = await changeSelf(api, context, ({ spec, status }) => {
      if (spec.soul === soul) return undefined;
      const revision = { at: isoNow(clock), run: context.run.metadata.name, soul: spec.soul };
      return { status: { revisions: withRevision(status?.revisions ?? [], revision) }, spec: { soul } };
    });
    return answer({ saved: true, ...(isNew ? { note: 'It is in force from your next run on.' } : {}) });
  }

  /** Creates a skill; one of that slug is never replaced. A repeated call finds the skill that it made. */
  async installSkill(input: GatewayToolInput<'install_skill'>, context: ToolContext): Promise<ToolAnswer> {
    const skill = await this.#newSkill(input, context);
    const { slug } = input;
    try {
      await this.#options.api.create(AgentSkills, skill);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await this.#options.api.get(AgentSkills, { ...skill.metadata });
      if (markOf(found) !== markOf(skill)) {
        throw new ToolRefusal(`you have a skill ${slug} already: choose another slug; only a person can change it`);
      }
    }
    return answer({ slug, note: 'You have it from your next run on.' });
  }

  async #newSkill(input: GatewayToolInput<'install_skill'>, context: ToolContext): Promise<AgentSkill> {
    const { slug, name, description, body } = input;
    const { namespace, agent, run, call } = context;
    if (hasFrontMatter(body)) throw new ToolRefusal('body must not begin with front matter: pass the text after it');
    const now = isoNow(this.#options.clock);
    const stored = await packFiles(contentsOf(input));
    return {
      apiVersion: API_VERSION,
      kind: AgentSkills.kind,
      metadata: {
        namespace,
        name: childName(agent.name, slug),
        labels: { [LABEL_AGENT]: agent.name },
        annotations: {
          [ANNOTATION_REQUESTED_BY]: `run:${run.metadata.name}`,
          [ANNOTATION_CREATED_AT]: now,
          [ANNOTATION_CALL]: `${run.metadata.uid ?? ''}.${call}`,
        },
      },
      spec: { agent: agent.name, name, description, body, ...stored, updatedAt: now },
    };
  }
}

/** On a skill that an agent installed: the UID of its run and the number of the call. */
const ANNOTATION_CALL = 'boxwright.dev/call';

function markOf({ metadata }: AgentSkill): string | undefined {
  return metadata.annotations?.[ANNOTATION_CALL];
}

/** The newest first, as many as fit, at least one. A try that ended half-way has kept this text already. */
export function withRevision(before: readonly Revision[], revision: Revision): Revision[] {
  const [latest] = before;
  const all = latest?.run === revision.run && latest.soul === revision.soul ? before : [revision, ...before];
  let bytes = 0;
  return all
    .slice(0, MAX_SOUL_REVISIONS)
    .filter(({ soul }, index) => (bytes += Buffer.byteLength(soul)) <= MAX_SOUL_REVISION_BYTES || index === 0);
}

function contentsOf({ body, files = [] }: GatewayToolInput<'install_skill'>): Map<string, Buffer> {
  const contents = new Map<string, Buffer>();
  let bytes = Buffer.byteLength(body);
  for (const { path, content } of files) {
    const problem = skillPathProblem(path);
    if (problem !== undefined) throw new ToolRefusal(`the path ${JSON.stringify(path)} ${problem}`);
    if (contents.has(path)) throw new ToolRefusal(`the path ${path} is there twice`);
    contents.set(path, Buffer.from(content));
    bytes += Buffer.byteLength(content);
  }
  if (bytes > MAX_SKILL_BYTES)
    throw new ToolRefusal(`the skill has ${bytes} bytes; at most ${MAX_SKILL_BYTES} are possible`);
  const folder = folderAndFile(contents.keys());
  if (folder !== undefined) throw new ToolRefusal(`${folder} cannot be a file and a folder at once`);
  return contents;
}
