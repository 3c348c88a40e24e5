/** Answers of Google's streamGenerateContent: each event is an answer with some of the parts. */
import type { TokenCounts } from '../../run/usage/prices.js';
import { countIn, objectIn, type JsonObject } from './dialect.js';
import { StreamReader, textIn } from './stream-reader.js';

export class GenerateStream extends StreamReader {
  #answer: JsonObject = {};
  #candidate: JsonObject = {};
  readonly #parts: JsonObject[] = [];

  ended(): void {}

  answer(): JsonObject {
    if (Object.keys(this.#candidate).length === 0) return this.#answer;
    const content = { ...objectIn(this.#candidate['content']), parts: this.#parts };
    return { ...this.#answer, candidates: [{ ...this.#candidate, content }] };
  }

  protected onEvent(event: JsonObject): void {
    const { candidates, ...rest } = event;
    this.#answer = { ...this.#answer, ...rest };
    this.counts = generateCounts(event) ?? this.counts;
    this.hasBegun ||= Array.isArray(candidates) || this.counts !== undefined;
    if (Array.isArray(candidates)) this.#add(objectIn(candidates[0]));
    // A prompt that was blocked gets no candidate.
    const isBlocked = objectIn(event['promptFeedback'])['blockReason'] !== undefined;
    this.isComplete ||= isBlocked || this.#candidate['finishReason'] !== undefined;
  }

  #add(candidate: JsonObject): void {
    const content = objectIn(candidate['content']);
    this.#candidate = { ...this.#candidate, ...candidate };
    if (!Array.isArray(content['parts'])) return;
    for (const part of content['parts'].map(objectIn)) {
      this.wrote(part['text']);
      if (part['functionCall'] !== undefined) this.wrote(JSON.stringify(part['functionCall']));
      const last = this.#parts.at(-1);
      if (last === undefined || !isMore(last, part)) this.#parts.push(part);
      else this.#parts.splice(-1, 1, { ...last, text: textIn(last['text']) + textIn(part['text']) });
    }
  }
}

/** Whether a part goes on with the text of the one before it. A signature belongs to its own part. */
function isMore(last: JsonObject, part: JsonObject): boolean {
  const isText = (one: JsonObject) => typeof one['text'] === 'string' && one['thoughtSignature'] === undefined;
  return isText(last) && isText(part) && last['thought'] === part['thought'];
}

/** What an answer, or one of its events, says was used. */
export function generateCounts(answer: JsonObject): TokenCounts | undefined {
  const usage = objectIn(answer['usageMetadata']);
  if (usage['promptTokenCount'] === undefined) return undefined;
  return {
    inputTokens: countIn(usage['promptTokenCount']) + countIn(usage['toolUsePromptTokenCount']),
    cacheReadTokens: countIn(usage['cachedContentTokenCount']),
    cacheWriteTokens: 0,
    // Thoughts are billed as output and counted beside the candidates.
    outputTokens: countIn(usage['candidatesTokenCount']) + countIn(usage['thoughtsTokenCount']),
  };
}
