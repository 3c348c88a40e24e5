/**
 * The scripted engine: a small deterministic model that needs no key and no network. It keeps no state: how
 * far a script is follows from the messages after the last one of the person. What tools answer and what stands in
 * earlier messages never steers it.
 */
import { parseDirectives, stepsOf, type ScriptStep } from './directives.js';
import { textOf, type ChatAnswer, type ChatMessage, type ChatRequest } from './openai.js';

/** What the engine does for one request: wait, then answer or fail. */
export interface ScriptedReply {
  waitMs: number;
  /** `type` is that of the error. */
  result: { answer: Omit<ChatAnswer, 'id' | 'created'> } | { failure: string; type: string };
}

const CHARACTERS_PER_TOKEN = 4;
const MAX_RESULT_CHARACTERS = 2000;

/** The reply to a request; the same request gives the same reply. */
export function scriptedReply(request: ChatRequest): ScriptedReply {
  const at = request.messages.findLastIndex((message) => message.role === 'user' && !isNote(textOf(message)));
  const message = request.messages[at];
  const after = request.messages.slice(at + 1);
  const tools = (request.tools ?? []).map((tool) => tool.function.name);
  const directives = message === undefined ? [] : parseDirectives(textOf(message));
  const step = directives.length === 0 ? { waitMs: 0, text: greeting(tools) } : currentStep(request, directives, after);
  if (step.failure !== undefined)
    return { waitMs: step.waitMs, result: { failure: step.failure, type: 'ScriptedFailure' } };
  return { waitMs: step.waitMs, result: { answer: answerOf(request, step) } };
}

/** Whether the runner said it all: nothing of it steers a script. */
function isNote(text: string): boolean {
  return text.startsWith('<run_context>\n') && text.endsWith('\n</run_context>');
}

function currentStep(
  request: ChatRequest,
  directives: Parameters<typeof stepsOf>[0],
  after: readonly ChatMessage[],
): ScriptStep {
  const steps = stepsOf(directives);
  const done = after.filter(({ role }) => role === 'assistant').length;
  const step = steps[done] ?? { waitMs: 0, text: '' };
  if (step.call !== undefined) return possible(request, step, step.call.tool, done);
  if (step.failure !== undefined || step.text !== '') return step;
  return { ...step, text: closing(done, after) };
}

/** A call that this request does not allow becomes a text, which ends the loop. */
function possible(request: ChatRequest, step: ScriptStep, tool: string, done: number): ScriptStep {
  const { call: _call, ...rest } = step;
  if (request.tool_choice === 'none') {
    return { ...rest, text: `I stop here: the step limit is reached after ${count(done)}, and the script goes on.` };
  }
  if (request.tools?.some(({ function: { name } }) => name === tool) === true) return step;
  return { ...rest, text: `I cannot go on: the tool ${tool} is not there. It may be switched off for this agent.` };
}

function closing(done: number, after: readonly ChatMessage[]): string {
  const last = after.findLast(({ role }) => role === 'tool');
  if (last === undefined) return 'Done.';
  return `Done after ${count(done)}. The last tool answered: ${textOf(last).slice(0, MAX_RESULT_CHARACTERS)}`;
}

function count(calls: number): string {
  return calls === 1 ? '1 tool call' : `${calls} tool calls`;
}

function greeting(tools: readonly string[]): string {
  return [
    'Hello! I am the scripted engine of Boxwright: I need no key and no network, and I follow the directives in your message.',
    tools.length === 0 ? 'This agent has no tools.' : `The tools of this agent: ${tools.join(', ')}.`,
    'Try a line such as: /shell ls -la',
    'Others are /files read {"path": "notes.txt"}, /tool NAME {"argument": "value"}, /call @handle TEXT, /ask QUESTION, /approve QUESTION, /say TEXT, /wait 5s and /fail TEXT.',
    'For a real model, set spec.provider and spec.model of the Agent.',
  ].join('\n');
}

function answerOf(request: ChatRequest, step: ScriptStep): Omit<ChatAnswer, 'id' | 'created'> {
  // Unique in the conversation, which only grows.
  const id = `call_${request.messages.length}`;
  const { text, call } = step;
  const calls = call === undefined ? [] : [{ id, tool: call.tool, arguments: JSON.stringify(call.input) }];
  return countedAnswer(request, { text, calls });
}

/** The answer with its tokens, which are counted in characters. */
export function countedAnswer(
  request: ChatRequest,
  answer: Pick<ChatAnswer, 'text' | 'calls' | 'isCut'>,
): Omit<ChatAnswer, 'id' | 'created'> {
  const written = answer.calls.reduce((sum, call) => sum + call.tool.length + call.arguments.length, 0);
  return {
    model: request.model,
    ...answer,
    usage: {
      inputTokens: tokens(request.messages.reduce((sum, message) => sum + lengthOf(message), 0)),
      outputTokens: tokens(answer.text.length + written),
    },
  };
}

function lengthOf(message: ChatMessage): number {
  const calls = message.tool_calls ?? [];
  return calls.reduce(
    (sum, { function: { name, arguments: input } }) => sum + name.length + input.length,
    textOf(message).length,
  );
}

function tokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}
