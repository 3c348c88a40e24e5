/**
 * How providers say that a conversation is larger than their model reads. None of them has a code for it that all send, so the
 * words decide; they come through the gateway as they were written. Pure.
 */

/** What a refusal tells; both are missing with providers that give no numbers. */
export interface Overflow {
  /** Tokens that the model reads. */
  window?: number;
  /** Tokens that it was sent. */
  tokens?: number;
}

const SAYINGS: readonly RegExp[] = [
  // Anthropic.
  /prompt is too long: (?<tokens>\d+) tokens > (?<window>\d+)/i,
  /exceed context limit: (?<tokens>\d+) \+ \d+ > (?<window>\d+)/i,
  /prompt is too long/i,
  /request exceeds the maximum (?:allowed number of bytes|size)/i,
  // OpenAI, DeepSeek, vLLM, OpenRouter.
  /maximum context length (?:is|of) (?<window>\d+)/i,
  /exceeds the context window/i,
  /context_length_exceeded/i,
  /longer than the maximum model length of (?<window>\d+)/i,
  // Google.
  /input token count \((?<tokens>\d+)\) exceeds the maximum number of tokens allowed \((?<window>\d+)\)/i,
  /input token count exceeds the maximum number of tokens allowed/i,
  // Mistral, xAI.
  /too large for model with (?<window>\d+) maximum context length/i,
  /maximum prompt length is (?<window>\d+) but the request contains (?<tokens>\d+) tokens/i,
  // llama.cpp.
  /request \((?<tokens>\d+) tokens\) exceeds the available context size \((?<window>\d+) tokens\)/i,
  /exceeds the available context size/i,
  // Ollama, LM Studio.
  /input length exceeds the (?:maximum )?context length/i,
  /exceeded max context length/i,
  /context length of only (?<window>\d+) tokens/i,
  // Others that speak one of these protocols.
  /prompt token count of (?<tokens>\d+) exceeds the limit of (?<window>\d+)/i,
  /input is too long for requested model/i,
  /context window exceeds limit/i,
  // Proxies before any of them.
  /answered HTTP 413\b/,
  // Our gateway: before the model is asked at all.
  /the body is larger than \d+ bytes/i,
];
/** In another sentence, or before the window. */
const SENT = /(?:resulted in|requested|requested about|request has|prompt contains) (?<tokens>\d+) /i;

/** What the words of a refused model call tell of the window; undefined when they are about something else. */
export function overflowIn(message: string): Overflow | undefined {
  for (const saying of SAYINGS) {
    const found = saying.exec(message);
    if (found === null) continue;
    const { window, tokens = SENT.exec(message)?.groups?.['tokens'] } = found.groups ?? {};
    return { ...numberIn('window', window), ...numberIn('tokens', tokens) };
  }
  return undefined;
}

function numberIn(name: 'window' | 'tokens', written: string | undefined): Overflow {
  const value = Number(written);
  return Number.isSafeInteger(value) && value > 0 ? { [name]: value } : {};
}
