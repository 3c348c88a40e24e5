// Starts etcd and kube-apiserver as a child process. Plain JavaScript, because Jest's global setup runs it untransformed.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = join(dirname(fileURLToPath(import.meta.url)), '../../hack/cluster/cluster.sh');

/** The first start on a machine builds Kubernetes, which takes minutes; the progress goes to standard error. */
export async function spawnApiServer() {
  const folder = await mkdtemp(join(tmpdir(), 'boxwright-apiserver-'));
  // It ends when its standard input closes, so it cannot outlive this process.
  const child = spawn(script, ['apiserver', folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const kubeconfig = /^ready kubeconfig=(.+)$/.exec(line)?.[1];
    if (kubeconfig === undefined) continue;
    child.stdout.resume();
    return { kubeconfig, stop };
  }
  await stop();
  throw new Error('the API server for tests ended before it was ready, see the lines above');
}
