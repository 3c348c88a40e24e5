// Lists the models that the pinned AI SDK packages name and our catalogue (src/models/catalog.ts) does not know, and those that
// it knows without a price. Read the provider's price list before a row is added; what is no model for agents stays out.
import { readFileSync } from 'node:fs';
import { KNOWN_MODELS, findModel } from '../src/models/catalog.js';
import type { KnownModel } from '../src/models/catalog.js';

type Provider = KnownModel['provider'];

/** Where the types of each SDK name its models: the keys of a constant, or the members of a union. */
const PLACES: Record<Provider, RegExp> = {
  anthropic: /^declare const languageModelDefinitions: \{$([^]*?)^\};$/m,
  openai: /^declare const openaiLanguageModelDefinitions: \{$([^]*?)^\};$/m,
  google: /^declare const languageModelDefinitions: \{$([^]*?)^\};$/m,
  mistral: /^declare const languageModelDefinitions: \{$([^]*?)^\};$/m,
  xai: /^type XaiResponsesModelId = (.*);$/m,
  deepseek: /^type DeepSeekChatModelId = (.*);$/m,
};
/** A key of a constant stands two spaces in; members of a union stand in one line. */
const NAMES = /^ {2}(?:readonly )?(?:'([^']+)'|([A-Za-z][\w-]*))\??:|(?<=^|\| )'([^']+)'/gm;

function modelsOfSdk(provider: Provider): string[] {
  const path = `node_modules/@ai-sdk/${provider}/dist/index.d.ts`;
  const place = PLACES[provider].exec(readFileSync(path, 'utf8'))?.[1] ?? '';
  const names = [...place.matchAll(NAMES)].map(([, quoted, plain, member]) => quoted ?? plain ?? member ?? '');
  if (names.length === 0) throw new Error(`${path} names its models in another way: mend hack/model-report.ts`);
  return names;
}

const report = Object.keys(PLACES).map((name) => {
  const provider = name as Provider;
  const sdk = modelsOfSdk(provider);
  const ours = KNOWN_MODELS.filter((known) => known.provider === provider);
  return {
    provider,
    inSdk: sdk.length,
    unknown: sdk.filter((model) => findModel(provider, model) === undefined),
    withoutPrice: ours.filter(({ inputUsd }) => inputUsd === undefined).map(({ model }) => model),
  };
});
console.log(JSON.stringify(report, null, 2));
