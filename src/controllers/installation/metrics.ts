/** When the certificates of the installation end. */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

export interface InstallationMetrics {
  /** Of the certificate in use that a Secret holds. */
  expires(secret: string, atMs: number): void;
}

/** `boxwright_certificate_expiry_timestamp_seconds`: set by the controller that leads. */
export function createInstallationMetrics(registry: Registry): InstallationMetrics {
  const expiry = new Gauge({
    name: 'boxwright_certificate_expiry_timestamp_seconds',
    help: 'When the certificate in a Secret of the installation ends.',
    labelNames: ['secret'],
    registers: [registry],
  });
  return { expires: (secret, atMs) => expiry.set({ secret }, Math.floor(atMs / 1000)) };
}
