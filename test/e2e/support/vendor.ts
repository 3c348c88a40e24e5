/** A pod that plays the model vendors in their own protocols, and Boxes that reach it with keys of their own. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { BASE_PATHS } from '../../builders/fake-provider.js';
import { apply, eventually, getObject, kubectl, kubectlOk, productImages } from './install.js';
import type { Tenant } from './tenant.js';
import type { ScriptedAnswer, SeenCase } from './vendor-process.js';

/** Ports of vendor-process.ts, which is no module to import: it listens. */
const VENDOR_PORT = 8080;
const CONTROL_PORT = 8081;

export const VENDOR_KEY = 'sk-vendor-0123456789abcdef';

/** Provider, a priced model of it, and the key of the credentials Secret. `boxwright` is an OpenAI-compatible endpoint. */
export const MODELS = [
  { provider: 'anthropic', model: 'claude-sonnet-5', secretKey: 'ANTHROPIC_API_KEY' },
  { provider: 'openai', model: 'gpt-5.5', secretKey: 'OPENAI_API_KEY' },
  { provider: 'google', model: 'gemini-3.5-flash', secretKey: 'GOOGLE_API_KEY' },
  { provider: 'mistral', model: 'mistral-large-latest', secretKey: 'MISTRAL_API_KEY' },
  { provider: 'xai', model: 'grok-4.3', secretKey: 'XAI_API_KEY' },
  { provider: 'deepseek', model: 'deepseek-chat', secretKey: 'DEEPSEEK_API_KEY' },
  { provider: 'boxwright', model: 'my-model', secretKey: 'API_KEY' },
] as const;

export interface ProviderPod {
  /** Fields of a Box that send all its model calls here; the endpoint costs 1 US dollar a million input and 2 output tokens. */
  box: object;
  /** Puts the keys into the Box's namespace. */
  giveKeys(tenant: Tenant, key?: string): Promise<void>;
  /** Says how requests whose conversation holds `[case:NAME]` are answered. */
  script(name: string, ...answers: ScriptedAnswer[]): Promise<void>;
  /** What came for a case so far. */
  seen(name: string, text?: string): Promise<SeenCase['requests']>;
  /** A server that redirects every request: host with port, and the paths that were asked for so far. */
  redirecting: { host: string; paths(): Promise<string[]> };
  remove(): Promise<void>;
}

/** Starts the pod in a namespace of its own, from an image of the product, which has Node. */
export async function startProviderPod(name: string): Promise<ProviderPod> {
  const namespace = `${name}-vendors`;
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'vendors', namespace },
      data: { 'main.mjs': await bundle() },
    },
    await podManifest(namespace),
  );
  const ip = await eventually('the vendor pod listens', async () => {
    const pod = await getObject<{ status: { podIP?: string } }>('pod', 'vendors', namespace);
    const answer = await kubectl(['get', '--raw', control(namespace, '/seen?name=')]);
    return answer.ok ? pod?.status.podIP : undefined;
  });
  const origin = `http://${ip}:${VENDOR_PORT}`;
  const vendors = MODELS.flatMap(({ provider }) =>
    provider === 'boxwright' ? [] : [[provider, { baseUrl: origin + BASE_PATHS[provider] }] as const],
  );
  return {
    box: {
      engine: undefined,
      credentialsSecret: 'models',
      vendors: Object.fromEntries(vendors),
      endpoint: {
        baseUrl: origin + BASE_PATHS.local,
        secretRef: { name: 'models', key: 'API_KEY' },
        prices: { inputUsd: '1', outputUsd: '2' },
      },
    },
    giveKeys: (tenant, key = VENDOR_KEY) =>
      apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: 'models',
          namespace: tenant.namespace,
          labels: { 'boxwright.dev/credential': 'true' },
        },
        stringData: Object.fromEntries(MODELS.map(({ secretKey }) => [secretKey, key])),
      }),
    script: async (caseName, ...answers) => {
      const script = JSON.stringify({ name: caseName, answers });
      await kubectlOk(['create', '--raw', control(namespace, '/script'), '-f', '-'], script);
    },
    seen: async (caseName, said = '') => {
      const query = `/seen?name=${caseName}&text=${encodeURIComponent(said)}`;
      const text = await kubectlOk(['get', '--raw', control(namespace, query)]);
      return (JSON.parse(text) as SeenCase).requests;
    },
    redirecting: {
      host: `${ip}:${CONTROL_PORT}`,
      paths: async () => JSON.parse(await kubectlOk(['get', '--raw', control(namespace, '/paths')])) as string[],
    },
    remove: async () => {
      await kubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--wait=false']);
    },
  };
}

/** Through the API server's proxy, which reaches pods from wherever the test runs. */
function control(namespace: string, path: string): string {
  return `/api/v1/namespaces/${namespace}/pods/vendors:${CONTROL_PORT}/proxy${path}`;
}

async function bundle(): Promise<string> {
  const { stdout } = await promisify(execFile)(
    'node_modules/.bin/esbuild',
    ['test/e2e/support/vendor-process.ts', '--bundle', '--platform=node', '--format=esm', '--target=node24'],
    { maxBuffer: 4 * 1024 * 1024 },
  );
  return stdout;
}

async function podManifest(namespace: string): Promise<object> {
  const { tools: image } = await productImages();
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'vendors', namespace },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'vendors',
          image,
          command: ['node', '/vendors/main.mjs'],
          env: [{ name: 'VENDOR_KEY', value: VENDOR_KEY }],
          volumeMounts: [{ name: 'code', mountPath: '/vendors' }],
        },
      ],
      volumes: [{ name: 'code', configMap: { name: 'vendors' } }],
    },
  };
}
