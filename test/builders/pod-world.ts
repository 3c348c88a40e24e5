/**
 * A real gateway on loopback and real runners against it, on the API server in memory: whole runs without a cluster. The
 * model is the scripted engine. The controller's part (Jobs, order of the runs of a session) is done by the test.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { systemClock } from '../../src/runtime/clock.js';
import { runRunner } from '../../src/runner/main.js';
import { toolsWith } from '../../src/runner/tools/executor.js';
import { runTools } from '../../src/runner/tools/main.js';
import { readTranscript } from '../../src/transcript/chunk-store.js';
import type { RunEvent } from '../../src/protocol/run.js';
import { RIPGREP } from './ripgrep.js';
import { webAccess } from './web-access.js';
import { GatewayWorld, NAMESPACE, type GatewayPod, type RunPod, type WorldOptions } from './gateway-world.js';

export class PodWorld {
  readonly world: GatewayWorld;
  readonly gateway: GatewayPod;
  readonly #server: Server;
  readonly #directory: (name: string) => Promise<string>;

  private constructor(world: GatewayWorld, server: Server, directory: (name: string) => Promise<string>) {
    this.world = world;
    this.#server = server;
    this.#directory = directory;
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.gateway = world.startProcess('gateway-1', 'uid-gateway-1', address);
    server.on('request', (request, response) => void this.gateway.gateway.handler.handle(request, response));
  }

  /** `directory` makes temporary directories (test/builders/workspace.ts). */
  static async start(directory: (name: string) => Promise<string>, options: WorldOptions = {}): Promise<PodWorld> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new PodWorld(new GatewayWorld(options), server, directory);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Executes a run in a pod of its own to the end and gives what then stands in the cluster. */
  async run(name: string, spec: Partial<AgentRun['spec']>, previousRun?: string): Promise<AgentRun> {
    return this.execute(this.world.addRun(name, spec, previousRun));
  }

  /** Executes a run that has its Job. */
  async execute(pod: RunPod): Promise<AgentRun> {
    const name = pod.run;
    const root = await this.#directory('pod');
    const paths = {
      token: join(root, 'token'),
      journal: join(root, 'journal'),
      toolsSocket: join(root, 'tools.sock'),
      terminationLog: join(root, 'termination-log'),
    };
    await mkdir(paths.journal);
    await mkdir(join(root, 'workspace'));
    await mkdir(join(root, 'home'));
    await writeFile(paths.token, pod.token);
    const stop = new AbortController();
    const common = { writeLog: () => undefined, clock: systemClock, terminate: stop.signal };
    const toolsPaths = { socket: paths.toolsSocket, workspace: join(root, 'workspace'), home: join(root, 'home') };
    const tools = runTools({}, { ...common, ripgrep: RIPGREP, paths: toolsPaths, web: webAccess() });
    const env = {
      BOXWRIGHT_RUN_NAMESPACE: NAMESPACE,
      BOXWRIGHT_RUN: name,
      BOXWRIGHT_POD_UID: pod.podUid,
      BOXWRIGHT_GATEWAY_URL: this.url,
      BOXWRIGHT_GATEWAY_SERVER_NAME: 'unused',
      BOXWRIGHT_GATEWAY_CA: 'unused',
    };
    await runRunner(env, { ...common, random: () => 0, paths, askForTools: () => Promise.resolve(toolsWith({})) });
    stop.abort();
    await tools;
    return this.world.run(name);
  }

  /** Events of the run's transcript. */
  async events(name: string): Promise<RunEvent[]> {
    return (await readTranscript(this.world.api, this.world.run(name))).events;
  }

  /** Tool calls of the run, in order. */
  async calls(name: string): Promise<{ tool: string; result: unknown; isError: boolean }[]> {
    return (await this.events(name)).flatMap((event) =>
      event.type === 'tool'
        ? [{ tool: event.tool, result: JSON.parse(event.result) as unknown, isError: event.isError }]
        : [],
    );
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}
