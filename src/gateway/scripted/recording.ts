/**
 * A recorded run that answers again: what the model said comes from the recording, what tools do is done anew. Like the
 * scripted engine it keeps no state: how far it is follows from the answers in the request. A run whose tools answer
 * otherwise than the recorded ones has left the recording: nobody knows what the model would have done next. Pure.
 * See docs/evals.md#recordings.
 */
import type { RunRecording } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent, TranscriptMessage } from '../../protocol/run.js';
import { outcomeOf } from '../../run/outcome.js';
import { countedAnswer, type ScriptedReply } from './engine.js';
import { textOf, type AnswerCall, type ChatMessage, type ChatRequest } from './openai.js';

/** It cannot be replayed; the message says why. */
export class RecordingError extends Error {
  override readonly name = 'RecordingError';
}

type ToolAnswer = Extract<TranscriptMessage, { role: 'tool' }>;

/** One answer of the model, and what its calls came to. */
export interface RecordedAnswer {
  text: string;
  calls: AnswerCall[];
  isCut: boolean;
  results: ToolAnswer[];
}

export interface Recording {
  /** What the run was told. */
  message: string;
  answers: RecordedAnswer[];
}

/** What the transcript of a run says. Throws a {@link RecordingError} when parts of it are missing. */
export function recordingOf(events: readonly RunEvent[]): Recording {
  const ordered = [...events].sort((a, b) => a.seq - b.seq);
  if (ordered.some(({ seq }, index) => seq !== index + 1))
    throw new RecordingError('parts of the transcript are missing');
  const answers: RecordedAnswer[] = [];
  let told: string | undefined;
  for (const event of ordered) {
    const last = answers.at(-1);
    if (event.type === 'step' && event.subtask === undefined && event.finishReason === 'length' && last !== undefined)
      last.isCut = true;
    if (event.type !== 'message') continue;
    const { message } = event;
    if (message.role === 'user') told ??= message.text;
    if (message.role === 'assistant') answers.push(answerOf(message));
    if (message.role === 'tool') last?.results.push(message);
  }
  if (answers.length === 0) throw new RecordingError('the model said nothing in it');
  return { message: told ?? '', answers };
}

function answerOf({ text, toolCalls = [] }: Extract<TranscriptMessage, { role: 'assistant' }>): RecordedAnswer {
  const calls = toolCalls.map(({ id, tool, input }) => ({ id, tool, arguments: input }));
  return { text, calls, isCut: false, results: [] };
}

/** The next recorded answer, or what is otherwise than in the recording. */
export function replayed(
  request: ChatRequest,
  { message, answers }: Recording,
  { anyResultOf = [] }: Pick<RunRecording, 'anyResultOf'>,
): ScriptedReply {
  const done = request.messages.filter(({ role }) => role === 'assistant').length;
  const answer = answers[done];
  const problem =
    (done === 0 ? otherMessage(request.messages, message) : undefined) ??
    otherResult(request.messages, answers[done - 1], anyResultOf) ??
    (answer === undefined ? `the recording ends after ${done} answers of the model` : missingTool(request, answer));
  if (problem !== undefined) return replayFailed(`Step ${done + 1}: ${problem}.`);
  const { text = '', calls = [], isCut = false } = answer ?? {};
  return { waitMs: 0, result: { answer: countedAnswer(request, { text, calls, ...(isCut ? { isCut } : {}) }) } };
}

/** The run ends with this message. */
export function replayFailed(failure: string): ScriptedReply {
  return { waitMs: 0, result: { failure: outcomeOf('ReplayFailed', failure).message, type: 'ReplayFailed' } };
}

function missingTool({ tools, tool_choice: choice }: ChatRequest, { calls }: RecordedAnswer): string | undefined {
  const offered = choice === 'none' ? [] : (tools ?? []).map((tool) => tool.function.name);
  const missing = calls.find(({ tool }) => !offered.includes(tool));
  return missing === undefined
    ? undefined
    : `the recorded model calls the tool ${missing.tool}, which the run does not have here`;
}

/** Around the message stands what the runner says, which has its own time. */
function otherMessage(messages: readonly ChatMessage[], recorded: string): string | undefined {
  const isTold = messages.some((message) => message.role === 'user' && textOf(message).includes(recorded));
  return isTold ? undefined : 'the message of the run is not the one that was recorded';
}

/** The first result of the newest calls that is not as it was recorded. */
function otherResult(
  messages: readonly ChatMessage[],
  before: RecordedAnswer | undefined,
  anyResultOf: readonly string[],
): string | undefined {
  for (const recorded of before?.results ?? []) {
    if (anyResultOf.includes(recorded.tool) || recorded.form === 'content') continue;
    const found = messages.findLast(({ role, tool_call_id: id }) => role === 'tool' && id === recorded.callId);
    const now = found === undefined ? '' : textOf(found);
    const then = recordedText(recorded);
    if (now !== then && sameJson(now) !== sameJson(then)) return difference(recorded.tool, now, then);
  }
  return undefined;
}

/** As the model reads it. */
function recordedText({ result, form }: ToolAnswer): string {
  const text: unknown = form === 'text' ? parsed(result) : undefined;
  return typeof text === 'string' ? text : result;
}

/** JSON may be spaced otherwise. */
function sameJson(text: string): string {
  const value = parsed(text);
  return value === undefined ? text : JSON.stringify(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const BEFORE_DIFFERENCE = 40;
const SHOWN = 160;

function difference(tool: string, now: string, then: string): string {
  let at = 0;
  while (at < now.length && now[at] === then[at]) at += 1;
  const shown = (text: string) => JSON.stringify(text.slice(Math.max(0, at - BEFORE_DIFFERENCE), at + SHOWN));
  return `the tool ${tool} answered ${shown(now)} where the recording has ${shown(then)}`;
}
