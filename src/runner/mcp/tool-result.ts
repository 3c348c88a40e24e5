/** The answer of an MCP server as a result of ours: bounded, and in words where it is no text. Pure. */
import type { ToolResult } from '../engine.js';
import { cutJson } from '../json-cut.js';
import type { RemoteResult } from './client.js';

/** What a model is shown of a result, in bytes of JSON (DESIGN 8 stores less or more of it). */
export const MAX_MCP_RESULT_BYTES = 30_000;

export function resultOf({ content, structuredContent, isError }: RemoteResult): ToolResult {
  const text = Array.isArray(content) ? content.map(textOf).join('\n') : '';
  if (isError === true) return bounded({ error: text === '' ? 'The tool failed without a word.' : text }, true);
  // MCP: the text says the same again.
  return bounded(isObject(structuredContent) ? structuredContent : { text }, false);
}

function bounded(result: Record<string, unknown>, isError: boolean): ToolResult {
  const json = cutJson(result, MAX_MCP_RESULT_BYTES);
  return { isError, result: JSON.parse(json) as Record<string, unknown> };
}

function textOf(block: unknown): string {
  if (!isObject(block)) return '[something that is not content of MCP]';
  const { type } = block;
  if (type === 'text' && typeof block['text'] === 'string') return block['text'];
  if (type === 'resource' && isObject(block['resource'])) return resourceText(block['resource']);
  if (type === 'resource_link') return `[link to ${word(block['name'])} at ${word(block['uri'])}]`;
  return `[${word(type)} of type ${word(block['mimeType'])}, ${sizeOf(block['data'])}, not shown]`;
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
