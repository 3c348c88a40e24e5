// Starts one API server for all integration test files of a Jest run (see test/builders/api-server.ts).
// A server that is there already is used: BOXWRIGHT_TEST_KUBECONFIG=path jest --selectProjects integration
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = join(dirname(fileURLToPath(import.meta.url)), '../../hack/cluster/cluster.sh');

export default async function globalSetup() {
  if (process.env.BOXWRIGHT_TEST_KUBECONFIG) return;
  const folder = await mkdtemp(join(tmpdir(), 'boxwright-apiserver-'));
  // It ends when its standard input closes, so it cannot outlive the Jest process.
  const child = spawn(script, ['apiserver', folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  globalThis.stopTestApiServer = async () => {
    child.kill('SIGTERM');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const kubeconfig = /^ready kubeconfig=(.+)$/.exec(line)?.[1];
    if (kubeconfig === undefined) continue;
    process.env.BOXWRIGHT_TEST_KUBECONFIG = kubeconfig;
    child.stdout.resume();
    return;
  }
  throw new Error('the API server of the integration tests ended before it was ready, see the lines above');
}
