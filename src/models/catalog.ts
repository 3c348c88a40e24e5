/**
 * The models of each provider with their prices and sizes: facts that change, read from the providers' price lists on
 * 2026-07-02, and on 2026-11-23 from these and from release notes of others that quote them. A model that is not here can be
 * used as well; its price is unknown, never 0. So is one that a flat price would get wrong. `make model-report` lists the
 * models of the SDKs that are missing here.
 *
 * https://platform.claude.com/docs/en/about-claude/pricing, https://developers.openai.com/api/docs/pricing,
 * https://ai.google.dev/gemini-api/docs/pricing, https://docs.mistral.ai/inference/pricing,
 * https://docs.x.ai/developers/models, https://api-docs.deepseek.com/quick_start/pricing
 */
import type { Provider } from '../api/v1alpha1/common.js';

export interface KnownModel {
  provider: Exclude<Provider, 'boxwright'>;
  model: string;
  /** Tokens. */
  contextWindow: number;
  /** US dollars for a million tokens, at the provider's standard rate for prompts of ordinary length; absent when unknown. */
  inputUsd?: number | undefined;
  outputUsd?: number | undefined;
  /** Input that the provider had cached, and input that it puts into its cache; as other input when absent. */
  cacheReadUsd?: number | undefined;
  cacheWriteUsd?: number | undefined;
}

type Row = readonly [
  model: string,
  contextWindow: number,
  inputUsd?: number,
  outputUsd?: number,
  cacheReadUsd?: number,
  cacheWriteUsd?: number,
];

/** The first model of each provider is its default. */
const ROWS: Readonly<Record<KnownModel['provider'], readonly Row[]>> = {
  anthropic: [
    ['claude-sonnet-5', 1_000_000, 2, 10, 0.2, 2.5],
    ['claude-sonnet-5-5', 1_000_000, 2, 10, 0.1, 2.5],
    ['claude-opus-5-5', 1_000_000, 4, 20, 0.2, 5],
    ['claude-opus-5', 1_000_000, 5, 25, 0.5, 6.25],
    ['claude-fable-5-1', 1_000_000, 10, 50, 0.25, 12.5],
    ['claude-fable-5', 1_000_000, 10, 50, 1, 12.5],
    // Costs five times as much for prompts above 100,000 tokens: no flat price is right.
    ['claude-haiku-5-5', 1_000_000],
    ['claude-opus-4-8', 1_000_000, 5, 25, 0.5, 6.25],
    ['claude-opus-4-7', 1_000_000, 5, 25, 0.5, 6.25],
    ['claude-opus-4-6', 1_000_000, 5, 25, 0.5, 6.25],
    ['claude-sonnet-4-6', 1_000_000, 3, 15, 0.3, 3.75],
    ['claude-opus-4-5', 200_000, 5, 25, 0.5, 6.25],
    ['claude-sonnet-4-5', 200_000, 3, 15, 0.3, 3.75],
    ['claude-haiku-4-5', 200_000, 1, 5, 0.1, 1.25],
  ],
  openai: [
    ['gpt-5.5', 1_050_000, 5, 30, 0.5],
    ['gpt-6-astra', 1_050_000, 10, 50, 1, 12.5],
    ['gpt-6.1-sol', 1_050_000, 2, 10, 0.1, 2.5],
    ['gpt-6.1-terra', 1_050_000, 1, 5, 0.05, 1.25],
    ['gpt-6-sol', 1_050_000, 2, 10, 0.2, 2.5],
    ['gpt-6-luna', 1_050_000, 0.1, 0.5, 0.01, 0.125],
    ['gpt-5.5-pro', 1_050_000, 30, 180],
    ['gpt-5.4', 1_050_000, 2.5, 15, 0.25],
    ['gpt-5.4-pro', 1_050_000, 30, 180],
    ['gpt-5.4-mini', 400_000, 0.75, 4.5, 0.075],
    ['gpt-5.4-nano', 400_000, 0.2, 1.25, 0.02],
    ['gpt-5.3-codex', 400_000, 1.75, 14, 0.175],
    ['gpt-5.2', 400_000, 1.75, 14, 0.175],
    ['gpt-5.2-codex', 400_000, 1.75, 14, 0.175],
    ['gpt-5.1', 400_000, 1.25, 10, 0.125],
    ['gpt-5.1-codex', 400_000, 1.25, 10, 0.125],
    ['gpt-5.1-codex-max', 400_000, 1.25, 10, 0.125],
    ['gpt-5.1-codex-mini', 400_000, 0.25, 2, 0.025],
    ['gpt-5-mini', 400_000, 0.25, 2, 0.025],
    ['gpt-5-nano', 400_000, 0.05, 0.4, 0.005],
    ['gpt-4.1', 1_047_576, 2, 8, 0.5],
    ['gpt-4.1-mini', 1_047_576, 0.4, 1.6, 0.1],
    ['gpt-4.1-nano', 1_047_576, 0.1, 0.4, 0.025],
    ['gpt-4o', 128_000, 2.5, 10, 1.25],
    ['gpt-4o-mini', 128_000, 0.15, 0.6, 0.075],
    ['o3', 200_000, 2, 8, 0.5],
    ['o4-mini', 200_000, 1.1, 4.4, 0.275],
  ],
  google: [
    ['gemini-3.5-flash', 1_048_576, 1.5, 9, 0.15],
    ['gemini-3.6-flash', 1_048_576, 1.5, 7.5, 0.15],
    ['gemini-3.5-flash-lite', 1_048_576, 0.3, 2.5, 0.03],
    ['gemini-3.1-pro-preview', 1_048_576, 2, 12, 0.2],
    ['gemini-3.1-flash-lite', 1_048_576, 0.25, 1.5, 0.025],
    ['gemini-3-flash-preview', 1_048_576, 0.5, 3, 0.05],
    ['gemini-2.5-flash-lite', 1_048_576, 0.1, 0.4, 0.01],
  ],
  mistral: [
    ['mistral-large-latest', 262_144, 0.5, 1.5, 0.05],
    ['mistral-small-latest', 256_000, 0.15, 0.6, 0.015],
    ['mistral-large-2512', 262_144, 0.5, 1.5, 0.05],
    ['mistral-medium-2604', 262_144, 1.5, 7.5],
    ['mistral-small-2603', 256_000, 0.15, 0.6, 0.015],
    ['codestral-latest', 256_000, 0.3, 0.9, 0.03],
  ],
  xai: [
    ['grok-4.3', 1_000_000, 1.25, 2.5, 0.2],
    ['grok-4.7', 500_000, 2, 6, 0.5],
    ['grok-4.6', 500_000, 2, 6, 0.5],
    ['grok-4.5', 500_000, 2, 6, 0.5],
    ['grok-4.20-0309-reasoning', 1_000_000, 1.25, 2.5],
    ['grok-4.20-0309-non-reasoning', 1_000_000, 1.25, 2.5],
    ['grok-build-0.1', 256_000, 1, 2],
  ],
  deepseek: [
    ['deepseek-v4-flash', 1_000_000, 0.14, 0.28],
    ['deepseek-v4-pro', 1_000_000, 0.435, 0.87],
    ['deepseek-chat', 1_000_000, 0.14, 0.28],
    ['deepseek-reasoner', 1_000_000, 0.14, 0.28],
  ],
};

/** The most output tokens that all models of a provider take, thoughts with them; a model that takes less stands beside it. */
const OUTPUT_LIMITS: Readonly<Record<KnownModel['provider'], number>> = {
  anthropic: 64_000,
  openai: 128_000,
  google: 65_536,
  mistral: 32_768,
  xai: 64_000,
  deepseek: 64_000,
};
const SMALLER_OUTPUT_LIMITS: Readonly<Record<string, number>> = {
  'gpt-4.1': 32_768,
  'gpt-4.1-mini': 32_768,
  'deepseek-chat': 8_192,
};

/** The output limit that calls of a model are sent with when nobody chose a smaller one: the SDKs send the largest, or none. */
export function outputLimitOf(provider: KnownModel['provider'], model: string): number {
  const smaller = Object.entries(SMALLER_OUTPUT_LIMITS).find(([name]) => name === model || isDatedName(name, model));
  return smaller?.[1] ?? OUTPUT_LIMITS[provider];
}

/** Every known model, by provider, the default of each first. */
export const KNOWN_MODELS: readonly KnownModel[] = Object.entries(ROWS).flatMap(([provider, rows]) =>
  rows.map(([model, contextWindow, inputUsd, outputUsd, cacheReadUsd, cacheWriteUsd]) => ({
    provider: provider as KnownModel['provider'],
    model,
    contextWindow,
    inputUsd,
    outputUsd,
    cacheReadUsd,
    cacheWriteUsd,
  })),
);

/** The model that a provider's agents use when they name none. */
export function defaultModelOf(provider: KnownModel['provider']): string | undefined {
  return ROWS[provider][0]?.[0];
}

/** The known model of that name, or of the name without its date (`gpt-4.1-2025-04-14`). */
export function findModel(provider: string, model: string): KnownModel | undefined {
  const ofProvider = KNOWN_MODELS.filter((known) => known.provider === provider);
  return (
    ofProvider.find((known) => known.model === model) ?? ofProvider.find((known) => isDatedName(known.model, model))
  );
}

/** Whether `model` is `name` with the date of a version behind it. */
export function isDatedName(name: string, model: string): boolean {
  return model.startsWith(`${name}-`) && /^\d{4}-?\d{2}-?\d{2}$/.test(model.slice(name.length + 1));
}
