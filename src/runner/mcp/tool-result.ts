/** The answer of an MCP server as a result of ours: bounded, and in words where it is no text. Pure. */
import type { ToolResult } from '../engine.js';
import { picturesIn } from '../../protocol/pictures.js';
import { bounded, failed, withPictures } from '../results.js';
import type { RemoteResult } from './client.js';

/** What a model is shown of a result, in bytes of JSON; what is stored of it may be less or more. */
const MAX_RESULT_BYTES = 30_000;

export function resultOf({ content, structuredContent, isError }: RemoteResult): ToolResult {
  const text = Array.isArray(content) ? content.map(textOf).join('\n') : '';
  if (isError === true)
    return bounded(failed(text === '' ? 'The tool failed without a word.' : text), MAX_RESULT_BYTES);
  // MCP: the text says the same again.
  const result = isObject(structuredContent) ? structuredContent : { text };
  const pictures = Array.isArray(content) ? picturesIn(content.filter(isPictureBlock)) : [];
  return withPictures(bounded({ isError: false, result }, MAX_RESULT_BYTES), pictures);
}

function isPictureBlock(block: unknown): block is { type: 'image'; data: string } {
  return isObject(block) && block['type'] === 'image' && typeof block['data'] === 'string';
}

function textOf(block: unknown): string {
  if (!isObject(block)) return '[something that is not content of MCP]';
  const { type } = block;
  if (type === 'text' && typeof block['text'] === 'string') return block['text'];
  if (type === 'resource' && isObject(block['resource'])) return resourceText(block['resource']);
  if (type === 'resource_link') return `[link to ${word(block['name'])} at ${word(block['uri'])}]`;
  const shown = isPictureBlock(block) && picturesIn([block]).length > 0 ? '' : ', not shown';
  return `[${word(type)} of type ${word(block['mimeType'])}, ${sizeOf(block['data'])}${shown}]`;
}

function resourceText({ uri, text, blob, mimeType }: Record<string, unknown>): string {
  if (typeof text === 'string') return `[resource ${word(uri)}]\n${text}`;
  return `[resource ${word(uri)} of type ${word(mimeType)}, ${sizeOf(blob)}, not shown]`;
}

function sizeOf(base64: unknown): string {
  return typeof base64 === 'string' ? `${Math.floor((base64.length * 3) / 4)} bytes` : 'of no known size';
}

function word(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value.slice(0, 256) : 'unknown';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
