/** Chat completions that stream: each event adds to the one message. */
import type { TokenCounts } from '../../run/usage/prices.js';
import { countIn, objectIn, type JsonObject } from './dialect.js';
import { addFields, StreamReader, textIn } from './stream-reader.js';

export class ChatStream extends StreamReader {
  readonly #base: Record<string, unknown> = {};
  readonly #choice: Record<string, unknown> = {};
  readonly #message: Record<string, unknown> = {};
  readonly #calls = new Map<unknown, Call>();

  /** Some servers leave `[DONE]` out. */
  ended(): void {
    this.isComplete ||= typeof this.#choice['finish_reason'] === 'string';
  }

  answer(): JsonObject {
    const calls = [...this.#calls.values()].map(({ rest, name, written }) => ({
      ...rest,
      type: 'function',
      function: { name, arguments: written },
    }));
    const message = { role: 'assistant', content: '', ...this.#message };
    return {
      ...this.#base,
      object: 'chat.completion',
      choices: [
        {
          finish_reason: null,
          ...this.#choice,
          index: 0,
          message: calls.length === 0 ? message : { ...message, tool_calls: calls },
        },
      ],
    };
  }

  protected onEvent(event: JsonObject): void {
    const { choices, usage, ...rest } = event;
    const isNew = Object.entries(rest).filter(([name]) => !Object.hasOwn(this.#base, name));
    this.add(this.#base, Object.fromEntries(isNew));
    if (usage !== undefined && usage !== null) this.#base['usage'] = usage;
    this.counts = completionCounts(event) ?? this.counts;
    if (!Array.isArray(choices)) return;
    this.hasBegun = true;
    for (const one of choices) {
      const { delta, ...choice } = objectIn(one);
      const told = Object.entries(choice).filter(([, value]) => value !== null);
      this.add(this.#choice, Object.fromEntries(told));
      this.#delta(objectIn(delta));
    }
  }

  #delta({ tool_calls: calls, ...delta }: JsonObject): void {
    for (const [field, value] of Object.entries(delta)) {
      if (field === 'role' || field === '__proto__' || value === null) continue;
      if (typeof value !== 'string' && !Array.isArray(value)) this.add(this.#message, { [field]: value });
      else {
        if (!Object.hasOwn(this.#message, field)) this.kept(field);
        this.#message[field] = joined(this.#message[field], value);
        this.#measure(value);
        if (field === 'content') for (const part of partsOf(value)) this.says(objectIn(part)['text']);
      }
    }
    if (!Array.isArray(calls)) return;
    for (const call of calls.map(objectIn)) this.#call(call);
  }

  #call({ index, function: said, ...rest }: JsonObject): void {
    const { name, arguments: written } = objectIn(said);
    // Servers that give calls no number send each of them whole.
    const key = index ?? rest['id'] ?? this.#calls.size;
    if (!this.#calls.has(key)) this.kept({ call: key });
    const known = this.#calls.get(key) ?? { rest: {}, name: '', written: '' };
    const told = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== ''));
    this.add(known.rest, told);
    if (known.name === '') known.name = textIn(name);
    known.written += textIn(written);
    this.#calls.set(key, known);
    this.wrote(name);
    this.wrote(written);
  }

  #measure(value: string | readonly unknown[]): void {
    if (typeof value === 'string') this.wrote(value);
    else for (const part of value) this.wrote(JSON.stringify(part));
  }
}

interface Call {
  rest: Record<string, unknown>;
  name: string;
  written: string;
}

/** Texts and lists grow; of anything else the last one counts. Mistral's content is a text or a list of parts. */
function joined(before: unknown, more: unknown): unknown {
  if (before === undefined) return more;
  if (typeof before === 'string' && typeof more === 'string') return before + more;
  if (!Array.isArray(before) && !Array.isArray(more)) return more;
  const parts = partsOf(before);
  for (const part of partsOf(more)) addPart(parts, part);
  return parts;
}

function partsOf(content: unknown): unknown[] {
  if (Array.isArray(content)) return content;
  return content === '' ? [] : [{ type: 'text', text: content }];
}

/** To a list of ours, in which a part goes on with the last one when it is of its type. */
function addPart(parts: unknown[], part: unknown): void {
  const [last, next] = [objectIn(parts.at(-1)) as Record<string, unknown>, objectIn(part)];
  const { text, thinking, ...rest } = next;
  const goesOn = last === parts.at(-1) && last['type'] === next['type'];
  if (goesOn && typeof text === 'string') addFields(last, { ...rest, text: textIn(last['text']) + text });
  else if (goesOn && Array.isArray(thinking)) {
    const before = Array.isArray(last['thinking']) ? (last['thinking'] as unknown[]) : [];
    for (const thought of thinking) addPart(before, thought);
    addFields(last, { ...rest, thinking: before });
  } else parts.push(part);
}

/** What a completion, or one of its events, says was used. */
export function completionCounts(answer: JsonObject): TokenCounts | undefined {
  const usage = objectIn(answer['usage']);
  if (usage['prompt_tokens'] === undefined || usage['completion_tokens'] === undefined) return undefined;
  return {
    inputTokens: countIn(usage['prompt_tokens']),
    // DeepSeek has a field of its own.
    cacheReadTokens:
      countIn(usage['prompt_cache_hit_tokens']) || countIn(objectIn(usage['prompt_tokens_details'])['cached_tokens']),
    cacheWriteTokens: 0,
    outputTokens: countIn(usage['completion_tokens']),
  };
}
