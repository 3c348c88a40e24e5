/** An agent loop on the real SDK of a vendor, the real handler of the gateway, and a vendor that answers as a test says. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { LABEL_CREDENTIAL } from '../../../src/api/credentials.js';
import { Secrets } from '../../../src/kube/core-types.js';
import type { ClaimAnswer, TranscriptMessage } from '../../../src/protocol/run.js';
import { createAiSdkEngine } from '../../../src/runner/ai-sdk-engine.js';
import type { EngineOutcome, EngineTool, ModelSettings } from '../../../src/runner/engine.js';
import { startFakeProvider } from '../../builders/fake-provider.js';
import type { FakeProvider, FakeProviderOptions } from '../../builders/fake-provider.js';
import { GatewayWorld, NAMESPACE, RELEASE, type GatewayPod, type RunPod } from '../../builders/gateway-world.js';

export const KEY = 'sk-vendor-0123456789abcdef';

export const PROVIDER_APIS = [
  { provider: 'anthropic', model: 'claude-sonnet-5', secretKey: 'ANTHROPIC_API_KEY', path: '/anthropic/v1/messages' },
  { provider: 'openai', model: 'gpt-5.5', secretKey: 'OPENAI_API_KEY', path: '/openai/v1/responses' },
  {
    provider: 'google',
    model: 'gemini-3.5-flash',
    secretKey: 'GOOGLE_API_KEY',
    path: '/google/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse',
  },
  {
    provider: 'mistral',
    model: 'mistral-large-latest',
    secretKey: 'MISTRAL_API_KEY',
    path: '/mistral/v1/chat/completions',
  },
  { provider: 'xai', model: 'grok-4.3', secretKey: 'XAI_API_KEY', path: '/xai/v1/responses' },
  {
    provider: 'deepseek',
    model: 'deepseek-chat',
    secretKey: 'DEEPSEEK_API_KEY',
    path: '/deepseek/v1/chat/completions',
  },
  { provider: 'boxwright', model: 'my-model', secretKey: 'API_KEY', path: '/local/v1/chat/completions' },
] as const;
export type Case = (typeof PROVIDER_APIS)[number];
export const ANTHROPIC = PROVIDER_APIS[0];

export interface Scene {
  world: GatewayWorld;
  gateway: GatewayPod;
  pod: RunPod;
  vendor: FakeProvider;
  claim: ClaimAnswer;
  /** URL of the gateway. */
  url: string;
  /** What came back to the runner: statuses, headers and bodies of every answer. */
  heard: string[];
  fetch: typeof globalThis.fetch;
}

/** What ends with the test. */
export const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

export interface SceneOptions {
  box?: Record<string, unknown>;
  agent?: Record<string, unknown>;
  installationSecret?: boolean;
  /** Keys of further providers that the Secret has. */
  otherKeys?: readonly string[];
  key?: string;
  stepLimit?: number;
}

export async function scene(
  { provider, model, secretKey }: Case,
  answers: NonNullable<FakeProviderOptions['answers']> = [],
  options: SceneOptions = {},
): Promise<Scene> {
  const vendor = await startFakeProvider({ key: KEY, answers });
  const base = (name: Parameters<FakeProvider['baseUrl']>[0]) => vendor.baseUrl(name);
  const endpoint = {
    baseUrl: base('local'),
    secretRef: { name: 'models', key: secretKey },
    prices: { inputUsd: '1', outputUsd: '2' },
  };
  const world = new GatewayWorld({
    agent: { provider, model, ...options.agent },
    box: {
      engine: undefined,
      ...(options.installationSecret === true ? {} : { credentialsSecret: 'models' }),
      ...(provider === 'boxwright' ? { endpoint } : {}),
      ...options.box,
    },
    models: {
      ...(options.installationSecret === true ? { modelCredentialsSecret: 'models' } : {}),
      modelBaseUrls: {
        anthropic: base('anthropic'),
        openai: base('openai'),
        google: base('google'),
        mistral: base('mistral'),
        xai: base('xai'),
        deepseek: base('deepseek'),
      },
    },
  });
  world.api.seed(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'models',
      namespace: options.installationSecret === true ? RELEASE : NAMESPACE,
      labels: options.installationSecret === true ? {} : { [LABEL_CREDENTIAL]: 'true' },
    },
    data: Object.fromEntries(
      [secretKey, ...(options.otherKeys ?? [])].map((name) => [
        name,
        Buffer.from(options.key ?? KEY).toString('base64'),
      ]),
    ),
  });
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', { limits: { stepLimit: options.stepLimit ?? 10 } });
  const claim = (await world.claim(gateway, pod)).json as unknown as ClaimAnswer;
  const server = createServer((request, response) => void gateway.gateway.handler.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => vendor.close());
  open.push(() => world.dispatcher.close());
  open.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const heard: string[] = [];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { world, gateway, pod, vendor, claim, url, heard, fetch: runnersFetch(pod, heard) };
}

/** As the runner's own: the token of the moment takes the place of the key, and no other header of the SDK is sent. */
function runnersFetch(pod: RunPod, heard: string[]): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, {
      method: 'POST',
      headers: { authorization: `Bearer ${pod.token}`, 'content-type': 'application/json' },
      ...(init?.body === undefined ? {} : { body: init.body }),
      ...(init?.signal === undefined ? {} : { signal: init.signal }),
    });
    const text = await response
      .clone()
      .text()
      .catch(() => 'cut');
    heard.push(JSON.stringify([response.status, [...response.headers], text]));
    return response;
  };
}

export const echo: EngineTool = {
  name: 'echo',
  family: 'shell',
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  execute: (input) => Promise.resolve({ isError: false, result: { said: input['text'] } }),
};

export interface AgentOptions {
  signal?: AbortSignal;
  /** What the run is told goes here. */
  warnings?: string[];
  instructions?: string;
  tools?: readonly EngineTool[];
  /** Gets the messages of the conversation as they are stored. */
  stored?: TranscriptMessage[];
}

/** The agent loop of a run pod. */
export function runAgent({ claim, url, fetch }: Scene, options: AgentOptions = {}): Promise<EngineOutcome> {
  const { signal = new AbortController().signal, warnings = [], instructions = 'Be kind.' } = options;
  const { tools = [echo], stored = [] } = options;
  const onWarning = async (text: string) => void warnings.push(text);
  const onMessage = async (message: TranscriptMessage) => void stored.push(message);
  const nothing = () => Promise.resolve();
  const { basePath, ...model } = claim.model;
  return createAiSdkEngine(fetch).run(
    {
      ...(model as ModelSettings),
      baseUrl: url + basePath,
      fallbacks: (claim.fallbacks ?? []).map(({ basePath: path, ...fallback }) => ({
        ...fallback,
        baseUrl: url + path,
      })),
      instructions,
      messages: [{ role: 'user', text: 'Hello' }],
      tools,
      stepLimit: claim.limits.stepLimit,
    },
    { onTool: nothing, onMessage, onStep: nothing, onWarning, onCompaction: nothing },
    signal,
  );
}

/** Lets the fake clock run until something has happened on real sockets. */
export async function letTimePass<T>({ world }: Scene, until: Promise<T>): Promise<T> {
  const state = { settled: false };
  const watched = until.finally(() => (state.settled = true));
  watched.catch(() => undefined);
  while (!state.settled) {
    await world.clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return watched;
}

/** Lets the fake clock run only while the gateway waits to try again: what happens on real sockets takes no time. */
export async function letWaitsPass<T>(at: Scene, until: Promise<T>): Promise<T> {
  const state = { settled: false };
  const watched = until.finally(() => (state.settled = true));
  watched.catch(() => undefined);
  while (!state.settled) {
    const call = at.gateway.gateway.served.list()[0]?.call;
    if (call?.waiting !== undefined && call.open === undefined) await at.world.clock.advanceToNext();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return watched;
}

export const usageOf = ({ gateway }: Scene) => gateway.gateway.served.list()[0]?.usage;
