/**
 * `boxwright smoke-test`: what `helm test` runs. It calls the Service of the API as anybody in the cluster could, without a key:
 * the MCP endpoint has to ask for one, and a trigger URL that nobody has must not exist.
 */
import { z } from 'zod';
import { loadConfig } from '../config/env.js';
import { createLogger } from '../observability/logger.js';
import { sleep, systemClock, type Clock } from '../runtime/clock.js';

const Config = z.object({
  apiUrl: z.url({ protocol: /^https?$/ }).describe('Address of the Service of the API.'),
  logLevel: z.enum(['error', 'warn', 'info', 'debug']).default('info').describe('Lowest level of the logs.'),
});

interface Check {
  name: string;
  method: string;
  path: string;
  status: number;
}

const CHECKS: readonly Check[] = [
  { name: 'the MCP endpoint asks for a key', method: 'POST', path: '/api/mcp/account', status: 401 },
  { name: 'an unknown trigger URL is not there', method: 'POST', path: '/api/t/none/none/none', status: 404 },
];
/** An installation that was just made may still start. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 1_000;
const CALL_MS = 10_000;

/** Runs all checks; the exit code. */
export async function runSmokeTest(env: NodeJS.ProcessEnv): Promise<number> {
  const { apiUrl, logLevel } = loadConfig(Config, env);
  const log = createLogger('smoke-test', logLevel);
  const failures = await smokeTest(apiUrl, systemClock);
  for (const failure of failures) log.error({ failure }, 'check failed');
  if (failures.length === 0) log.info({ checks: CHECKS.map(({ name }) => name) }, 'the installation answers');
  return failures.length === 0 ? 0 : 1;
}

/** What is wrong after a minute of tries; empty = nothing. */
export async function smokeTest(apiUrl: string, clock: Clock): Promise<string[]> {
  const giveUpAt = clock.monotonic() + PATIENCE_MS;
  for (;;) {
    const found = await Promise.all(CHECKS.map((check) => failureOf(apiUrl, check)));
    const failures = found.filter((failure) => failure !== undefined);
    if (failures.length === 0 || clock.monotonic() >= giveUpAt) return failures;
    await sleep(clock, PAUSE_MS);
  }
}

async function failureOf(apiUrl: string, { name, method, path, status }: Check): Promise<string | undefined> {
  try {
    const answer = await fetch(new URL(path, apiUrl), { method, signal: AbortSignal.timeout(CALL_MS) });
    await answer.body?.cancel();
    return answer.status === status ? undefined : `${name}: ${method} ${path} answered ${answer.status}, not ${status}`;
  } catch (error) {
    return `${name}: ${method} ${path} got no answer (${error instanceof Error ? error.message : 'unknown error'})`;
  }
}
