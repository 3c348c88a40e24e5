/**
 * Where the API server is and who we are: from a kubeconfig (development, tests) or from the files that Kubernetes
 * mounts into a pod. The client library is loaded only to parse a kubeconfig, so pods never pay for it.
 */
import { readFile } from 'node:fs/promises';
import type { User } from '@kubernetes/client-node';
import type { Clock } from '../runtime/clock.js';
import { createFileToken } from './token-file.js';

/** How to reach and authenticate at one API server. Certificates and keys are PEM. */
export interface ClusterConnection {
  /** `https://host:port`, maybe with a path. */
  server: string;
  ca?: string;
  cert?: string;
  key?: string;
  skipTlsVerify?: boolean;
  tlsServerName?: string;
  /** The bearer token to use now; called before each request. */
  token?: () => Promise<string>;
  /** Namespace of the pod or of the kubeconfig's context. */
  namespace?: string;
}

export interface LoadConnectionOptions {
  clock: Clock;
  /** Path of a kubeconfig; wins over KUBECONFIG. */
  kubeconfig?: string;
  env?: Record<string, string | undefined>;
  /** Where the pod's service account is mounted; only tests change it. */
  serviceAccountFolder?: string;
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Loads `options.kubeconfig`, else the file named by KUBECONFIG, else the pod's service account. It does not fall back
 * to ~/.kube/config: a control plane must not act on a cluster that nobody named.
 */
export async function loadConnection(options: LoadConnectionOptions): Promise<ClusterConnection> {
  const env = options.env ?? process.env;
  const kubeconfig = options.kubeconfig ?? env['KUBECONFIG'];
  if (kubeconfig !== undefined && kubeconfig !== '') return fromKubeconfig(kubeconfig);
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (host === undefined || host === '') {
    throw new Error('no Kubernetes API server: set KUBECONFIG or --kubeconfig, or run in a pod with a service account');
  }
  const folder = options.serviceAccountFolder ?? SERVICE_ACCOUNT_FOLDER;
  return fromServiceAccount({ host, port: env['KUBERNETES_SERVICE_PORT'] ?? '443', folder, clock: options.clock });
}

interface ServiceAccountOptions {
  host: string;
  port: string;
  folder: string;
  clock: Clock;
}

async function fromServiceAccount(options: ServiceAccountOptions): Promise<ClusterConnection> {
  const { folder } = options;
  const token = createFileToken(`${folder}/token`, options.clock);
  await token();
  return {
    server: `https://${options.host.includes(':') ? `[${options.host}]` : options.host}:${options.port}`,
    ca: await readFile(`${folder}/ca.crt`, 'utf8'),
    namespace: (await readFile(`${folder}/namespace`, 'utf8')).trim(),
    token,
  };
}

async function fromKubeconfig(path: string): Promise<ClusterConnection> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
  } catch (error) {
    throw new Error(`kubeconfig ${path} cannot be read`, { cause: error });
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error(`kubeconfig ${path}: current-context names no cluster of the file`);
  const ca = await pem(cluster.caData, cluster.caFile);
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace;
  return {
    server: cluster.server,
    ...(ca === undefined ? {} : { ca }),
    ...(cluster.skipTLSVerify ? { skipTlsVerify: true } : {}),
    ...(cluster.tlsServerName === undefined ? {} : { tlsServerName: cluster.tlsServerName }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(await credentials(config.getCurrentUser(), path)),
  };
}

async function credentials(
  user: User | null,
  path: string,
): Promise<Pick<ClusterConnection, 'cert' | 'key' | 'token'>> {
  if (user === null) return {};
  if (user.exec !== undefined || user.authProvider !== undefined || user.username !== undefined) {
    throw new Error(
      `kubeconfig ${path}: user ${user.name} logs in by exec, auth-provider or password; ` +
        'Boxwright needs a client certificate or a token (kubectl create token makes one)',
    );
  }
  const { token } = user;
  if (token !== undefined) return { token: () => Promise.resolve(token) };
  const cert = await pem(user.certData, user.certFile);
  const key = await pem(user.keyData, user.keyFile);
  return { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
}

/** Kubeconfigs hold PEM either as base64 or by path. */
async function pem(data: string | undefined, file: string | undefined): Promise<string | undefined> {
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  return file === undefined ? undefined : readFile(file, 'utf8');
}
