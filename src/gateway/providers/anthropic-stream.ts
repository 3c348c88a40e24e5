/** Answers of Anthropic's Messages API that stream (docs.anthropic.com/en/docs/build-with-claude/streaming). */
import type { TokenCounts } from '../../run/usage/prices.js';
import { countIn, objectIn, parseObject, type JsonObject } from './dialect.js';
import { StreamReader, textIn } from './stream-reader.js';

export class MessageStream extends StreamReader {
  readonly #message: Record<string, unknown> = {};
  readonly #usage: Record<string, unknown> = {};
  readonly #blocks = new Map<unknown, Record<string, unknown>>();
  /** Arguments of tool calls come as text. */
  readonly #arguments = new Map<unknown, string>();

  ended(): void {
    this.isComplete ||= typeof this.#message['stop_reason'] === 'string';
  }

  answer(): JsonObject {
    const content = [...this.#blocks].map(([index, block]) => {
      const written = this.#arguments.get(index) ?? '';
      // What is no object was cut, or is wrong: the tool says so to the model.
      return written === '' ? block : { ...block, input: parseObject(written) ?? written };
    });
    return { ...this.#message, content, ...(Object.keys(this.#usage).length === 0 ? {} : { usage: this.#usage }) };
  }

  protected onEvent(event: JsonObject): void {
    const { type, index } = event;
    if (type === 'message_start') {
      const { usage, ...message } = objectIn(event['message']);
      this.add(this.#message, message);
      this.hasBegun = true;
      this.#count(objectIn(usage));
    } else if (type === 'content_block_start') {
      const block = objectIn(event['content_block']);
      this.kept(block);
      this.#blocks.set(index, { ...block });
    } else if (type === 'content_block_delta') this.#delta(index, objectIn(event['delta']));
    else if (type === 'message_delta') {
      this.add(this.#message, objectIn(event['delta']));
      this.#count(objectIn(event['usage']));
    } else if (type === 'message_stop') this.isComplete = this.hasBegun;
  }

  #delta(index: unknown, delta: JsonObject): void {
    const block = this.#blocks.get(index);
    if (block === undefined) return;
    if (delta['type'] === 'input_json_delta') {
      this.#arguments.set(index, (this.#arguments.get(index) ?? '') + textIn(delta['partial_json']));
      return this.wrote(delta['partial_json']);
    }
    for (const field of ['text', 'thinking', 'signature'] as const) {
      if (delta[field] === undefined) continue;
      block[field] = textIn(block[field]) + textIn(delta[field]);
      // Nobody pays for a signature.
      if (field === 'signature') this.kept(textIn(delta[field]));
      else this.wrote(delta[field]);
      if (field === 'text') this.says(delta[field]);
    }
  }

  /** Later counts take the place of earlier ones: they are those of the whole message so far. */
  #count(later: JsonObject): void {
    this.add(this.#usage, Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null)));
    this.counts = messageCounts({ usage: this.#usage });
  }
}

/** What a message says was used. */
export function messageCounts(answer: JsonObject): TokenCounts | undefined {
  const usage = objectIn(answer['usage']);
  if (usage['input_tokens'] === undefined || usage['output_tokens'] === undefined) return undefined;
  const cacheReadTokens = countIn(usage['cache_read_input_tokens']);
  const cacheWriteTokens = countIn(usage['cache_creation_input_tokens']);
  return {
    // Their input_tokens are those beside the cache.
    inputTokens: countIn(usage['input_tokens']) + cacheReadTokens + cacheWriteTokens,
    cacheReadTokens,
    cacheWriteTokens,
    outputTokens: countIn(usage['output_tokens']),
  };
}
