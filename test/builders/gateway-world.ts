/**
 * Gateway pods on an API server in memory: one Box with one agent, runs with Job, pod and token as the cluster makes them,
 * and calls through the real HTTP handler without a socket.
 */
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  ANNOTATION_PREVIOUS_RUN,
  API_SERVICE_ACCOUNT,
  GATEWAY_TOKEN_AUDIENCE,
  LABEL_RUN,
  RUN_TOKEN_AUDIENCE,
  RUNNER_SERVICE_ACCOUNT,
} from '../../src/api/labels.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { boxNamespace } from '../../src/api/names.js';
import type { ArchiveReader } from '../../src/archive/types.js';
import { AgentRuns, type AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { createGatewayCaches } from '../../src/gateway/caches.js';
import { createGateway, type Gateway } from '../../src/gateway/gateway.js';
import { createGatewayMetrics } from '../../src/gateway/metrics.js';
import {
  createModelAccess,
  createProviderDispatcher,
  type ModelSettings,
} from '../../src/gateway/providers/model-access.js';
import { BodyBudget } from '../../src/net/body-budget.js';
import { EventStream } from '../../src/net/event-stream.js';
import type { WebClient } from '../../src/net/web-client.js';
import { Jobs, Pods, TokenReviews, type TokenReview } from '../../src/kube/core-types.js';
import type { CallOptions } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { createHttpMetrics } from '../../src/observability/metrics.js';
import { FeedMessage, feedPath } from '../../src/protocol/feed.js';
import { runPath } from '../../src/protocol/run.js';
import { Registry } from 'prom-client';
import { FakeClock } from './fake-clock.js';
import { RecordingApi } from './recording-api.js';

export const BOX = 'lab';
export const NAMESPACE = boxNamespace(BOX);
export const RELEASE = 'boxwright';
const API_LABELS = { 'app.kubernetes.io/name': 'boxwright', 'app.kubernetes.io/component': 'api' };
const GATEWAY_LABELS = { 'app.kubernetes.io/name': 'boxwright', 'app.kubernetes.io/component': 'gateway' };

/** Answers TokenReviews like the API server: only the tokens that it issued are genuine. */
class ReviewingApi extends RecordingApi {
  readonly genuine = new Map<string, { username: string; podName: string; podUid: string; audiences: string[] }>();
  /** Tokens that were asked about, in order. */
  readonly reviewed: string[] = [];
  reviewsFail = false;

  override async create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: CallOptions): Promise<T> {
    if ((type as ResourceType) !== (TokenReviews as ResourceType)) return super.create(type, object, options);
    const review = object as unknown as TokenReview;
    this.reviewed.push(review.spec.token);
    await Promise.resolve();
    if (this.reviewsFail) throw new Error('the API server is away');
    return { ...review, status: this.#statusOf(review.spec.token) } as unknown as T;
  }

  #statusOf(token: string): TokenReview['status'] {
    const known = this.genuine.get(token);
    if (known === undefined) return { authenticated: false, error: 'not genuine' };
    return {
      authenticated: true,
      audiences: known.audiences,
      user: {
        username: known.username,
        extra: {
          'authentication.kubernetes.io/pod-name': [known.podName],
          'authentication.kubernetes.io/pod-uid': [known.podUid],
        },
      },
    };
  }
}

export interface TokenOptions {
  audience?: string;
  expiresInSeconds?: number;
  serviceAccount?: string;
  podUid?: string;
  /** False: it looks right, but the API server did not issue it. */
  genuine?: boolean;
}

export interface Reply {
  status: number;
  headers: Record<string, string>;
  text: string;
  // Bodies are asserted field by field.
  json: Record<string, unknown>;
}

export interface GatewayPod {
  name: string;
  uid: string;
  address: string;
  gateway: Gateway;
  registry: Registry;
  /** Lines of its log, as they leave the process. */
  logs: string[];
  drain(): void;
}

export interface Followed {
  /** Resolves when the stream has ended. */
  done: Promise<void>;
  /** What came since the last call. */
  messages(): FeedMessage[];
  /** The same as it stands in the body. */
  raw(): string;
  leave(): void;
}

export interface RunPod {
  namespace: string;
  run: string;
  podName: string;
  podUid: string;
  token: string;
}

export interface RawCall {
  method: string;
  url: string;
  body?: unknown;
  token?: string;
}

export interface WorldOptions {
  /** To MCP servers; a world without it has none. */
  web?: Pick<WebClient, 'request'>;
  /** Settings of the installation about models. */
  models?: Partial<ModelSettings>;
  box?: Record<string, unknown>;
  agent?: Record<string, unknown>;
  /** The archive of the installation. */
  archive?: ArchiveReader;
}

export class GatewayWorld {
  readonly clock = new FakeClock();
  readonly api = new ReviewingApi({ clock: this.clock });
  /** Connections to vendors; a test that opens any closes them. */
  readonly dispatcher = createProviderDispatcher();
  /** What bodies on their way in hold: room for two of the largest. */
  readonly bodies = new BodyBudget(20 * 1024 * 1024);
  readonly #models: Partial<ModelSettings>;
  readonly #archive: ArchiveReader | undefined;
  readonly #web: Pick<WebClient, 'request'>;
  #gateways = 0;

  constructor(options: WorldOptions = {}) {
    this.#models = options.models ?? {};
    this.#archive = options.archive;
    this.#web = options.web ?? { request: () => Promise.reject(new Error('this world has no MCP servers')) };
    this.api.seed(Boxes, {
      apiVersion: '',
      kind: '',
      metadata: { name: BOX },
      spec: BoxSpec.parse({ workspace: 'main', engine: 'scripted', ...options.box }),
    });
    this.api.seed(Agents, {
      apiVersion: '',
      kind: '',
      metadata: { name: 'helper', namespace: NAMESPACE, uid: 'uid-agent' },
      spec: AgentSpec.parse({ name: 'Helper', soul: 'Be brief.', ...options.agent }),
    });
  }

  /** A gateway pod with its process, ready; `ready: false` or vanish() of its pod lets others take its runs. */
  startGateway(): GatewayPod {
    this.#gateways += 1;
    const name = `gateway-${this.#gateways}`;
    return this.startProcess(name, `uid-${name}`, `10.0.0.${this.#gateways}:8443`);
  }

  /** A process in a pod that may be there already: a container that started again. */
  startProcess(name: string, uid: string, address: string): GatewayPod {
    const key = `${RELEASE}/${name}`;
    if (this.api.peek(Pods, key) === undefined) this.setGatewayPod(name, uid, true);
    const logs: string[] = [];
    const log = createLogger('gateway', 'debug', { write: (line) => logs.push(line) });
    const caches = createGatewayCaches((options) => this.api.informer(options), {
      releaseNamespace: RELEASE,
      gatewaySelector: 'app.kubernetes.io/name=boxwright,app.kubernetes.io/component=gateway',
    });
    const registry = new Registry();
    let draining = false;
    const gateway = createGateway({
      api: this.api,
      caches,
      releaseNamespace: RELEASE,
      self: { gatewayPod: name, gatewayUid: uid, gatewayAddress: address },
      models: createModelAccess({
        api: this.api,
        clock: this.clock,
        log,
        settings: {
          releaseNamespace: RELEASE,
          modelCredentialsSecret: undefined,
          modelBaseUrls: {},
          modelPricesConfigMap: 'boxwright-model-prices',
          ...this.#models,
        },
        dispatcher: this.dispatcher,
        bodies: this.bodies,
      }),
      archive: this.#archive,
      web: this.#web,
      bodies: this.bodies,
      clock: this.clock,
      metrics: createGatewayMetrics(registry),
      httpMetrics: createHttpMetrics(registry),
      isDraining: () => draining,
      log,
    });
    gateway.watch.start();
    return { name, uid, address, gateway, registry, logs, drain: () => (draining = true) };
  }

  setGatewayPod(name: string, uid: string, ready: boolean): void {
    this.api.vanish(Pods, `${RELEASE}/${name}`);
    this.api.seed(Pods, {
      apiVersion: '',
      kind: '',
      metadata: { name, namespace: RELEASE, uid, labels: GATEWAY_LABELS },
      spec: {},
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    });
  }

  removeGatewayPod(name: string): void {
    this.api.vanish(Pods, `${RELEASE}/${name}`);
  }

  /** An AgentRun with its Job and a live pod that holds a genuine token. */
  addRun(name: string, spec: Partial<AgentRun['spec']> = {}, previousRun?: string): RunPod {
    const run = this.api.seed(AgentRuns, {
      apiVersion: '',
      kind: '',
      metadata: { name, namespace: NAMESPACE },
      spec: { agent: 'helper', ...(spec.input === undefined ? { message: 'hello' } : {}), ...spec },
      status: { phase: 'running' },
    });
    return this.addJob(run, previousRun);
  }

  /** The Job of a run that is there, with a live pod. */
  addJob(run: AgentRun, previousRun?: string): RunPod {
    const { name } = run.metadata;
    this.api.seed(Jobs, {
      apiVersion: '',
      kind: '',
      metadata: {
        name,
        namespace: NAMESPACE,
        uid: `uid-job-${name}`,
        labels: { [LABEL_RUN]: name },
        ...(previousRun === undefined ? {} : { annotations: { [ANNOTATION_PREVIOUS_RUN]: previousRun } }),
        ownerReferences: [owner('AgentRun', name, run.metadata.uid ?? '')],
      },
      spec: { template: { spec: {} } },
    });
    return this.addPod(name, 'a');
  }

  /** Another pod of the run's Job. */
  addPod(run: string, suffix: string): RunPod {
    const podName = `${run}-${suffix}`;
    const podUid = `uid-pod-${podName}`;
    this.api.seed(Pods, {
      apiVersion: '',
      kind: '',
      metadata: {
        name: podName,
        namespace: NAMESPACE,
        uid: podUid,
        labels: { [LABEL_RUN]: run },
        ownerReferences: [owner('Job', run, `uid-job-${run}`)],
      },
      spec: {},
      status: { phase: 'Running' },
    });
    const pod = { namespace: NAMESPACE, run, podName, podUid, token: '' };
    return { ...pod, token: this.token(pod) };
  }

  /** An API pod of the installation; the token that it shows gateways. */
  addApiPod(name: string): string {
    const pod = { namespace: RELEASE, podName: name, podUid: `uid-${name}`, run: '' };
    this.api.seed(Pods, {
      apiVersion: '',
      kind: '',
      metadata: { name, namespace: RELEASE, uid: pod.podUid, labels: API_LABELS },
      spec: {},
      status: { phase: 'Running' },
    });
    return this.token(pod, { audience: GATEWAY_TOKEN_AUDIENCE, serviceAccount: API_SERVICE_ACCOUNT });
  }

  /** What a gateway tells the API pod of this token of a run. */
  feed(on: GatewayPod, run: string, token?: string, after = 0): Promise<Reply> {
    const url = `${feedPath(NAMESPACE, run)}?after=${after}`;
    return this.send(on, { method: 'GET', url, ...(token === undefined ? {} : { token }) });
  }

  /** Follows a run as an API pod: what came so far, and how to leave. */
  follow(on: GatewayPod, run: string, token: string, after = 0): Followed {
    const request = Object.assign(Readable.from([]), {
      method: 'GET',
      url: `${feedPath(NAMESPACE, run)}?after=${after}`,
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
      socket: {},
    });
    const response = new MemoryResponse();
    const done = on.gateway.handler.handle(
      request as unknown as IncomingMessage,
      response as unknown as ServerResponse,
    );
    const reader = new EventStream(1024 * 1024);
    return {
      done,
      leave: () => response.destroy(),
      raw: () => response.take(),
      messages: () => reader.read(Buffer.from(response.take())).map(({ data }) => FeedMessage.parse(JSON.parse(data))),
    };
  }

  /** A token of that pod; with options one that is wrong in some way. */
  token(pod: Omit<RunPod, 'token'>, options: TokenOptions = {}): string {
    const account = options.serviceAccount ?? RUNNER_SERVICE_ACCOUNT;
    const username = `system:serviceaccount:${pod.namespace}:${account}`;
    const audiences = [options.audience ?? RUN_TOKEN_AUDIENCE];
    const podUid = options.podUid ?? pod.podUid;
    const claims = {
      aud: audiences,
      exp: Math.floor(this.clock.now() / 1000) + (options.expiresInSeconds ?? 600),
      iss: 'https://kubernetes.default.svc.cluster.local',
      sub: username,
      'kubernetes.io': {
        namespace: pod.namespace,
        pod: { name: pod.podName, uid: podUid },
        serviceaccount: { name: account, uid: 'uid-sa' },
      },
    };
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const genuine = options.genuine ?? true;
    const token = `${part({ alg: 'RS256' })}.${part(claims)}.${genuine ? 'signed' : 'forged'}`;
    if (genuine) this.api.genuine.set(token, { username, podName: pod.podName, podUid, audiences });
    return token;
  }

  run(name: string): AgentRun {
    const run = this.api.peek(AgentRuns, `${NAMESPACE}/${name}`);
    if (run === undefined) throw new Error(`there is no run ${name}`);
    return run;
  }

  /** Changes a run the way another writer does. */
  changeRun(
    name: string,
    change: { spec?: Partial<AgentRun['spec']>; status?: Partial<NonNullable<AgentRun['status']>> },
  ): void {
    const run = this.run(name);
    this.api.seed(AgentRuns, {
      ...run,
      spec: { ...run.spec, ...change.spec },
      status: { ...run.status, ...change.status } as NonNullable<AgentRun['status']>,
    });
  }

  call(on: GatewayPod, pod: RunPod, call: 'claim' | 'events' | 'finish', body: unknown): Promise<Reply> {
    return this.post(on, runPath(pod.namespace, pod.run, call), body, pod.token);
  }

  claim(on: GatewayPod, pod: RunPod, more: { hasBrowser?: boolean } = {}): Promise<Reply> {
    return this.call(on, pod, 'claim', { protocol: 1, podUid: pod.podUid, ...more });
  }

  chat(on: GatewayPod, pod: RunPod, body: unknown): Promise<Reply> {
    return this.post(on, '/gateway/boxwright/v1/chat/completions', body, pod.token);
  }

  post(on: GatewayPod, url: string, body: unknown, token?: string): Promise<Reply> {
    return this.send(on, { method: 'POST', url, body, ...(token === undefined ? {} : { token }) });
  }

  async send(on: GatewayPod, { method, url, body, token }: RawCall): Promise<Reply> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const request = Object.assign(Readable.from([Buffer.from(JSON.stringify(body) ?? '')]), {
      method,
      url,
      headers,
      socket: {},
    });
    const response = new MemoryResponse();
    await on.gateway.handler.handle(request as unknown as IncomingMessage, response as unknown as ServerResponse);
    return response.reply();
  }

  /** Writes of one kind so far. */
  writes(resource: string): number {
    return this.api.writes.filter((write) => write.resource === resource).length;
  }
}

function owner(kind: string, name: string, uid: string) {
  return { apiVersion: 'v1', kind, name, uid, controller: true };
}

/** What the handler uses of a ServerResponse. */
class MemoryResponse extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  readonly #headers: Record<string, string> = {};
  #text = '';

  setHeader(name: string, value: string): void {
    this.#headers[name] = value;
  }

  writeHead(status: number, headers: Record<string, string>): this {
    this.statusCode = status;
    this.headersSent = true;
    Object.assign(this.#headers, headers);
    return this;
  }

  write(text: string): boolean {
    this.#text += text;
    return true;
  }

  end(text = ''): void {
    this.#text += text;
  }

  destroy(): void {
    this.emit('close');
  }

  /** What was written since the last call. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  reply(): Reply {
    const isJson = this.#headers['content-type'] === 'application/json';
    return {
      status: this.statusCode,
      headers: this.#headers,
      text: this.#text,
      json: isJson ? (JSON.parse(this.#text) as Record<string, unknown>) : {},
    };
  }
}
