/**
 * A model of the AI SDK by provider. Each provider's package is loaded when a run needs it: a run uses one of them, and a
 * pod starts for every run. All talk to the gateway, in the provider's own protocol.
 */
import type { LanguageModel } from 'ai';

export interface ModelChoice {
  provider: string;
  model: string;
  /** Base URL of the provider's SDK, at the gateway. */
  baseUrl: string;
  /** Sends every request, and puts the run token in the place of the key. */
  fetch: typeof globalThis.fetch;
}

/** The SDKs want a key at once; the run token of each request's moment is put in by `fetch`. */
const KEY = 'run-token';

/** Providers whose default is to keep every answer: the gateway passes nothing that is stored there. */
export const NOTHING_STORED = { openai: { store: false }, xai: { store: false } };

/** The same, with the key under which OpenAI keeps what it read of a session. */
export function optionsFor(
  cacheKey: string | undefined,
): typeof NOTHING_STORED & { openai: { promptCacheKey?: string } } {
  if (cacheKey === undefined) return NOTHING_STORED;
  return { ...NOTHING_STORED, openai: { ...NOTHING_STORED.openai, promptCacheKey: cacheKey } };
}

/** Rejects for a provider that this runner does not know. */
export async function languageModel({
  provider,
  model,
  baseUrl,
  fetch,
}: ModelChoice): Promise<Exclude<LanguageModel, string>> {
  const settings = { baseURL: baseUrl, apiKey: KEY, fetch };
  switch (provider) {
    case 'boxwright': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      return createOpenAICompatible({ ...settings, name: 'boxwright' }).chatModel(model);
    }
    case 'anthropic':
      return (await import('@ai-sdk/anthropic')).createAnthropic(settings)(model);
    case 'openai':
      return (await import('@ai-sdk/openai')).createOpenAI(settings).responses(model);
    case 'google':
      return (await import('@ai-sdk/google')).createGoogleGenerativeAI(settings)(model);
    case 'mistral':
      return (await import('@ai-sdk/mistral')).createMistral(settings)(model);
    case 'xai':
      return (await import('@ai-sdk/xai')).createXai(settings).responses(model);
    case 'deepseek':
      return (await import('@ai-sdk/deepseek')).createDeepSeek(settings)(model);
    default:
      throw new Error(`This runner does not know provider ${provider}: its image is older than the gateway.`);
  }
}
