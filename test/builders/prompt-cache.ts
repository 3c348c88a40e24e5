/**
 * The prompt cache of a vendor, as its documents describe it: what of a request was seen before, byte for byte. Anthropic
 * reads and writes at the marks of a request alone, at most four, and looks back 20 blocks from each; the others find the
 * longest beginning that they know. Nothing below 1024 tokens is cached; a token is four bytes.
 */
import { createHash } from 'node:crypto';

const LEAST_TOKENS = 1024;
const LOOKBACK_BLOCKS = 20;
const MOST_MARKS = 4;
const BYTES_PER_TOKEN = 4;

type Json = Record<string, unknown>;

interface Block {
  /** Of everything up to its end. */
  hash: string;
  tokens: number;
  marked: boolean;
}

export interface CacheCount {
  input: number;
  cached: number;
  written: number;
}

export class PromptCache {
  readonly #known = new Set<string>();

  /** What the request reads and writes; undefined for one with too many marks. */
  count(body: Json, vendor: string): CacheCount | undefined {
    const isMarked = vendor === 'anthropic';
    const blocks = blocksOf(body);
    const marks = blocks.flatMap(({ marked }, index) => (marked || !isMarked ? [index] : []));
    if (isMarked && marks.length > MOST_MARKS) return undefined;
    const tokensAt = (index: number) => blocks[index]?.tokens ?? 0;
    const isKnown = (index: number) => this.#known.has(blocks[index]?.hash ?? '');
    const reads = marks.map((mark) => {
      for (let index = mark; index >= 0 && mark - index < LOOKBACK_BLOCKS; index--) if (isKnown(index)) return index;
      return -1;
    });
    const cached = Math.max(0, ...reads.map(tokensAt));
    const writes = marks.filter((mark) => tokensAt(mark) >= LEAST_TOKENS);
    for (const mark of writes) this.#known.add(blocks[mark]?.hash ?? '');
    const written = isMarked ? Math.max(0, ...writes.map(tokensAt)) - cached : 0;
    return { input: tokensAt(blocks.length - 1), cached, written: Math.max(0, written) };
  }
}

/** Tools, system prompt and messages in order. What is asked of the model's choice of tools counts before the messages. */
function blocksOf(body: Json): Block[] {
  const texts = [
    ...partsOf(body['tools']),
    ...partsOf(body['system'] ?? body['instructions']),
    ...partsOf(body['messages'] ?? body['input']).flatMap((message, index) =>
      partsOf(message['content'] ?? message).map((part) => ({
        ...part,
        in: [index === 0 ? body['tool_choice'] : undefined, message['role']],
      })),
    ),
  ];
  const hash = createHash('sha256').update(JSON.stringify(body['model']));
  let bytes = 0;
  return texts.map(({ cache_control: mark, ...block }: Json) => {
    const text = JSON.stringify(block);
    bytes += Buffer.byteLength(text);
    hash.update(text);
    return {
      hash: hash.copy().digest('hex'),
      tokens: Math.ceil(bytes / BYTES_PER_TOKEN),
      marked: mark !== undefined,
    };
  });
}

function partsOf(value: unknown): Json[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  return Array.isArray(value) ? (value as Json[]) : [value as Json];
}
