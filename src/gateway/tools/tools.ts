/**
 * Tools of agents that the control plane executes (src/protocol/gateway-tools.ts). Everything is checked here at each call:
 * the run's pod, the agent's families, the input. What the runner offers to the model decides nothing.
 */
import { isTerminal } from '../../run/status.js';
import type { Cache } from '../../kube/types.js';
import {
  GATEWAY_TOOLS,
  isGatewayTool,
  isParallelTool,
  type GatewayToolInput,
  type GatewayToolName,
} from '../../protocol/gateway-tools.js';
import { parseBounded } from '../../protocol/bounded-parse.js';
import { describeIssues } from '../../protocol/issues.js';
import type { ToolAnswer, ToolRequest } from '../../protocol/run.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, runEnded } from '../errors.js';
import type { KeyedLock } from '../keyed-lock.js';
import type { WebSearch } from '../search/web-search.js';
import type { RunInputs } from '../runs/run-inputs.js';
import type { Ownership } from '../runs/ownership.js';
import type { RunStore } from '../runs/run-store.js';
import type { ServedRun } from '../runs/served-runs.js';
import { isAllowed, needsPerson } from './allowed-calls.js';
import type { AgentCalls } from './agent-calls.js';
import type { AwaitAgents } from './await-agents.js';
import type { AbilitiesReader } from './abilities.js';
import type { FileTools } from './file-tools.js';
import type { MemoryTools } from './memory-tools.js';
import type { SelfServers } from './self-servers.js';
import type { SelfTools } from './self-tools.js';
import type { SkillTools } from './skill-tools.js';
import { ToolRefusal, agentOf, refusal, type ToolContext } from './tool-context.js';
import type { GatewayAgent } from '../../projections/agent.js';

export interface AgentToolsOptions {
  store: RunStore;
  ownership: Pick<Ownership, 'resolve'>;
  lock: KeyedLock;
  agents: Pick<Cache<GatewayAgent>, 'get'>;
  boxes: Pick<RunInputs, 'boxOf'>;
  abilities: Pick<AbilitiesReader, 'toolsOf'>;
  calls: AgentCalls;
  awaits: AwaitAgents;
  files: FileTools;
  memory: MemoryTools;
  skills: SkillTools;
  search: Pick<WebSearch, 'search'>;
  self: SelfTools;
  servers: SelfServers;
}

type Tools = {
  [Name in GatewayToolName]: (input: GatewayToolInput<Name>, context: ToolContext) => ToolAnswer | Promise<ToolAnswer>;
};

/** Answers that are kept for a runner that did not hear them: more than it makes calls beside each other, subtasks with them. */
const MAX_ANSWERS = 32;

/** The latest answers of a run, by the number of the call. */
class Answers {
  readonly #answers = new Map<number, ToolAnswer>();
  /** Calls that were made and have no answer: the runner asks for them again. */
  readonly #open = new Set<number>();
  #latest = 0;
  /** The latest of a call that stands alone. */
  #latestAlone = 0;

  /** Undefined for a call that was not answered. Throws 409 for one that the runner had before it made others. */
  find(call: number, isParallel: boolean): ToolAnswer | undefined {
    const known = this.#answers.get(call);
    if (known !== undefined || this.#open.has(call)) return known;
    if (call > (isParallel ? this.#latest - MAX_ANSWERS : this.#latestAlone)) {
      this.#open.add(call);
      return undefined;
    }
    throw new GatewayError(409, 'a later call of this run was answered already', { type: 'SequenceConflict' });
  }

  keep(call: number, isParallel: boolean, answer: ToolAnswer): void {
    this.#answers.set(call, answer);
    this.#open.delete(call);
    this.#latest = Math.max(this.#latest, call);
    if (!isParallel) this.#latestAlone = call;
    for (const kept of this.#answers.keys()) if (kept <= this.#latest - MAX_ANSWERS) this.#answers.delete(kept);
  }
}

export class GatewayTools {
  readonly #options: AgentToolsOptions;
  readonly #tools: Tools;
  readonly #answered = new WeakMap<ServedRun, Answers>();

  constructor(options: AgentToolsOptions) {
    this.#options = options;
    const { calls, awaits, files, memory, skills, search, self, servers } = options;
    this.#tools = {
      memory_search: (input, context) => memory.search(input, context),
      memory_save: (input, context) => memory.save(input, context),
      memory_delete: (input, context) => memory.delete(input, context),
      list_agents: (_input, context) => calls.list(context),
      call_agent: (input, context) => calls.call(input, context),
      await_agents: (input, context) => awaits.call(input, context),
      web_search: (input, context) => search.search(input, context),
      publish_file: (input, context) => files.publish(input, context),
      read_skill: (input, context) => skills.read(input, context),
      edit_soul: (input, context) => self.editSoul(input, context),
      install_skill: (input, context) => self.installSkill(input, context),
      install_mcp: (input, context) => servers.install(input, context),
    };
  }

  /** Executes one call; what the model did wrong is an answer. Rejects with 409, 410 or 421. */
  async call(identity: RunIdentity, request: ToolRequest): Promise<ToolAnswer> {
    const served = await this.#options.ownership.resolve(identity, request.epoch);
    const answers = this.#answered.get(served) ?? new Answers();
    this.#answered.set(served, answers);
    const { call, tool } = request;
    // The runner keeps the order in which calls that change something stand among the others.
    const isParallel = isParallelTool(tool);
    const line = isParallel ? `${served.uid} tool ${call}` : `${served.uid} tools`;
    return this.#options.lock.run(line, async () => {
      const known = answers.find(call, isParallel);
      if (known !== undefined) return known;
      const answer = await this.#execute(served, request);
      if (answer.again !== true) answers.keep(call, isParallel, answer);
      return answer;
    });
  }

  async #execute(served: ServedRun, request: ToolRequest): Promise<ToolAnswer> {
    const run = await this.#options.store.find(served.ref);
    if (isTerminal(run)) throw runEnded(run.status?.phase);
    const agent = agentOf(run, this.#options.agents);
    if (agent === undefined) return refusal('this agent is being deleted');
    const { tool } = request;
    const { namespace } = served.ref;
    const box = await this.#options.boxes.boxOf(namespace);
    if (!isGatewayTool(tool) || !this.#options.abilities.toolsOf(run, agent, box).includes(tool)) {
      return refusal(
        `the tool ${tool.slice(0, 128)} is not there; it may be switched off for this agent, or for runs from outside`,
      );
    }
    const input = parseBounded(GATEWAY_TOOLS[tool].input, request.input);
    if (!input.success) {
      return refusal(`the input does not fit the tool ${tool}: ${describeIssues(input.error)}`);
    }
    const context = { namespace, run, served, agent, box, call: request.call, content: request.content };
    const asked = { run, agent, box, tool: { name: tool, family: GATEWAY_TOOLS[tool].family } };
    if (!(await isAllowed(this.#options.store, { ...asked, input: request.input, call: request.call }))) {
      return refusal(needsPerson(tool));
    }
    const execute = this.#tools[tool] as (input: unknown, context: ToolContext) => ToolAnswer | Promise<ToolAnswer>;
    try {
      return await execute(input.data, context);
    } catch (error) {
      if (error instanceof ToolRefusal) return refusal(error.message);
      throw error;
    }
  }
}
