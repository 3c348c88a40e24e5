/**
 * What the Job of a network probe and `boxwright network-probe` agree on: the targets travel in the
 * environment, the report in the termination message.
 */
import { z } from 'zod';

export const PROBE_CONTAINER = 'network-probe';

/** JSON list of {@link ProbeTarget}. */
export const PROBE_TARGETS_ENV = 'BOXWRIGHT_PROBE_TARGETS';

/** Where Kubernetes tells every pod the address of its API server, whatever the pod asks for. */
export const KUBERNETES_ENV = { host: 'KUBERNETES_SERVICE_HOST', port: 'KUBERNETES_SERVICE_PORT' } as const;

/** The gateway must be reachable; the API pods and the API server of Kubernetes must not be. */
export const ProbeTargetName = z.enum(['gateway', 'api', 'kubernetes']);
export type ProbeTargetName = z.output<typeof ProbeTargetName>;

export const ProbeTarget = z.object({
  name: ProbeTargetName,
  host: z.string().min(1).max(253),
  port: z.int().min(1).max(65_535),
});
export type ProbeTarget = z.output<typeof ProbeTarget>;

/** Only run pods' way to the gateway is open. */
export function mustBeReachable(name: ProbeTargetName): boolean {
  return name === 'gateway';
}

/** What the last round of the probe found. */
export const ProbeReport = z.object({
  targets: z
    .array(z.object({ name: ProbeTargetName, reachable: z.boolean() }))
    .min(1)
    .max(8),
});
export type ProbeReport = z.output<typeof ProbeReport>;

/** Targets are tried again until all is as it should be, at most for this long: policies and gateway may still start. */
export const PROBE_SECONDS = 45;
