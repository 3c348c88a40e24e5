/** Answers of OpenAI's Responses API that stream: the last event has the whole answer. */
import type { TokenCounts } from '../../run/usage/prices.js';
import { countIn, objectIn, type JsonObject } from './dialect.js';
import { failureIn, StreamReader, textIn } from './stream-reader.js';

export class ResponseStream extends StreamReader {
  #response: JsonObject = {};
  readonly #items = new Map<unknown, unknown>();

  /** Without its last event an answer is none. */
  ended(): void {}

  answer(): JsonObject {
    const { output } = this.#response;
    // Some servers leave out of the last event what they have sent before.
    return Array.isArray(output) && output.length > 0
      ? this.#response
      : { ...this.#response, output: [...this.#items.values()] };
  }

  protected onEvent(event: JsonObject): void {
    const type = textIn(event['type']);
    if (type.startsWith('response.')) this.hasBegun = true;
    if (type.endsWith('.delta')) this.wrote(event['delta']);
    if (type === 'response.output_text.delta') this.says(event['delta']);
    if (type === 'response.output_item.done') {
      this.kept(event['item']);
      this.#items.set(event['output_index'], event['item']);
    }
    if (type === 'response.completed' || type === 'response.incomplete' || type === 'response.failed') {
      this.#response = objectIn(event['response']);
      this.counts = responseCounts(this.#response);
      if (type === 'response.failed') {
        this.failure = failureIn(this.#response) ?? { message: 'the response failed', again: true };
      } else this.isComplete = true;
    }
  }
}

/** What a response says was used. */
export function responseCounts(answer: JsonObject): TokenCounts | undefined {
  const usage = objectIn(answer['usage']);
  if (usage['input_tokens'] === undefined || usage['output_tokens'] === undefined) return undefined;
  const inputTokens = countIn(usage['input_tokens']);
  const cacheReadTokens = countIn(objectIn(usage['input_tokens_details'])['cached_tokens']);
  return {
    // xAI may count the cached ones beside the input.
    inputTokens: cacheReadTokens > inputTokens ? inputTokens + cacheReadTokens : inputTokens,
    cacheReadTokens,
    cacheWriteTokens: 0,
    outputTokens: countIn(usage['output_tokens']),
  };
}
