/**
 * Pictures in a conversation. A model that sees gets them as parts of the results of its tools, others a line of text. Only the
 * newest stay in the requests; a stored conversation holds a mark in the place of each, so that a session keeps within its
 * bounds.
 */
import { APICallError } from 'ai';
import type { ModelMessage, ToolModelMessage } from 'ai';
import { describePicture } from '../protocol/pictures.js';
import type { ToolResult } from './engine.js';
import { parseJson } from './gateway-client.js';
import type { Recipient } from './conversation.js';

/** Of all pictures in one request, in bytes of base64 and in number; beyond it the oldest go, and as many more as a block has. */
const MAX_SHOWN = { bytes: 4 * 1024 * 1024, count: 20 };
const BLOCK = { bytes: 2 * 1024 * 1024, count: 10 };
/** A run that looks at more than that would fill the memory of its runner. */
const MAX_OF_A_RUN = 60;

type ToolPart = ToolModelMessage['content'][number];
type ToolOutput = Extract<ToolPart, { type: 'tool-result' }>['output'];
type ContentPart = Extract<ToolOutput, { type: 'content' }>['value'][number];
interface PicturePart {
  type: 'file';
  mediaType: string;
  data: { type: 'data'; data: string };
}

/** Providers whose protocol has pictures in results of tools, and of xAI the models that see. */
function seesPictures({ provider, model }: Recipient): boolean {
  if (provider === 'xai') return /^grok-[4-9]/.test(model) && !model.includes('code');
  return ['anthropic', 'openai', 'google'].includes(provider);
}

/** How the results of one run reach its model. */
export class PictureShow {
  #isSeen: boolean;
  #left = MAX_OF_A_RUN;

  constructor(to: Recipient) {
    this.#isSeen = seesPictures(to);
  }

  /** A result as the model gets it. */
  outputOf(result: ToolResult): ToolOutput {
    const { pictures = [], isError } = result;
    if (pictures.length === 0 || isError) return plainOutput(result);
    const list = pictures.map(describePicture).join('; ');
    if (!this.#isSeen) return withLine(result, `[not shown, because this model reads text alone: ${list}]`);
    if (this.#left < pictures.length)
      return withLine(result, `[not shown, because the run has seen too many: ${list}]`);
    this.#left -= pictures.length;
    const text = result.text ?? JSON.stringify(result.result);
    const files = pictures.map(({ mediaType, data }) => ({
      type: 'file' as const,
      mediaType,
      data: { type: 'data' as const, data },
    }));
    return { type: 'content', value: [{ type: 'text', text }, ...files] };
  }

  /** The conversation with its newest pictures; the others have become marks. The same picture stays away from then on. */
  bounded(messages: ModelMessage[]): ModelMessage[] {
    const sizes = messages.flatMap((message) => picturesOf(message).map(({ data }) => data.data.length));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const excess = { bytes: blocksOver(total, 'bytes'), count: blocksOver(sizes.length, 'count') };
    if (excess.bytes === 0 && excess.count === 0) return messages;
    let gone = 0;
    for (let bytes = 0; gone < sizes.length && (gone < excess.count || bytes < excess.bytes); gone++) {
      bytes += sizes[gone] ?? 0;
    }
    return withMarks(messages, gone, CUT);
  }

  /** After a call that was refused: the conversation without pictures, once; undefined when it has none. */
  refused(error: unknown, messages: readonly ModelMessage[]): ModelMessage[] | undefined {
    const count = messages.reduce((sum, message) => sum + picturesOf(message).length, 0);
    if (count === 0 || !isRefusal(error)) return undefined;
    this.#isSeen = false;
    return withMarks(messages, count, REFUSED);
  }
}

const CUT = 'an old picture that was cut';
const REFUSED = 'a picture that the model does not take';
const SHOWN = 'a picture that was shown here';

/** 400 is that of the gateway, which has the provider's own answer in its words. */
function isRefusal(error: unknown): boolean {
  if (!APICallError.isInstance(error) || (error.statusCode ?? 0) < 400 || (error.statusCode ?? 0) >= 500) return false;
  const body = parseJson(error.responseBody ?? '') as { error?: { type?: unknown } } | null | undefined;
  return body?.error?.type === 'ModelError';
}

function blocksOver(amount: number, kind: 'bytes' | 'count'): number {
  return Math.ceil(Math.max(0, amount - MAX_SHOWN[kind]) / BLOCK[kind]) * BLOCK[kind];
}

function plainOutput({ result, isError, text }: ToolResult): ToolOutput {
  if (text !== undefined) return { type: isError ? 'error-text' : 'text', value: text };
  return { type: isError ? 'error-json' : 'json', value: result as never };
}

function withLine({ result, text }: ToolResult, line: string): ToolOutput {
  return { type: 'text', value: `${text ?? JSON.stringify(result)}\n${line}` };
}

function isPicture(part: ContentPart): part is ContentPart & PicturePart {
  if (part.type !== 'file' || typeof part.data !== 'object' || !('type' in part.data)) return false;
  return part.data.type === 'data' && typeof part.data.data === 'string';
}

function picturesOf(message: ModelMessage): PicturePart[] {
  if (message.role !== 'tool') return [];
  return message.content.flatMap((part) =>
    part.type === 'tool-result' && part.output.type === 'content' ? part.output.value.filter(isPicture) : [],
  );
}

/** With marks in the place of the oldest so many pictures. */
function withMarks(messages: readonly ModelMessage[], count: number, what: string): ModelMessage[] {
  let left = count;
  const cut = (part: ContentPart): ContentPart => {
    if (left === 0 || !isPicture(part)) return part;
    left -= 1;
    return { type: 'text', text: markOf(part, what) };
  };
  return messages.map((message) => {
    if (message.role !== 'tool' || left === 0 || picturesOf(message).length === 0) return message;
    const content = message.content.map((part) =>
      part.type === 'tool-result' && part.output.type === 'content'
        ? { ...part, output: { ...part.output, value: part.output.value.map(cut) } }
        : part,
    );
    return { ...message, content };
  });
}

function markOf({ mediaType, data }: PicturePart, what: string): string {
  return `[${what}: ${describePicture({ mediaType, data: data.data })}]`;
}

/** Parts of a result as they are stored: a mark says where a picture was. */
export function storedParts(parts: readonly ContentPart[]): ContentPart[] {
  return parts.map((part) => (isPicture(part) ? { type: 'text', text: markOf(part, SHOWN) } : part));
}

/** For estimates: tokens of a picture do not depend on its bytes. */
const PICTURE_BYTES = 6400;

/** JSON of messages without the bytes of their pictures, and what these count beside it. */
export function jsonWithoutPictures(value: unknown): { json: string; pictureBytes: number } {
  let pictureBytes = 0;
  const json = JSON.stringify(value, (_key, one: unknown) => {
    if (typeof one !== 'object' || one === null || !isPicture(one as ContentPart)) return one;
    pictureBytes += PICTURE_BYTES;
    return { type: 'text', text: markOf(one as PicturePart, 'a picture') };
  });
  return { json, pictureBytes };
}
