/**
 * Events of a run as the content of one AgentRunChunk: JSON lines, gzip, base64. Knows the limits of one chunk
 * (128 KiB stored, 1 MiB inflated) and how to make any list of events fit them; knows no API.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import {
  MAX_CHUNK_INFLATED_BYTES,
  MAX_CHUNK_STORED_BYTES,
  type AgentRunChunk,
} from '../api/v1alpha1/agent-run-chunk.js';
import { RunEvent } from '../protocol/run.js';
import { jsonPreview } from '../runtime/cut-json.js';
import { afterStep } from '../runtime/event-loop.js';
import { agentTexts } from './said.js';
import { cutUtf8 } from '../runtime/text.js';

const compress = promisify(gzip);
const inflate = promisify(gunzip);

/** The content of one chunk. */
export interface EncodedChunk {
  /** The events that it holds; a single event may have lost text in the content. */
  events: readonly RunEvent[];
  /** Size before compression. */
  bytes: number;
  /** Size after compression, before base64. */
  stored: number;
  /** Of the content before compression, in hex. */
  sha256: string;
  /** gzip, base64. */
  data: string;
  /** Texts of the agent in the content. */
  agentTexts: number;
}

/** Events in the form in which a chunk holds them; may be larger than a chunk allows. */
export function encodeEvents(events: readonly RunEvent[]): Promise<EncodedChunk> {
  return encodeLines(events.map(lineOf));
}

/** An event as it stands in a chunk. */
interface Line {
  event: RunEvent;
  text: Buffer;
}

function lineOf(event: RunEvent): Line {
  return { event, text: Buffer.from(`${JSON.stringify(event)}\n`) };
}

async function encodeLines(lines: readonly Line[]): Promise<EncodedChunk> {
  const events = lines.map(({ event }) => event);
  const text = Buffer.concat(lines.map((line) => line.text));
  const packed = await compress(text);
  return {
    events,
    bytes: text.length,
    stored: packed.length,
    sha256: createHash('sha256').update(text).digest('hex'),
    data: packed.toString('base64'),
    agentTexts: agentTexts(events),
  };
}

/** Whether the content is within the limits of one chunk. */
export function fitsChunk(chunk: Pick<EncodedChunk, 'bytes' | 'stored'>): boolean {
  return chunk.bytes <= MAX_CHUNK_INFLATED_BYTES && chunk.stored <= MAX_CHUNK_STORED_BYTES;
}

export interface SplitResult {
  parts: EncodedChunk[];
  /** True when a single event was larger than a chunk and lost part of its text. */
  cut: boolean;
}

/** Splits events, in order, until each part fits a chunk. Only an event that alone is too large loses text. */
export async function splitEvents(events: readonly RunEvent[]): Promise<SplitResult> {
  const lines: Line[] = [];
  for (const event of events) {
    const line = lineOf(event);
    lines.push(line);
    await afterStep(line.text.length);
  }
  return splitLines(lines);
}

/** Compresses only what can fit. */
async function splitLines(lines: readonly Line[]): Promise<SplitResult> {
  if (lines.length === 0) return { parts: [], cut: false };
  const bytes = lines.reduce((sum, { text }) => sum + text.length, 0);
  const whole = bytes <= MAX_CHUNK_INFLATED_BYTES ? await encodeLines(lines) : undefined;
  if (whole !== undefined && fitsChunk(whole)) return { parts: [whole], cut: false };
  const [only] = lines;
  if (lines.length === 1 && only !== undefined) return { parts: [await shrinkToChunk(only.event)], cut: true };
  const middle = Math.floor(lines.length / 2);
  const left = await splitLines(lines.slice(0, middle));
  const right = await splitLines(lines.slice(middle));
  return { parts: [...left.parts, ...right.parts], cut: left.cut || right.cut };
}

async function shrinkToChunk(event: RunEvent): Promise<EncodedChunk> {
  for (let max = MAX_CHUNK_INFLATED_BYTES / 2; max >= 1024; max = Math.floor(max / 2)) {
    const encoded = await encodeEvents([cutEvent(event, max)]);
    if (fitsChunk(encoded)) return { ...encoded, events: [event] };
  }
  const lost: RunEvent = {
    type: 'warning',
    seq: event.seq,
    at: event.at,
    text: 'An event was too large to be stored.',
  };
  return { ...(await encodeEvents([lost])), events: [event] };
}

/** The event with every text of at most `max` bytes; tool inputs and results stay valid JSON. */
export function cutEvent(event: RunEvent, max: number): RunEvent {
  switch (event.type) {
    case 'message':
      return { ...event, message: cutMessage(event.message, max) };
    case 'tool':
      return { ...event, input: cutJson(event.input, max), result: cutJson(event.result, max) };
    case 'output':
    case 'compaction':
    case 'warning':
      return { ...event, text: cutUtf8(event.text, max) };
    case 'step':
      return event;
  }
}

type Message = Extract<RunEvent, { type: 'message' }>['message'];

function cutMessage(message: Message, max: number): Message {
  switch (message.role) {
    case 'user':
      return { ...message, text: cutUtf8(message.text, max) };
    case 'tool':
      return { ...message, result: cutJson(message.result, max) };
    case 'assistant': {
      // What the provider gave is of use as a whole or not at all.
      const { sent, ...rest } = message;
      const isShort = sent !== undefined && Buffer.byteLength(JSON.stringify(sent)) <= max;
      return {
        ...(isShort ? message : rest),
        text: cutUtf8(message.text, max),
        ...(message.toolCalls === undefined
          ? {}
          : { toolCalls: message.toolCalls.map((call) => ({ ...call, input: cutJson(call.input, max) })) }),
      };
    }
  }
}

/** At least half of `max` is kept, so the size tells whether a text can have been cut. */
function cutJson(json: string, max: number): string {
  return Buffer.byteLength(json) <= max ? json : jsonPreview(json, Math.floor(max / 2));
}

/** A chunk whose content is not what its digest says, or not what we write. */
export class DamagedChunkError extends Error {
  override readonly name = 'DamagedChunkError';
}

/** The events of a stored chunk. Throws a {@link DamagedChunkError}; never inflates more than a chunk may hold. */
export async function decodeChunk(spec: Pick<AgentRunChunk['spec'], 'data' | 'sha256'>): Promise<RunEvent[]> {
  let text: Buffer;
  try {
    text = await inflate(Buffer.from(spec.data, 'base64'), { maxOutputLength: MAX_CHUNK_INFLATED_BYTES });
  } catch (cause) {
    throw new DamagedChunkError('the content cannot be inflated', { cause });
  }
  if (createHash('sha256').update(text).digest('hex') !== spec.sha256) {
    throw new DamagedChunkError('the content does not match its digest');
  }
  return parseEvents(text);
}

/** The events of JSON lines. Throws a {@link DamagedChunkError}. */
export function parseEvents(lines: Buffer): RunEvent[] {
  return lines
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map(parseEvent);
}

function parseEvent(line: string): RunEvent {
  try {
    return RunEvent.parse(JSON.parse(line));
  } catch (cause) {
    throw new DamagedChunkError('a line is not an event', { cause });
  }
}
