/** The gateway's certificate, from the Secret that the controller makes with our own CA. */
import { Secrets } from '../../kube/core-types.js';
import type { KubeApi, ObjectRef } from '../../kube/types.js';

/** PEM. */
export interface TlsMaterial {
  cert: string;
  key: string;
}

export interface TlsSource {
  /** Rejects when the Secret is not there or not complete. */
  read(signal: AbortSignal): Promise<TlsMaterial>;
}

/** Reads one Secret by name, never more. */
export function tlsFromSecret(api: Pick<KubeApi, 'get'>, ref: ObjectRef): TlsSource {
  return {
    async read(signal) {
      const { data } = await api.get(Secrets, ref, { signal });
      const [cert, key] = [data?.['tls.crt'], data?.['tls.key']].map((value) =>
        value === undefined ? '' : Buffer.from(value, 'base64').toString('utf8'),
      );
      if (cert === undefined || key === undefined || cert === '' || key === '') {
        throw new Error(`Secret ${ref.name} must hold tls.crt and tls.key`);
      }
      return { cert, key };
    },
  };
}
