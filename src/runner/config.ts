/** The environment of container `runner` (src/protocol/pod.ts), checked once; all problems are reported together. */
import { z } from 'zod';
import { RUNNER_ENV } from '../protocol/pod.js';
import { Surroundings } from '../protocol/surroundings.js';
import { parseJson } from './gateway-client.js';

export interface RunnerConfig {
  namespace: string;
  run: string;
  podUid: string;
  /** The gateway's Service, without a path. */
  gatewayUrl: URL;
  gatewayServerName: string;
  /** PEM bundle. */
  gatewayCa: string;
  /** Undefined where the Job does not tell. */
  surroundings: Surroundings | undefined;
}

const required = z.string({ error: 'is not set' }).min(1, 'is empty');

const Environment = z.object({
  [RUNNER_ENV.namespace]: required,
  [RUNNER_ENV.run]: required,
  [RUNNER_ENV.podUid]: required,
  [RUNNER_ENV.gatewayUrl]: required.regex(/^https?:\/\/[^/]+\/?$/, 'must be https://<host>:<port>'),
  [RUNNER_ENV.gatewayServerName]: required,
  [RUNNER_ENV.gatewayCa]: required,
  [RUNNER_ENV.surroundings]: z.string().transform(parseJson).pipe(Surroundings).optional(),
});

/** Reads the configuration. Throws one Error that names every variable that is wrong, never their values. */
export function loadRunnerConfig(env: Record<string, string | undefined>): RunnerConfig {
  const parsed = Environment.safeParse(env);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
    throw new Error(`The environment of the runner is not complete: ${problems.join('; ')}`);
  }
  return {
    namespace: parsed.data[RUNNER_ENV.namespace],
    run: parsed.data[RUNNER_ENV.run],
    podUid: parsed.data[RUNNER_ENV.podUid],
    gatewayUrl: new URL(parsed.data[RUNNER_ENV.gatewayUrl]),
    gatewayServerName: parsed.data[RUNNER_ENV.gatewayServerName],
    gatewayCa: parsed.data[RUNNER_ENV.gatewayCa],
    surroundings: parsed.data[RUNNER_ENV.surroundings],
  };
}
