/**
 * run_subtask: a piece of the work in a context of its own, in the same pod and the same run. It has its own conversation, the
 * tools of the agent or some of them, and steps of the run; only its last message comes back. Nobody can be asked from there, so
 * it has no tool that asks: neither questions nor what needs an approval.
 */
import { z } from 'zod';
import { needsApproval, type ApprovalPolicy } from '../protocol/approvals.js';
import { cutMiddle } from '../runtime/text.js';
import { CallOrder } from './call-order.js';
import type { Engine, EngineHooks, EngineInput, EngineOutcome, EngineTool, ToolResult } from './engine.js';
import { failed } from './results.js';
import type { SubtaskSteps } from './subtask-steps.js';
import { selectTools } from './tool-search.js';

export const RUN_SUBTASK = 'run_subtask';
/** Its last message, as the run gets it. */
const MAX_OUTPUT_BYTES = 32 * 1024;
/** Names in an error. */
const MAX_NAMED = 60;

const Input = z.object({
  prompt: z
    .string()
    .min(1)
    .max(65_536)
    .describe('What it should do, with all that it needs to know: it sees nothing of this conversation.'),
  tools: z
    .array(z.string().min(1).max(128))
    .max(100)
    .optional()
    .describe('Names of the tools that it gets; when absent, all that it can have.'),
  model: z.string().min(1).max(256).optional().describe('Another model of this agent; the same as yours when absent.'),
});

type Model = Pick<EngineInput, 'provider' | 'model' | 'baseUrl' | 'contextWindow'>;

export interface SubtaskOptions {
  engine: Engine;
  /** What its loop has in common with that of the run; the model is the run's own. */
  common: Omit<EngineInput, 'instructions' | 'messages' | 'tools' | 'stepLimit' | 'fallbacks'>;
  /** What the agent may use besides its own model. */
  fallbacks: readonly Model[];
  /** All tools of the run, as they are without approvals. */
  tools: readonly EngineTool[];
  policy: ApprovalPolicy | undefined;
  steps: SubtaskSteps;
  /** The system prompt with so many steps and these tools. */
  instructions: (stepLimit: number, tools: readonly EngineTool[]) => string;
  /** What is told of the subtask with this number. */
  hooks: (subtask: number) => EngineHooks;
}

/** The tool that starts subtasks; they are numbered from 1. */
export function subtaskTool(options: SubtaskOptions): EngineTool {
  const { common, fallbacks } = options;
  const models: Model[] = [common, ...fallbacks];
  const tools = quietTools(options);
  let count = 0;
  return {
    name: RUN_SUBTASK,
    family: 'agents',
    description: `Gives a part of the work to a copy of you with an empty conversation, and returns its last message. Use it for what takes many steps or much reading and of which you need the result alone; several calls in one answer work at the same time. It uses the workspace, steps and budget of this run. It cannot ask anybody, has no tool that needs an approval, and starts no subtasks.${aboutModels(models)}`,
    input: Input,
    isParallel: true,
    execute: async (given, signal) => {
      const { prompt, tools: names, model: name } = Input.parse(given);
      const at = name === undefined ? 0 : models.findIndex((one) => isNamed(one, name));
      const model = models[at];
      if (model === undefined)
        return failed(`This agent has no model ${name}. It has ${models.map(nameOf).join(', ')}.`);
      const chosen = chosenTools(tools, names);
      if ('problem' in chosen) return failed(chosen.problem);
      const stepLimit = options.steps.take();
      if (stepLimit === 0) return failed('No step is left for a subtask: do it yourself, or write the result now.');
      count += 1;
      const subtask = count;
      const selection = selectTools(chosen.tools, []);
      const outcome = await options.engine.run(
        {
          ...common,
          ...model,
          fallbacks: models.slice(at + 1),
          ...selection,
          instructions: options.instructions(stepLimit, selection.tools),
          messages: [{ role: 'user', text: prompt }],
          stepLimit,
        },
        options.hooks(subtask),
        signal,
      );
      options.steps.giveBack(stepLimit, outcome.steps);
      return resultOf(subtask, outcome);
    },
  };
}

/** Those that ask nobody. One that changes something waits for such a call of another subtask: they share shell and browser. */
function quietTools({ tools, policy }: Pick<SubtaskOptions, 'tools' | 'policy'>): EngineTool[] {
  const order = new CallOrder();
  return tools
    .filter((tool) => tool.family !== 'interact' && (policy === undefined || !needsApproval(tool, policy)))
    .map((tool) =>
      tool.isParallel === true
        ? tool
        : { ...tool, execute: (input, signal) => order.run(false, () => tool.execute(input, signal)) },
    );
}

function chosenTools(
  tools: readonly EngineTool[],
  names: readonly string[] | undefined,
): { tools: readonly EngineTool[] } | { problem: string } {
  if (names === undefined) return { tools };
  const missing = names.find((name) => !tools.some((tool) => tool.name === name));
  if (missing === undefined) return { tools: tools.filter(({ name }) => names.includes(name)) };
  const known = tools.slice(0, MAX_NAMED).map(({ name }) => name);
  return { problem: `A subtask has no tool ${missing}. It can have ${known.join(', ')}.` };
}

function nameOf({ provider, model }: Model): string {
  return `${provider}/${model}`;
}

function isNamed(one: Model, name: string): boolean {
  return one.model === name || nameOf(one) === name;
}

function aboutModels(models: readonly Model[]): string {
  return models.length === 1 ? '' : ` Models: ${models.map(nameOf).join(', ')}.`;
}

/** Reasons with which a subtask hands over what it has. */
const HANDED_OVER: readonly EngineOutcome['reason'][] = ['Completed', 'StepLimitReached', 'OutputLimitReached'];

function resultOf(subtask: number, { reason, message, output, steps }: EngineOutcome): ToolResult {
  const said = output === null ? null : cutMiddle(output, MAX_OUTPUT_BYTES);
  const isError = !HANDED_OVER.includes(reason) || said === null;
  const result = { subtask, reason, steps, output: said };
  if (isError) return { isError, result: { ...result, error: `The subtask did not end well (${reason}). ${message}` } };
  const note = reason === 'Completed' ? '' : `\n[${reason}: it may not be complete]`;
  return { isError, result, text: `${said}${note}` };
}
