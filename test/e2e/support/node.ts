/** What an administrator does on a node: a short pod as root that sees its processes and /tmp. No run pod may look like this. */
import { apply, eventually, getObject, kubectl, kubectlOk, productImages } from './install.js';

const NAMESPACE = 'default';
/** /tmp of the node in the pod. */
export const NODE_TMP = '/host/tmp';

interface PodObject {
  spec: { nodeName?: string };
  status?: {
    phase?: string;
    containerStatuses?: { name: string; containerID?: string }[];
    initContainerStatuses?: { name: string; containerID?: string }[];
  };
}

/** Runs a shell script on a node and returns what it printed; fails when the script does. */
export async function onNode(nodeName: string, script: string): Promise<string> {
  const name = `boxwright-e2e-${Math.random().toString(36).slice(2, 10)}`;
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      nodeName,
      hostPID: true,
      restartPolicy: 'Never',
      containers: [
        {
          name: 'script',
          // It is on the node, and has a shell.
          image: (await productImages()).tools,
          command: ['/bin/sh', '-ec', script],
          securityContext: { runAsUser: 0, capabilities: { add: ['SYS_PTRACE'] } },
          volumeMounts: [{ name: 'tmp', mountPath: NODE_TMP }],
        },
      ],
      volumes: [{ name: 'tmp', hostPath: { path: '/tmp' } }],
    },
  });
  try {
    const phase = await eventually(`pod ${name} ends`, async () => {
      const pod = await getObject<PodObject>('pod', name, NAMESPACE);
      const now = pod?.status?.phase;
      return now === 'Succeeded' || now === 'Failed' ? now : undefined;
    });
    const output = await kubectlOk(['logs', name, '-n', NAMESPACE]);
    if (phase === 'Failed') throw new Error(`the script failed on ${nodeName}: ${output}`);
    return output;
  } finally {
    await kubectl(['delete', 'pod', name, '-n', NAMESPACE, '--grace-period=0', '--wait=false']);
  }
}

/** Stops the processes of a container as with Ctrl-Z: they are there and do nothing. */
export function freeze(namespace: string, podName: string, container: string): Promise<void> {
  return signal('STOP', namespace, podName, container);
}

/** Ends the processes of a container at once, as the kernel does. */
export function killContainer(namespace: string, podName: string, container: string): Promise<void> {
  return signal('KILL', namespace, podName, container);
}

/**
 * Which of these words stand in the memory, environment or command line of the processes of a container; what they have
 * written to is searched, not their code. Fails when the container has no process.
 */
export async function wordsInMemory(
  namespace: string,
  podName: string,
  container: string,
  words: readonly string[],
): Promise<string[]> {
  const { id, nodeName } = await containerOf(namespace, podName, container);
  const search = Buffer.from(SEARCH).toString('base64');
  const asked = Buffer.from(JSON.stringify({ id, words })).toString('base64');
  const output = await onNode(nodeName, `node -e "$(echo ${search} | base64 -d)" ${asked}`);
  const { processes, found } = JSON.parse(output) as { processes: number; found: string[] };
  if (processes === 0) throw new Error(`container ${container} of ${podName} has no process`);
  return found;
}

const SEARCH = `
const { closeSync, openSync, readFileSync, readdirSync, readSync } = require('node:fs');
const { id, words } = JSON.parse(Buffer.from(process.argv[1], 'base64').toString());
const found = new Set();
const look = (bytes) => words.filter((word) => bytes.includes(word)).forEach((word) => found.add(word));
const piece = Buffer.alloc((1 << 20) + 4096);
let processes = 0;
for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
  const read = (name) => readFileSync('/proc/' + pid + '/' + name);
  try {
    if (!read('cgroup').includes(id)) continue;
    look(read('environ'));
    look(read('cmdline'));
    const memory = openSync('/proc/' + pid + '/mem');
    processes += 1;
    for (const [, from, to] of read('maps').toString().matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)) {
      const end = parseInt(to, 16);
      for (let at = parseInt(from, 16); at < end; at += 1 << 20) {
        // A page that cannot be read holds nothing that somebody could take.
        try { look(piece.subarray(0, readSync(memory, piece, 0, Math.min(piece.length, end - at), at))); } catch {}
      }
    }
    closeSync(memory);
  } catch (error) {
    // It ended meanwhile.
    if (!['ENOENT', 'ESRCH'].includes(error.code)) throw error;
  }
}
console.log(JSON.stringify({ processes, found: [...found] }));`;

/** Where a container works, once the kubelet has told it. */
function containerOf(namespace: string, podName: string, container: string): Promise<{ id: string; nodeName: string }> {
  // A run is claimed as soon as its process works: the kubelet may tell the container's id later.
  return eventually(`container ${container} of ${podName} has an id`, async () => {
    const pod = await getObject<PodObject>('pod', podName, namespace);
    const all = [...(pod?.status?.containerStatuses ?? []), ...(pod?.status?.initContainerStatuses ?? [])];
    const found = /[0-9a-f]{64}$/.exec(all.find(({ name }) => name === container)?.containerID ?? '')?.[0];
    return found === undefined ? undefined : { id: found, nodeName: pod?.spec.nodeName ?? '' };
  });
}

async function signal(name: 'STOP' | 'KILL', namespace: string, podName: string, container: string): Promise<void> {
  const { id, nodeName } = await containerOf(namespace, podName, container);
  const script = `
    found=
    for group in /proc/[0-9]*/cgroup; do
      if grep -q ${id} "$group" 2>/dev/null; then
        pid=\${group#/proc/}; pid=\${pid%/cgroup}
        kill -${name} "$pid" && found=yes
      fi
    done
    test -n "$found"`;
  await onNode(nodeName, script);
}

interface NodeObject {
  metadata: { name: string; labels: Record<string, string> };
  /** An image whose last name went to a newer one has none. */
  status: { images: { names: string[] | null }[] };
}

/** A node that takes pods: its name, its label, and the images that it has. */
export async function someNode(): Promise<{ name: string; hostname: string; images: string[] }> {
  const { items } = JSON.parse(await kubectlOk(['get', 'nodes', '-o', 'json'])) as { items: NodeObject[] };
  const [node] = items;
  if (node === undefined) throw new Error('the cluster has no node');
  const { name, labels } = node.metadata;
  const images = node.status.images.flatMap(({ names }) => names ?? []);
  return { name, hostname: labels['kubernetes.io/hostname'] ?? name, images };
}
