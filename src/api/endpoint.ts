/** What identifies a probe of the endpoint of a Box: gateway and controller compare it. */
import { createHash } from 'node:crypto';
import type { Box } from './v1alpha1/box.js';

export type Endpoint = NonNullable<Box['spec']['endpoint']>;

/** Changes with what is called, for which model and with which key; not with prices and the context window. */
export function endpointDigest({ baseUrl, model, secretRef }: Endpoint): string {
  const asked = [baseUrl, model ?? null, secretRef === undefined ? null : [secretRef.name, secretRef.key]];
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex').slice(0, 16);
}
