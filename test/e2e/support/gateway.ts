/** Gateway pods as a run pod speaks to them: TLS, run tokens, the calls of a run. */
import { spawn } from 'node:child_process';
import { Agent } from 'node:https';
import { createInterface } from 'node:readline';
import { httpsPost } from '../../builders/https-post.js';
import type { HttpsReply } from '../../builders/https-post.js';
import { getObject, kubectlOk, RELEASE_NAMESPACE } from './install.js';
import type { RunObject } from './runs.js';

const SERVER_NAME = `boxwright-gateway.${RELEASE_NAMESPACE}.svc`;

/** A connection to one gateway pod. */
export interface GatewayLink {
  pod: string;
  post(path: string, token: string | undefined, body: unknown): Promise<HttpsReply>;
  /** Value of a counter, summed over its labels or for those given as `name="value"`. */
  metric(name: string, label?: string): Promise<number>;
  close(): Promise<void>;
}

/** Opens a port of this machine towards the pod. */
export async function linkTo(pod: string): Promise<GatewayLink> {
  const encoded = await kubectlOk([
    'get',
    'secret',
    'boxwright-gateway-tls',
    '-n',
    RELEASE_NAMESPACE,
    '-o',
    'jsonpath={.data.ca\\.crt}',
  ]);
  const ca = Buffer.from(encoded, 'base64').toString();
  const child = spawn(
    'hack/cluster/cluster.sh',
    ['kubectl', 'port-forward', '-n', RELEASE_NAMESPACE, `pod/${pod}`, ':8443'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const found = /^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    child.once('exit', () => reject(new Error('kubectl port-forward ended')));
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  return {
    pod,
    post: (path, token, body) =>
      httpsPost({ port, path, serverName: SERVER_NAME, ca, body, agent, ...(token === undefined ? {} : { token }) }),
    metric: async (name, label = '') => {
      const path = `/api/v1/namespaces/${RELEASE_NAMESPACE}/pods/${pod}:8081/proxy/metrics`;
      const lines = (await kubectlOk(['get', '--raw', path])).split('\n');
      const values = lines.filter((line) => new RegExp(`^${name}[{ ]`).test(line) && line.includes(label));
      return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
    close: async () => {
      agent.destroy();
      child.kill();
      await ended;
    },
  };
}

/** A link to the gateway pod that serves a run. */
export async function linkFor(run: RunObject): Promise<GatewayLink> {
  const pod = run.status?.claim?.gatewayPod;
  if (pod === undefined) throw new Error(`run ${run.metadata.name} is not claimed`);
  return linkTo(pod);
}

/** Arguments of `kubectl create token` for the runner's service account, bound to the pod of a claimed run. */
export function boundToken(namespace: string, run: RunObject, audience = 'boxwright-run'): string[] {
  const { podName = '', podUid = '' } = run.status?.claim ?? {};
  const bound = ['--bound-object-kind=Pod', `--bound-object-name=${podName}`, `--bound-object-uid=${podUid}`];
  return ['create', 'token', 'boxwright-runner', '-n', namespace, `--audience=${audience}`, ...bound];
}

/** The token that kubelet gives to the pod of a claimed run: only its node may ask for it. */
export async function runToken(namespace: string, run: RunObject): Promise<string> {
  const pod = await getObject<{ spec: { nodeName: string } }>('pod', run.status?.claim?.podName ?? '', namespace);
  const node = [`--as=system:node:${pod?.spec.nodeName}`, '--as-group=system:nodes'];
  return (await kubectlOk([...node, ...boundToken(namespace, run)])).trim();
}

/** Path of one call of a run. */
export function callPath(namespace: string, run: string, call: 'claim' | 'events' | 'finish' | 'tool'): string {
  return `/internal/v1/runs/${namespace}/${run}/${call}`;
}
