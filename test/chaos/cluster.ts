/** What chaos does to the cluster of `make up`, and what it reads from it. Faults never fail the run: the next one comes. */
import { execFile } from 'node:child_process';
import { clusterCommand } from '../builders/kubectl.js';
import { RELEASE_NAMESPACE, kubectl, kubectlOk } from '../e2e/support/install.js';
import { toolOk } from '../e2e/support/mcp.js';
import type { RunRecord } from '../e2e/support/mcp.js';
import type { Tenant } from '../e2e/support/tenant.js';
import { CLUSTER_FAULTS } from './plan.js';
import type { ClusterFault, Fault, PlannedFault } from './plan.js';
import { isLoopback } from './settings.js';

/** How long a killed API server or etcd stays away. */
const AWAY_MS = 3_000;
const MARK = /mark:([a-z0-9.-]+):/g;
/** A mark that is told again because the answer was late is one mark: every execution has an id of its own. */
const TELL = 'curl --silent --max-time 15 --retry 5 --retry-all-errors --request POST';
/** What every run does: its tool tells the name of the pod that executes it, in the transcript and, with `url`, outside. */
export function runScript(url: string | undefined): string {
  const outside = url === undefined ? '' : `${TELL} ${url}$(cat /etc/hostname)/$(cat /proc/sys/kernel/random/uuid); `;
  return `/shell ${outside}echo "mark:$(cat /etc/hostname):"\n/say done`;
}

/** The address of the node. */
export async function nodeAddress(): Promise<string> {
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  return await kubectlOk(['get', 'nodes', '-o', `jsonpath=${path}`]);
}

/** Throws unless API server and product are on this machine. */
export async function requireLoopback(urls: readonly string[]): Promise<void> {
  const server = await kubectlOk(['config', 'view', '--minify', '-o', 'jsonpath={.clusters[0].cluster.server}']);
  const foreign = [...urls, server].filter((url) => !isLoopback(url));
  if (foreign.length > 0) throw new Error('chaos runs only on a cluster of this machine: make up');
}

/** Whether components can be killed: on the native cluster only. */
export async function hasClusterFaults(): Promise<boolean> {
  // Starting what runs does nothing.
  return (await clusterCommand(['start', 'etcd'])).ok;
}

/** True when something was killed. */
export async function inject(
  { fault, how }: Pick<PlannedFault, 'fault' | 'how'>,
  tenant: Tenant,
  random: () => number,
): Promise<boolean> {
  if (isClusterFault(fault)) return await restart(fault);
  const [namespace, selector] =
    fault === 'runner'
      ? [tenant.namespace, 'boxwright.dev/run']
      : [RELEASE_NAMESPACE, `app.kubernetes.io/component=${fault}`];
  const pod = await somePod(namespace, selector, random);
  if (pod === undefined) return false;
  return how === 'kill' ? await killProcess(namespace, pod) : await deletePod(namespace, pod);
}

function isClusterFault(fault: Fault): fault is ClusterFault {
  return (CLUSTER_FAULTS as readonly string[]).includes(fault);
}

async function restart(component: ClusterFault): Promise<boolean> {
  const killed = await clusterCommand(['kill', component]);
  await sleep(AWAY_MS);
  await clusterCommand(['start', component]);
  return killed.ok;
}

/** Everything that chaos may have ended runs again. */
export async function repair(): Promise<void> {
  for (const component of ['etcd', 'apiserver']) await clusterCommand(['start', component]);
}

async function somePod(namespace: string, selector: string, random: () => number): Promise<string | undefined> {
  const running = ['get', 'pods', '-n', namespace, '-l', selector, '--field-selector=status.phase=Running'];
  const listed = await kubectl([...running, '-o', 'jsonpath={.items[*].metadata.name}', '--request-timeout=10s']);
  const pods = listed.stdout.split(' ').filter((name) => name !== '');
  return pods[Math.floor(random() * pods.length)];
}

async function deletePod(namespace: string, pod: string): Promise<boolean> {
  const flags = ['--grace-period=0', '--force', '--wait=false', '--request-timeout=10s'];
  return (await kubectl(['delete', 'pod', pod, '-n', namespace, ...flags])).ok;
}

/** SIGKILL for the first container: the process gets no word of it. Of a run that is the agent loop. */
async function killProcess(namespace: string, pod: string): Promise<boolean> {
  const path = '{.status.containerStatuses[0].containerID}';
  const found = await kubectl(['get', 'pod', pod, '-n', namespace, '-o', `jsonpath=${path}`, '--request-timeout=10s']);
  const [, id] = /^containerd:\/\/([0-9a-f]{64})$/.exec(found.stdout) ?? [];
  if (id === undefined) return false;
  const { stdout } = await clusterCommand(['env']);
  const [, program = ''] = /^export CTR='(.+)'$/m.exec(stdout) ?? [];
  return await new Promise((resolve) => {
    execFile(program, ['tasks', 'kill', '--signal', 'SIGKILL', id], (error) => resolve(error === null));
  });
}

export interface RunLine {
  name: string;
  phase: string;
  reason: string;
  claim: { uid: string; name: string } | undefined;
}

/** All runs of the tenant; undefined while the API server does not answer. */
export async function listRuns(tenant: Tenant): Promise<RunLine[] | undefined> {
  const fields = ['metadata.name', 'status.phase', 'status.reason', 'status.claim.podUid', 'status.claim.podName'];
  const columns = fields.map((path, number) => `C${number}:.${path}`).join(',');
  const get = ['get', 'agentruns', '-n', tenant.namespace, '--no-headers', '--request-timeout=30s'];
  const listed = await kubectl([...get, '-o', `custom-columns=${columns}`]);
  return listed.ok ? parseRuns(listed.stdout) : undefined;
}

/** Lines of kubectl's custom columns; `<none>` stands for an absent field. */
export function parseRuns(text: string): RunLine[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => {
    const [name = '', phase = '', reason = '', uid = '', pod = ''] = line
      .trim()
      .split(/\s+/)
      .map((field) => (field === '<none>' ? '' : field));
    return { name, phase, reason, claim: uid === '' ? undefined : { uid, name: pod } };
  });
}

/** The marks of one run, one an execution of its tool. */
export async function readMarks(tenant: Tenant, agent: string, runId: string): Promise<string[]> {
  const args = { agentId: tenant.agentId(agent), runId, includeToolCalls: true };
  const run = await toolOk<RunRecord>(tenant.apiKey, 'get_run', args);
  return (run.toolCalls ?? []).flatMap(({ result }) => marksIn(result));
}

/** Names of pods in the result of a tool. */
export function marksIn(result: string): string[] {
  return [...result.matchAll(MARK)].map(([, pod = '']) => pod);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
