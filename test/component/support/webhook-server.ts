/** The trigger URL in an express app on loopback, with the real services behind it and a counting API server stub. */
import { createSecretKey } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { agentId, boxNamespace, childName } from '../../../src/api/names.js';
import type { KubeObject } from '../../../src/api/meta.js';
import type { AgentRun } from '../../../src/api/v1alpha1/agent-run.js';
import type { AgentTrigger, TriggerMethod } from '../../../src/api/v1alpha1/agent-trigger.js';
import { BodyBudget } from '../../../src/net/body-budget.js';
import { createLogger } from '../../../src/observability/logger.js';
import { dedupeRunName } from '../../../src/run/start/dedupe-name.js';
import { findStartedRun, startRun } from '../../../src/run/start/start-run.js';
import { OwnRuns } from '../../../src/run/start/own-runs.js';
import { tokenMatches, triggerToken } from '../../../src/services/triggers/trigger-token.js';
import type { BacklogCount } from '../../../src/run/start/backlog-budget.js';
import { createWebhookRouter } from '../../../src/webhook/router.js';
import { FakeClock } from '../../builders/fake-clock.js';
import { createTriggerReader } from '../../../src/services/triggers/trigger-reader.js';
import { createWebhookKeyReader } from '../../../src/services/triggers/webhook-keys.js';

export const AGENT = { box: 'team', agent: 'cleo' };
const KEY = createSecretKey(Buffer.alloc(32, 7));
const KEYRING = { current: 'k1', keys: new Map([['k1', KEY]]) };

export interface TriggerChange {
  slug?: string;
  methods?: readonly TriggerMethod[];
  enabled?: boolean;
  tokenId?: string | undefined;
  keyId?: string | undefined;
  deleting?: boolean;
  uid?: string;
  body?: string;
  dedupeHeader?: string;
  verify?: AgentTrigger['spec']['verify'];
}

/** Every effect of the calls, for counting. */
export interface Effects {
  creates: AgentRun[];
  gets: number;
  hmacs: number;
  outcomes: string[];
  http: { route: string; method: string; status: number }[];
  log: string[];
}

type TriggerReaderCaches = Parameters<typeof createTriggerReader>[0]['caches'];

function cacheOf(objects: Map<string, unknown>, isHealthy: () => boolean) {
  return { get: (key: string) => objects.get(key), isHealthy };
}

export class WebhookServer {
  readonly clock = new FakeClock(Date.parse('2026-03-04T05:06:07.089Z'));
  /** Room for eight bodies of the largest size. */
  readonly bodies = new BodyBudget(8 * 1024 * 1024 + 256 * 1024);
  readonly effects: Effects = { creates: [], gets: 0, hmacs: 0, outcomes: [], http: [], log: [] };
  /** What the API server answers to a create; the object itself by default. */
  onCreate: (run: AgentRun, signal: AbortSignal | undefined) => Promise<AgentRun> = (run) => Promise.resolve(run);
  onGet: (name: string) => Promise<unknown> = () => Promise.reject(new Error('no read expected'));
  backlog: { agent: BacklogCount; box: BacklogCount; installation: BacklogCount } = {
    agent: { runs: 0, bytes: 0 },
    box: { runs: 0, bytes: 0 },
    installation: { runs: 0, bytes: 0 },
  };
  /** Entries of Secret boxwright-webhook-keys as api pods keep them; undefined when there is none. */
  webhookKeys: Record<string, string> | undefined;
  healthy = true;
  #onCheck: () => void = () => undefined;
  readonly #boxes = new Map<string, unknown>([[AGENT.box, { name: AGENT.box, deleting: false }]]);
  readonly #agents = new Map<string, unknown>();
  readonly #triggers = new Map<string, unknown>();
  readonly #server = createServer(this.#app());

  constructor() {
    const namespace = boxNamespace(AGENT.box);
    const agent = { name: AGENT.agent, namespace, box: AGENT.box, uid: 'agent-uid', deleting: false, active: true };
    this.#agents.set(`${namespace}/${AGENT.agent}`, agent);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Resolves when the next token has been checked. */
  checked(): Promise<void> {
    return new Promise((resolve) => (this.#onCheck = resolve));
  }

  /** Puts a trigger into the cache; returns the path of its URL. */
  trigger(change: TriggerChange = {}): string {
    const view = {
      slug: 'deploy',
      agent: AGENT.agent,
      uid: 'trigger-uid',
      deleting: false,
      enabled: true,
      methods: ['POST'],
      body: 'Look at this.',
      tokenId: '0123456789abcdef0123456789abcdef',
      keyId: 'k1',
      ...change,
    };
    this.#triggers.set(`${boxNamespace(AGENT.box)}/${childName(AGENT.agent, view.slug)}`, view);
    const parts = { agentId: agentId(AGENT), slug: view.slug, tokenId: view.tokenId ?? '' };
    return `/api/t/${parts.agentId}/${view.slug}/${triggerToken(KEY, parts)}`;
  }

  #app(): express.Express {
    const app = express();
    app.disable('x-powered-by');
    app.use(createWebhookRouter(this.#deps()));
    app.use((request, response) => void response.status(418).end(`other: ${request.url}`));
    return app;
  }

  #deps(): Parameters<typeof createWebhookRouter>[0] {
    const { clock, effects, bodies } = this;
    const isHealthy = () => this.healthy;
    const caches = {
      Box: cacheOf(this.#boxes, isHealthy),
      Agent: cacheOf(this.#agents, isHealthy),
      AgentTrigger: cacheOf(this.#triggers, isHealthy),
    } as unknown as TriggerReaderCaches;
    const api = {
      create: async <T extends KubeObject>(_type: unknown, run: T, options?: { signal?: AbortSignal }): Promise<T> => {
        effects.creates.push(run as unknown as AgentRun);
        return (await this.onCreate(run as unknown as AgentRun, options?.signal)) as unknown as T;
      },
      get: async <T extends KubeObject>(_type: unknown, { name }: { name: string }): Promise<T> => {
        effects.gets += 1;
        return (await this.onGet(name)) as T;
      },
    };
    const shown = {
      agent: () => this.backlog.agent,
      box: () => this.backlog.box,
      installation: () => this.backlog.installation,
      isFinishedFull: () => false,
    };
    // No test lets the watch show a run: what is started here counts as the process's own.
    const ownRuns = new OwnRuns(shown, { get: () => undefined, onChange: () => () => undefined }, clock);
    return {
      bodies,
      clock,
      triggers: createTriggerReader({ caches, api, ensureKey: () => Promise.resolve() }),
      webhookKeys: createWebhookKeyReader({
        cache: { get: () => this.webhookKeys && new Map(Object.entries(this.webhookKeys)), isHealthy },
        api,
      }),
      tokenMatches: (check, presented) => {
        effects.hmacs += 1;
        this.#onCheck();
        return tokenMatches(KEYRING, check, presented);
      },
      dedupeRunName: ({ agent, uid, keyId }, value) =>
        dedupeRunName(KEYRING, { agent: agent.agent, triggerUid: uid, keyId, value }),
      backlog: ownRuns,
      findStartedRun: (request) => findStartedRun({ api, clock }, request),
      startRun: (request, signal) =>
        startRun({ api, clock, lastOfSession: () => undefined, reserve: ownRuns.reserve }, request, signal),
      metrics: { called: (outcome) => void effects.outcomes.push(outcome) },
      http: { observe: ({ route, method, status }) => void effects.http.push({ route, method, status }) },
      logger: createLogger('api', 'debug', { write: (line) => void effects.log.push(line) }),
    };
  }
}
