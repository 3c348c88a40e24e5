/**
 * What makes a vendor's prompt cache work. Anthropic caches only what is marked, at most four marks in a request: the tools,
 * the system prompt, and the end of the conversation in this call and in the one before. OpenAI finds by itself what it
 * knows, on the machine that the key of the session leads to. The others cache without a word.
 */
import type { ModelMessage } from 'ai';

/** Anthropic's mark: everything up to here may be read from the cache in the next call. */
export const CACHE_MARK = { anthropic: { cacheControl: { type: 'ephemeral' as const } } };

/** The conversation with marks at its end and where it ended in the call before; older marks are gone. */
export function markedMessages(messages: readonly ModelMessage[]): ModelMessage[] {
  const last = messages.length - 1;
  // What the model said follows the end of the call before. A long step lies further back than a vendor looks for itself.
  const before = messages.findLastIndex(({ role }) => role === 'assistant') - 1;
  return messages.map((message, index) => {
    const { providerOptions: _marked, ...plain } = message;
    return index === last || index === before ? { ...plain, providerOptions: CACHE_MARK } : plain;
  });
}
