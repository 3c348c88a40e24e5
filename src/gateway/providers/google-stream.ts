/** Answers of Google's streamGenerateContent: each event is an answer with some of the parts. */
import type { TokenCounts } from '../../run/usage/prices.js';
import { countIn, objectIn, type JsonObject } from './dialect.js';
import { StreamReader, textIn } from './stream-reader.js';

export class GenerateStream extends StreamReader {
  readonly #answer: Record<string, unknown> = {};
  readonly #candidate: Record<string, unknown> = {};
  #hasCandidate = false;
  readonly #content: Record<string, unknown> = {};
  readonly #parts: Record<string, unknown>[] = [];

  ended(): void {}

  answer(): JsonObject {
    if (!this.#hasCandidate) return this.#answer;
    const content = { ...this.#content, parts: this.#parts };
    return { ...this.#answer, candidates: [{ ...this.#candidate, content }] };
  }

  protected onEvent(event: JsonObject): void {
    const { candidates, ...rest } = event;
    this.add(this.#answer, rest);
    this.counts = generateCounts(event) ?? this.counts;
    this.hasBegun ||= Array.isArray(candidates) || this.counts !== undefined;
    if (Array.isArray(candidates) && candidates.length > 0) this.#add(objectIn(candidates[0]));
    // A prompt that was blocked gets no candidate.
    const isBlocked = objectIn(event['promptFeedback'])['blockReason'] !== undefined;
    this.isComplete ||= isBlocked || this.#candidate['finishReason'] !== undefined;
  }

  #add({ content, ...fields }: JsonObject): void {
    this.#hasCandidate = true;
    const { parts, ...about } = objectIn(content);
    this.add(this.#candidate, fields);
    this.add(this.#content, about);
    if (!Array.isArray(parts)) return;
    for (const part of parts.map(objectIn)) {
      this.wrote(part['text']);
      if (part['thought'] !== true) this.says(part['text']);
      if (part['functionCall'] !== undefined) this.wrote(JSON.stringify(part['functionCall']));
      const last = this.#parts.at(-1);
      if (last !== undefined && isMore(last, part)) last['text'] = textIn(last['text']) + textIn(part['text']);
      else this.#begin(part);
    }
  }

  #begin(part: JsonObject): void {
    const { text: _written, functionCall: _measured, ...about } = part;
    this.kept(about);
    this.#parts.push({ ...part });
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
