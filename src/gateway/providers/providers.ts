/**
 * The six providers: where they are, which protocol they speak, and how they are shown a key.
 * See docs/architecture.md#providers.
 */
import { PROVIDER_KEYS } from '../../api/credentials.js';
import type { Provider } from '../../api/v1alpha1/common.js';
import { anthropicMessages } from './anthropic.js';
import { askingForUsage, chatCompletions } from './chat-completions.js';
import type { Dialect } from './dialect.js';
import { googleGenerate } from './google.js';
import { openaiResponses } from './openai-responses.js';

export type ProviderName = Exclude<Provider, 'boxwright'>;

export interface ProviderApi {
  dialect: Dialect;
  /** With the version, without a slash at the end. */
  baseUrl: string;
  /** The version in paths at the gateway: the SDKs end their base URLs with it. */
  version: 'v1' | 'v1beta';
  /** Key of the credentials Secret. */
  secretKey: string;
  headers(key: string): Record<string, string>;
  /** Last changes to a body that is passed. */
  prepare?(body: Readonly<Record<string, unknown>>): Record<string, unknown>;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

export const PROVIDER_APIS: Readonly<Record<ProviderName, ProviderApi>> = {
  anthropic: {
    dialect: anthropicMessages,
    baseUrl: 'https://api.anthropic.com/v1',
    version: 'v1',
    secretKey: PROVIDER_KEYS.anthropic,
    headers: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  },
  openai: {
    dialect: openaiResponses,
    baseUrl: 'https://api.openai.com/v1',
    version: 'v1',
    secretKey: PROVIDER_KEYS.openai,
    headers: bearer,
  },
  google: {
    dialect: googleGenerate,
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    version: 'v1beta',
    secretKey: PROVIDER_KEYS.google,
    headers: (key) => ({ 'x-goog-api-key': key }),
  },
  mistral: {
    dialect: chatCompletions,
    baseUrl: 'https://api.mistral.ai/v1',
    version: 'v1',
    secretKey: PROVIDER_KEYS.mistral,
    headers: bearer,
  },
  xai: {
    dialect: openaiResponses,
    baseUrl: 'https://api.x.ai/v1',
    version: 'v1',
    secretKey: PROVIDER_KEYS.xai,
    headers: bearer,
  },
  deepseek: {
    dialect: chatCompletions,
    baseUrl: 'https://api.deepseek.com/v1',
    version: 'v1',
    secretKey: PROVIDER_KEYS.deepseek,
    headers: bearer,
    prepare: askingForUsage,
  },
};

/** Whether a word is the name of a provider. */
export function isProvider(provider: string): provider is ProviderName {
  return Object.hasOwn(PROVIDER_APIS, provider);
}

/** An OpenAI-compatible server of a Box; it may need no key. */
export function endpointProvider(baseUrl: string): Omit<ProviderApi, 'secretKey'> {
  return {
    dialect: chatCompletions,
    baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ''),
    version: 'v1',
    headers: (key): Record<string, string> => (key === '' ? {} : bearer(key)),
    prepare: askingForUsage,
  };
}
