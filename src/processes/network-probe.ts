/**
 * The process `boxwright network-probe`: a pod that stands under the same network policies as the pods
 * of runs tries what they may reach and what they may not. It knows no Kubernetes client and holds no credential.
 */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { z } from 'zod';
import { loadConfig } from '../config/env.js';
import { KUBERNETES_ENV, PROBE_SECONDS, ProbeTarget, mustBeReachable } from '../protocol/network-probe.js';
import type { ProbeReport } from '../protocol/network-probe.js';
import { sleep, systemClock } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';

/** A policy that drops packets gives no answer at all. */
const CONNECT_MS = 3_000;
const PAUSE_MS = 2_000;

interface ProbeOutputs {
  clock: Clock;
  terminationLog: string;
  print: (line: string) => void;
}

const OUTPUTS: ProbeOutputs = {
  clock: systemClock,
  terminationLog: '/dev/termination-log',
  print: (line) => process.stdout.write(line),
};

const Config = z.object({
  probeTargets: z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue('is not JSON');
        return z.NEVER;
      }
    })
    .pipe(z.array(ProbeTarget).min(1))
    .describe('JSON list of {name, host, port}.'),
});

/**
 * Probes, reports to the termination log and standard output, and resolves with the exit code: 0 whatever was found, for a
 * probe that has found something has done its work, and its pod must not look broken.
 */
export async function runNetworkProbe(
  env: Readonly<Record<string, string | undefined>>,
  { clock, terminationLog, print }: ProbeOutputs = OUTPUTS,
): Promise<number> {
  const report = await probe(probeTargets(env), clock, canConnect);
  const text = JSON.stringify(report);
  writeFileSync(terminationLog, text);
  print(`${text}\n`);
  return 0;
}

/** The targets of the Job and the API server that Kubernetes names to every pod. Throws when one is missing. */
export function probeTargets(env: Readonly<Record<string, string | undefined>>): ProbeTarget[] {
  const { probeTargets: targets } = loadConfig(Config, env);
  const { host, port } = KUBERNETES_ENV;
  const kubernetes = ProbeTarget.safeParse({ name: 'kubernetes', host: env[host], port: Number(env[port]) });
  if (!kubernetes.success) throw new Error(`${host} and ${port} do not name the Kubernetes API server`);
  return [...targets, kubernetes.data];
}

/** Whether a target answers; never rejects. */
export type Connector = (target: ProbeTarget, clock: Clock) => Promise<boolean>;

/** Tries all targets in rounds until each is as it should be, or {@link PROBE_SECONDS} are over; the last round counts. */
export async function probe(targets: readonly ProbeTarget[], clock: Clock, connector: Connector): Promise<ProbeReport> {
  const end = clock.monotonic() + PROBE_SECONDS * 1000;
  const tryOne = async (target: ProbeTarget) => ({
    name: target.name,
    reachable: await connector(target, clock),
  });
  for (;;) {
    const report = { targets: await Promise.all(targets.map(tryOne)) };
    if (isAsExpected(report) || clock.monotonic() >= end) return report;
    await sleep(clock, PAUSE_MS);
  }
}

/** Whether a TCP connection is accepted: refused, unroutable and silent are all not reachable. */
export const canConnect: Connector = ({ host, port }, clock) =>
  new Promise((resolve) => {
    const socket = connect({ host, port });
    const done = (reachable: boolean) => {
      cancel();
      socket.destroy();
      resolve(reachable);
    };
    const cancel = clock.after(CONNECT_MS, () => done(false));
    socket.once('connect', () => done(true));
    // Stays: an error after the end of the try must not end the process.
    socket.on('error', () => done(false));
  });

function isAsExpected({ targets }: ProbeReport): boolean {
  return targets.every(({ name, reachable }) => reachable === mustBeReachable(name));
}
