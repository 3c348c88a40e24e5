/**
 * What of a long conversation is sent again. The words of the person are never cut: results of tools go first, the oldest
 * first, then the reasoning of the model, then its texts and arguments. Each cut is marked where it was made. Pure.
 */
import type { TranscriptMessage } from '../../protocol/run.js';
import { cutJson } from '../../runtime/cut-json.js';
import { cutMiddle } from '../../runtime/text.js';
import { clearedResult, isClearable } from './cleared-result.js';

/**
 * What is cut is a multiple of this share of the bound: as the conversation grows, most runs of a session begin with the
 * same bytes as the run before, which a provider's prompt cache has.
 */
const SHARE = 8;
/** What stays of a text or of the arguments of a call. */
const KEPT_BYTES = 512;

/** How many parts of each kind were cut. */
export interface Cuts {
  results: number;
  reasoning: number;
  texts: number;
}

export const NO_CUTS: Cuts = { results: 0, reasoning: 0, texts: 0 };

export interface FitOptions {
  maxBytes: number;
  /** The call at the end that is still to be answered: its message stays as it is, with the reasoning that led to it. */
  openCall?: string | undefined;
  /** What {@link clearResults} took away before. */
  cleared?: Cleared;
}

/** Results that were cut, and how many bytes that saved. */
export interface Cleared {
  results: number;
  bytes: number;
}

/** Bytes of a message as it is stored and handed over. */
export function sizeOf(message: TranscriptMessage): number {
  return Buffer.byteLength(JSON.stringify(message));
}

/** The messages with every result of a tool cut: for what is too old to be kept whole whatever else there is. */
export function clearResults(messages: readonly TranscriptMessage[]): { messages: TranscriptMessage[] } & Cleared {
  const { messages: cut, cuts, bytes } = cutUntil(messages, PHASES.slice(0, 1), Number.POSITIVE_INFINITY);
  return { messages: cut, results: cuts.results, bytes };
}

/** The conversation within a bound, as far as that goes without touching what the person said. */
export function fitHistory(
  messages: readonly TranscriptMessage[],
  { maxBytes, openCall, cleared = { results: 0, bytes: 0 } }: FitOptions,
): { messages: TranscriptMessage[]; cuts: Cuts } {
  const bytes = messages.reduce((sum, message) => sum + sizeOf(message), cleared.bytes);
  const before = { ...NO_CUTS, results: cleared.results };
  if (bytes <= maxBytes) return { messages: [...messages], cuts: before };
  const share = Math.max(1, Math.floor(maxBytes / SHARE));
  const wanted = Math.ceil((bytes - maxBytes) / share) * share - cleared.bytes;
  const open = openCall === undefined ? -1 : messages.findLastIndex((message) => callsOf(message).includes(openCall));
  const phases = PHASES.map<Phase>(({ kind, cut }) => ({
    kind,
    cut: (message, index) => (index === open ? undefined : cut(message, index)),
  }));
  const { messages: fitted, cuts } = cutUntil(messages, phases, wanted);
  return { messages: fitted, cuts: { ...cuts, results: cuts.results + cleared.results } };
}

interface Phase {
  kind: keyof Cuts;
  /** The shorter message, undefined when there is nothing of the kind in it. */
  cut: (message: TranscriptMessage, index: number) => TranscriptMessage | undefined;
}

const PHASES: readonly Phase[] = [
  { kind: 'results', cut: (message) => (isClearable(message) ? clearedResult(message) : undefined) },
  { kind: 'reasoning', cut: withoutReasoning },
  { kind: 'texts', cut: withShortTexts },
];

function cutUntil(
  messages: readonly TranscriptMessage[],
  phases: readonly Phase[],
  wanted: number,
): { messages: TranscriptMessage[]; cuts: Cuts; bytes: number } {
  const cut = [...messages];
  const cuts = { ...NO_CUTS };
  let bytes = 0;
  for (const phase of phases) {
    for (const [index, message] of cut.entries()) {
      if (bytes >= wanted) return { messages: cut, cuts, bytes };
      const shorter = phase.cut(message, index);
      const saved = shorter === undefined ? 0 : sizeOf(message) - sizeOf(shorter);
      if (shorter === undefined || saved <= 0) continue;
      cut[index] = shorter;
      cuts[phase.kind] += 1;
      bytes += saved;
    }
  }
  return { messages: cut, cuts, bytes };
}

function callsOf(message: TranscriptMessage): readonly string[] {
  return message.role === 'assistant' ? (message.toolCalls ?? []).map(({ id }) => id) : [];
}

/** With the reasoning goes all that the provider gave beside the text: ids and signatures belong together. */
function withoutReasoning(message: TranscriptMessage): TranscriptMessage | undefined {
  if (message.role !== 'assistant' || message.sent === undefined) return undefined;
  const { sent: _sent, ...rest } = message;
  return rest;
}

function withShortTexts(message: TranscriptMessage): TranscriptMessage | undefined {
  if (message.role !== 'assistant') return undefined;
  const { toolCalls } = message;
  return {
    ...message,
    text: cutMiddle(message.text, KEPT_BYTES),
    ...(toolCalls === undefined ? {} : { toolCalls: toolCalls.map((call) => ({ ...call, input: short(call.input) })) }),
  };
}

function short(json: string): string {
  if (Buffer.byteLength(json) <= KEPT_BYTES) return json;
  try {
    return cutJson(JSON.parse(json), KEPT_BYTES);
  } catch {
    return cutJson(json, KEPT_BYTES);
  }
}
