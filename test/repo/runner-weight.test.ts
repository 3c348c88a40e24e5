/** A pod starts for every run: what its runner loads before the first model call stays small. */
import { execFileSync } from 'node:child_process';

interface Weight {
  files: number;
  bytes: number;
  packages: string[];
}

test('the runner loads one megabyte at most, of these packages only', () => {
  const weight = JSON.parse(execFileSync('node', ['hack/runner-weight.mjs'], { encoding: 'utf8' })) as Weight;

  // Timings decide no test: `make runner-weight` measures. A package more or a bundle that grew is seen here.
  expect(weight.packages).toEqual([
    '@ai-sdk/gateway',
    '@ai-sdk/provider',
    '@ai-sdk/provider-utils',
    '@vercel/oidc',
    '@workflow/serde',
    'ai',
    'eventsource-parser',
    'zod',
  ]);
  expect(weight.bytes).toBeLessThan(1_000_000);
  expect(weight.files).toBeLessThan(20);
});
