/** kubectl against a test API server, as any user: what a person types, and what the server answers. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface CommandResult {
  ok: boolean;
  stdout: string;
  stderr: string;
}

/** Runs a command of hack/cluster/cluster.sh; never throws for an exit code. `input` goes to standard input. */
export async function clusterCommand(args: readonly string[], input?: string): Promise<CommandResult> {
  const child = run('hack/cluster/cluster.sh', [...args], { maxBuffer: 16 * 1024 * 1024 });
  child.child.stdin?.end(input ?? '');
  try {
    const { stdout, stderr } = await child;
    return { ok: true, stdout, stderr };
  } catch (error) {
    const { stdout = '', stderr = String(error) } = error as Partial<CommandResult>;
    return { ok: false, stdout, stderr };
  }
}

/** kubectl for one kubeconfig. */
export function kubectlFor(kubeconfig: string): (args: readonly string[], input?: string) => Promise<CommandResult> {
  return (args, input) => clusterCommand(['kubectl', '--kubeconfig', kubeconfig, ...args], input);
}
