/**
 * `boxwright runner`: claims its run, lets the engine work, reports, and hands the outcome over. Its exit code is 0 when
 * the outcome is in safe hands (a gateway's or the termination message's) or is another pod's affair.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { JOURNAL_DIR, TOKEN_DIR, TOOLS_SOCKET } from '../protocol/pod.js';
import type { Clock } from '../runtime/clock.js';
import { systemClock } from '../runtime/clock.js';
import { inTurn } from './in-turn.js';
import { createAiSdkEngine } from './ai-sdk-engine.js';
import { loadRunnerConfig } from './config.js';
import type { RunnerConfig } from './config.js';
import { executeRun } from './execute-run.js';
import { GatewayClient } from './gateway-client.js';
import { openJournal } from './journal.js';
import { createRunnerLog, errorKind } from './log.js';
import type { RunnerLog } from './log.js';
import { createRunGateway, RunRefused } from './run-gateway.js';
import type { RunGateway } from './run-gateway.js';
import { createToolsClient } from './tools-client.js';
import { askForTools, offers } from './tools-offer.js';
import type { OfferedTools } from './tools-offer.js';

/** The claim's bound of the controller: after it the Job is gone anyway. */
const CLAIM_MS = 120_000;

export interface RunnerDeps {
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  writeLog: (line: string) => void;
  /** Fires when the pod is told to stop. */
  terminate: AbortSignal;
  paths: { token: string; journal: string; toolsSocket: string; terminationLog: string };
  /** What the tools container can do. */
  askForTools: (signal: AbortSignal) => Promise<OfferedTools | 'silent'>;
}

/** The real things of a run pod. */
export function systemRunnerDeps(): RunnerDeps {
  const terminate = new AbortController();
  process.once('SIGTERM', () => terminate.abort());
  return {
    clock: systemClock,
    random: Math.random,
    writeLog: (line) => process.stdout.write(line),
    terminate: terminate.signal,
    paths: {
      token: join(TOKEN_DIR, 'token'),
      journal: JOURNAL_DIR,
      toolsSocket: TOOLS_SOCKET,
      terminationLog: '/dev/termination-log',
    },
    askForTools: (signal) => askForTools({ socketPath: TOOLS_SOCKET, clock: systemClock }, signal),
  };
}

/** Runs one AgentRun to its end and resolves with the exit code of the process. Never rejects. */
export async function runRunner(env: NodeJS.ProcessEnv, deps: RunnerDeps = systemRunnerDeps()): Promise<number> {
  const log = createRunnerLog('runner', deps.clock, deps.writeLog);
  let config: RunnerConfig;
  try {
    config = loadRunnerConfig(env);
  } catch (error) {
    log.error({ problem: (error as Error).message }, 'the runner cannot start');
    return 1;
  }
  const client = new GatewayClient({
    url: config.gatewayUrl,
    serverName: config.gatewayServerName,
    ca: config.gatewayCa,
    readToken: () => readFile(deps.paths.token, 'utf8'),
    clock: deps.clock,
    random: deps.random,
    log,
  });
  try {
    const offered = await deps.askForTools(deps.terminate);
    const identity = { ...config, hasBrowser: offers(offered, 'browser_navigate') };
    return await claimAndExecute(createRunGateway(client, identity, deps.clock), config, { deps, offered, log });
  } finally {
    client.close();
  }
}

async function claimAndExecute(
  gateway: RunGateway,
  config: RunnerConfig,
  { deps, offered, log }: { deps: RunnerDeps; offered: OfferedTools | 'silent'; log: RunnerLog },
): Promise<number> {
  const { clock, paths } = deps;
  let claim;
  try {
    claim = await gateway.claim(deps.terminate, clock.monotonic() + CLAIM_MS);
  } catch (error) {
    const status = error instanceof RunRefused ? error.status : undefined;
    log.warn({ status, failure: errorKind(error) }, 'the run was not claimed');
    // Another pod has the run, or it ended before this one began: nothing is wrong here.
    return status === 409 || status === 410 ? 0 : 1;
  }
  const ended = await executeRun(claim, {
    gateway,
    engine: createAiSdkEngine(inTurn(gateway.modelFetch), clock),
    toolsSocket: paths.toolsSocket,
    surroundings: config.surroundings,
    tools: createToolsClient({ socketPath: paths.toolsSocket, run: config.run, clock }),
    offered,
    journal: openJournal(paths.journal, log),
    baseUrl: new URL(claim.model.basePath, config.gatewayUrl).href,
    writeTermination: (text) => writeFile(paths.terminationLog, text),
    terminate: deps.terminate,
    clock,
    log,
  });
  log.info({ ended }, 'the runner ends');
  return ended === 'lost' ? 1 : 0;
}
