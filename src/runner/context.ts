/**
 * Keeps the conversation of a run within what its model reads. It counts what the calls say they read, estimates the rest, and
 * shortens before the window is full; a provider that refuses a conversation as too large teaches the window and gets a shorter
 * one, so that neither a wrong number nor an unknown window ends a run, or the session with it.
 */
import type { ModelMessage } from 'ai';
import {
  BYTES_PER_TOKEN,
  bytesOf,
  clearOldResults,
  compacted,
  cutFirst,
  isFull,
  planCompaction,
  SUMMARY_REQUEST,
  summaryRequest,
  type Compaction,
  type CompactionPlan,
} from './compaction.js';
import { overflowIn } from './overflow.js';

/** Clearing old results is enough when it leaves this share of the window. */
const ROOMY = 0.5;
/** What may be sent to be summarised as it stands. */
const FITS = 0.95;
/** Refusals in a row before the run ends with the last of them; each halves what is sent. */
const MAX_REFUSALS = 3;
/** A refusal without numbers: the window is taken for this share of what was sent. */
const LEARNED = 0.8;
/** Stands for a summary when no call can be spent on one. */
const NO_SUMMARY = '(It could not be summarised. Look again at what you need.)';

export interface ContextUsage {
  inputTokens: number | undefined;
  outputTokens: number | undefined;
}

export interface ContextOptions {
  /** Tokens that the model reads; undefined when nobody knows. */
  window: number | undefined;
  /** Bytes of system prompt and tools, which every call carries. */
  besideBytes: () => number;
  /** Model calls that the run may still make. */
  stepsLeft: () => number;
  /** A call that is a step of its own: with the tools and the system prompt of the run, or with the messages alone. */
  ask: (messages: ModelMessage[], as: 'conversation' | 'prompt') => Promise<{ text: string }>;
  /** The words of a call that failed. */
  saidIn: (error: unknown) => string;
  onCompaction: (compaction: Compaction) => Promise<void>;
  onWarning: (text: string) => Promise<void>;
}

export class Context {
  readonly #options: ContextOptions;
  #window: number | undefined;
  #bytesPerToken = BYTES_PER_TOKEN;
  /** What the last call was sent, and what it said of it. */
  #sent: readonly ModelMessage[] = [];
  #counted: { messages: number; tokens: number } | undefined;
  #refusals = 0;

  constructor(options: ContextOptions) {
    this.#options = options;
    this.#window = options.window;
  }

  /** Another model goes on. */
  reset(window: number | undefined): void {
    this.#window = window;
    this.#bytesPerToken = BYTES_PER_TOKEN;
    this.#counted = undefined;
    this.#refusals = 0;
  }

  /** Before a call: a shorter conversation, or undefined when it can stay as it is. */
  async before(messages: ModelMessage[]): Promise<ModelMessage[] | undefined> {
    this.#sent = messages;
    const window = this.#window;
    if (window === undefined || this.#options.stepsLeft() < 2 || !isFull(this.#tokensOf(messages), window))
      return undefined;
    return this.#shorten(messages, window);
  }

  /** After a call that was answered. */
  answered({ inputTokens, outputTokens }: ContextUsage): void {
    this.#refusals = 0;
    this.#counted = undefined;
    if (inputTokens === undefined || inputTokens === 0) return;
    this.#counted = { messages: this.#sent.length, tokens: inputTokens + (outputTokens ?? 0) };
    this.#learnRatio(this.#bytesOf(this.#sent) / inputTokens);
  }

  /** After a call that was refused: the conversation to try again with, undefined when that would not help. */
  async refused(error: unknown): Promise<ModelMessage[] | undefined> {
    const overflow = overflowIn(this.#options.saidIn(error));
    this.#refusals += 1;
    if (overflow === undefined || this.#refusals > MAX_REFUSALS) return undefined;
    const bytes = this.#bytesOf(this.#sent);
    const tokens = overflow.tokens ?? this.#tokensOf(this.#sent);
    this.#window = overflow.window ?? Math.min(this.#window ?? Number.POSITIVE_INFINITY, Math.floor(tokens * LEARNED));
    // It was more than the window, whatever was estimated.
    this.#learnRatio(bytes / Math.max(tokens, this.#window));
    this.#counted = undefined;
    const shorter = await this.#shorten(this.#sent, Math.floor(this.#window / 2 ** (this.#refusals - 1)), true);
    if (shorter === undefined) return undefined;
    await this.#options.onWarning(
      `The conversation was larger than the model reads (about ${this.#window} tokens). Older parts of it were cut or summarised.`,
    );
    return shorter;
  }

  async #shorten(
    messages: readonly ModelMessage[],
    window: number,
    isRefused = false,
  ): Promise<ModelMessage[] | undefined> {
    const cleared = clearOldResults(messages, window);
    if (cleared !== undefined && this.#estimate(cleared.messages) <= window * ROOMY) return this.#tell(cleared);
    const plan = planCompaction(cleared?.messages ?? messages, window);
    if (plan === undefined) {
      const least = cleared ?? cutFirst(messages, window);
      return least === undefined ? undefined : this.#tell(least);
    }
    const whole = isRefused ? (cleared?.messages ?? []) : messages;
    const tokens = isRefused ? this.#estimate(whole) : this.#tokensOf(whole);
    const fits = whole.length > 0 && tokens <= window * FITS;
    const shorter = compacted(plan, await this.#summary(plan, window, fits ? whole : undefined));
    const isEnough = !isFull(this.#estimate(shorter.messages), window);
    return this.#tell(isEnough ? shorter : (cutFirst(shorter.messages, window) ?? shorter));
  }

  /** By the conversation as it stands, which is cached; else by a prompt that holds what fits of it. */
  async #summary(plan: CompactionPlan, window: number, whole: readonly ModelMessage[] | undefined): Promise<string> {
    const { stepsLeft, ask, saidIn } = this.#options;
    const attempts: (() => Promise<{ text: string }>)[] = [
      ...(whole === undefined
        ? []
        : [() => ask([...whole, { role: 'user', content: SUMMARY_REQUEST }], 'conversation')]),
      () => ask([{ role: 'user', content: summaryRequest(plan, window) }], 'prompt'),
      () => ask([{ role: 'user', content: summaryRequest(plan, Math.floor(window / 4)) }], 'prompt'),
    ];
    for (const attempt of attempts) {
      if (stepsLeft() < 2) break;
      try {
        const { text } = await attempt();
        // Empty: it called a tool in spite of what it was asked.
        if (text !== '') return text;
      } catch (error) {
        if (overflowIn(saidIn(error)) === undefined) throw error;
      }
    }
    return NO_SUMMARY;
  }

  async #tell({ messages, ...compaction }: { messages: ModelMessage[] } & Compaction): Promise<ModelMessage[]> {
    this.#sent = messages;
    this.#counted = undefined;
    await this.#options.onCompaction(compaction);
    return messages;
  }

  /** What a call would read: what the last one said, and an estimate of what came since. */
  #tokensOf(messages: readonly ModelMessage[]): number {
    const counted = this.#counted;
    if (counted === undefined) return this.#estimate(messages);
    // Its own answer is in the count.
    const since = messages.slice(counted.messages).filter(({ role }) => role !== 'assistant');
    return counted.tokens + Math.ceil(bytesOf(since) / this.#bytesPerToken);
  }

  #estimate(messages: readonly ModelMessage[]): number {
    return Math.ceil(this.#bytesOf(messages) / this.#bytesPerToken);
  }

  #bytesOf(messages: readonly ModelMessage[]): number {
    return this.#options.besideBytes() + bytesOf(messages);
  }

  /** Never more bytes to a token than is usual: a server that counts too little must not fill the window. */
  #learnRatio(bytesPerToken: number): void {
    this.#bytesPerToken = Math.min(BYTES_PER_TOKEN, Math.max(1, bytesPerToken));
  }
}
