/**
 * A conversation in our stored form and in that of the AI SDK. What a model was sent goes through both and back unchanged: a
 * continued session begins with the same bytes, which the provider's prompt cache has, and with the signatures and encrypted
 * reasoning that belong to them.
 */
import type { AssistantModelMessage, ContentPart, ModelMessage, ProviderMetadata, ToolModelMessage, ToolSet } from 'ai';
import type { SentAnswer, TranscriptMessage } from '../protocol/run.js';
import { parseJson } from './gateway-client.js';
import { storedParts } from './pictures.js';
import { textWithFrame } from './run-context.js';

type Assistant = Extract<TranscriptMessage, { role: 'assistant' }>;
type ToolAnswer = Extract<TranscriptMessage, { role: 'tool' }>;
type AssistantPart = Exclude<AssistantModelMessage['content'], string>[number];
type ToolResultPart = Extract<ToolModelMessage['content'][number], { type: 'tool-result' }>;
type SentPart = SentAnswer['parts'][number];

/** Who gets a conversation: what is of another provider or model stays out of it. */
export interface Recipient {
  provider: string;
  model: string;
}

/** What a step added to the conversation, in our form; `open` is the call that stays without a result. */
export function messagesOfStep(
  response: readonly ModelMessage[],
  by: Recipient,
  open: string | undefined,
): TranscriptMessage[] {
  return response.flatMap((message): TranscriptMessage[] => {
    if (message.role === 'assistant') return answered(partsOf(message), by);
    if (message.role !== 'tool') return [];
    return message.content.flatMap((part) =>
      part.type === 'tool-result' && part.toolCallId !== open ? [resultOf(part)] : [],
    );
  });
}

/**
 * The answer of a model as {@link messagesOfStep} tells it, before its calls are made; undefined without a call to make, or
 * when it holds what is known only at the end of the step.
 */
export function answerWithCalls(content: readonly ContentPart<ToolSet>[], by: Recipient): Assistant | undefined {
  const parts = content.map(partOf);
  if (!parts.every((part) => part !== undefined) || !parts.some(({ type }) => type === 'tool-call')) return undefined;
  // The SDK leaves such texts out.
  const sent = parts.filter((part) => part.type !== 'text' || part.text !== '' || part.providerOptions !== undefined);
  return answered(sent, by)[0];
}

function partOf(part: ContentPart<ToolSet>): AssistantPart | undefined {
  const { providerMetadata } = part as { providerMetadata?: ProviderMetadata };
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  if (part.type === 'text' || part.type === 'reasoning') return { type: part.type, text: part.text, ...options };
  if (part.type !== 'tool-call' || part.providerExecuted === true || part.invalid === true) return undefined;
  return { type: 'tool-call', toolCallId: part.toolCallId, toolName: part.toolName, input: part.input, ...options };
}

function partsOf({ content }: AssistantModelMessage): readonly AssistantPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** Nothing for an answer without a text and a call. */
function answered(content: readonly AssistantPart[], by: Recipient): Assistant[] {
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const toolCalls = content.flatMap((part) =>
    part.type === 'tool-call' ? [{ id: part.toolCallId, tool: part.toolName, input: toJson(part.input) }] : [],
  );
  if (text === '' && toolCalls.length === 0) return [];
  const plain = { role: 'assistant' as const, text, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
  return [isPlain(content) ? plain : { ...plain, sent: { ...by, parts: content.map(sentPart) } }];
}

/** Whether text and calls say it all: one text at most, then calls, and nothing of the provider's own. */
function isPlain(content: readonly AssistantPart[]): boolean {
  return content.every(
    (part, index) =>
      vendorOf(part).vendor === undefined && (part.type === 'tool-call' || (part.type === 'text' && index === 0)),
  );
}

function sentPart(part: AssistantPart): SentPart {
  if (part.type === 'text' || part.type === 'reasoning') {
    return { type: part.type, text: part.text, ...vendorOf(part) };
  }
  if (part.type === 'tool-call') return { type: 'call', id: part.toolCallId, ...vendorOf(part) };
  return { type: 'other', vendor: toJson(part) };
}

function vendorOf(part: AssistantPart): { vendor?: string } {
  const { providerOptions } = part as { providerOptions?: unknown };
  return providerOptions === undefined ? {} : { vendor: toJson(providerOptions) };
}

/** The result of a call in our form. */
export function resultOf({ toolCallId, toolName, output }: ToolResultPart): ToolAnswer {
  const base = { role: 'tool' as const, callId: toolCallId, tool: toolName };
  switch (output.type) {
    case 'json':
    case 'error-json':
      return { ...base, result: toJson(output.value), isError: output.type === 'error-json' };
    case 'text':
    case 'error-text':
      return { ...base, result: toJson(output.value), isError: output.type === 'error-text', form: 'text' };
    case 'content':
      return { ...base, result: toJson(storedParts(output.value)), isError: false, form: 'content' };
    case 'execution-denied':
      return { ...base, result: toJson({ error: output.reason ?? 'denied' }), isError: true };
  }
}

function toJson(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

/**
 * Our messages as the SDK's. Every tool call gets a result and every result has a call, in the order of the calls: a
 * history that was cut or interrupted would be refused else.
 */
export function toModelMessages(messages: readonly TranscriptMessage[], to: Recipient): ModelMessage[] {
  const converted: ModelMessage[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user') converted.push({ role: 'user', content: textWithFrame(message) });
    if (message.role === 'assistant') converted.push(...assistantTurn(message, resultsAfter(messages, index), to));
  }
  return converted;
}

/** A conversation that another model goes on with: what its provider's own parts mean, that one does not know. */
export function forAnotherModel(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.flatMap((message): ModelMessage[] => {
    if (message.role !== 'assistant') return [message];
    const content = partsOf(message).flatMap((part): AssistantPart[] => {
      if (part.type !== 'text' && part.type !== 'tool-call') return [];
      const { providerOptions: _own, ...plain } = part;
      return [plain];
    });
    return content.length === 0 ? [] : [{ role: 'assistant', content }];
  });
}

function resultsAfter(messages: readonly TranscriptMessage[], index: number): ToolAnswer[] {
  const rest = messages.slice(index + 1);
  const end = rest.findIndex((message) => message.role !== 'tool');
  return rest.slice(0, end === -1 ? undefined : end).filter((message) => message.role === 'tool');
}

function assistantTurn(message: Assistant, results: readonly ToolAnswer[], to: Recipient): ModelMessage[] {
  const content = contentOf(message, to);
  if (content.length === 0) return [];
  const answer: ModelMessage = { role: 'assistant', content };
  const calls = message.toolCalls ?? [];
  if (calls.length === 0) return [answer];
  const left = [...results];
  const answers = calls.map((call) => {
    const found = takeFirst(left, ({ callId }) => callId === call.id);
    const output = found === undefined ? UNANSWERED : outputOf(found);
    return { type: 'tool-result' as const, toolCallId: call.id, toolName: call.tool, output };
  });
  return [answer, { role: 'tool', content: answers }];
}

const UNANSWERED: ToolResultPart['output'] = {
  type: 'error-json',
  value: { error: 'The run ended before this tool answered.' },
};

function outputOf({ result, isError, form }: ToolAnswer): ToolResultPart['output'] {
  const value = parseJson(result) ?? result;
  // Cut where it was stored, it has become JSON.
  if (form === 'text' && typeof value === 'string') return { type: isError ? 'error-text' : 'text', value };
  if (form === 'content' && Array.isArray(value)) return { type: 'content', value: value as never };
  return { type: isError ? 'error-json' : 'json', value: value as never };
}

function contentOf(message: Assistant, to: Recipient): AssistantPart[] {
  const calls = (message.toolCalls ?? []).map(({ id, tool, input }) => ({
    type: 'tool-call' as const,
    toolCallId: id,
    toolName: tool,
    input: parseJson(input) ?? {},
  }));
  const { text, sent } = message;
  if (sent === undefined || sent.provider !== to.provider || sent.model !== to.model) {
    return [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls];
  }
  return sent.parts.flatMap((part): AssistantPart[] => {
    if (part.type === 'other') return [parseJson(part.vendor) as AssistantPart];
    const options = part.vendor === undefined ? {} : { providerOptions: parseJson(part.vendor) as never };
    if (part.type !== 'call') return [{ type: part.type, text: part.text, ...options }];
    const call = takeFirst(calls, ({ toolCallId }) => toolCallId === part.id);
    return call === undefined ? [] : [{ ...call, ...options }];
  });
}

/** Some models use the same id twice in one answer: what comes first belongs to what comes first. */
function takeFirst<T>(list: T[], is: (entry: T) => boolean): T | undefined {
  const at = list.findIndex(is);
  return at === -1 ? undefined : list.splice(at, 1)[0];
}
