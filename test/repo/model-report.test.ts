/** The report of models reads every pinned SDK, and what the SDK and our catalogue both name is not in it. */
import { execFileSync } from 'node:child_process';
import { findModel, KNOWN_MODELS } from '../../src/models/catalog.js';

interface Row {
  provider: string;
  inSdk: number;
  unknown: string[];
  withoutPrice: string[];
}

const report = JSON.parse(
  execFileSync(process.execPath, ['hack/run-ts.mjs', 'hack/model-report.ts'], { encoding: 'utf8' }),
) as Row[];

test('every provider is in it once, with models of its SDK', () => {
  expect(report.map(({ provider }) => provider)).toEqual([...new Set(KNOWN_MODELS.map(({ provider }) => provider))]);
  for (const { inSdk, unknown } of report) expect(inSdk).toBeGreaterThan(unknown.length);
});

test('names what the catalogue does not know, and what it knows without a price', () => {
  for (const { provider, unknown } of report) {
    expect(unknown.filter((model) => findModel(provider, model) !== undefined)).toEqual([]);
  }
  const { unknown = [], withoutPrice } = report.find(({ provider }) => provider === 'anthropic') ?? {};
  expect(unknown).toContain('claude-fable-5-2');
  expect(withoutPrice).toEqual(['claude-haiku-5-5']);
});
