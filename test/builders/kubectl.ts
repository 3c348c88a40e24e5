/** kubectl and Helm as a person types them, against the cluster of `make up` or any API server of a test. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CLUSTER_SH = 'hack/cluster/cluster.sh';

export interface CommandResult {
  ok: boolean;
  stdout: string;
  stderr: string;
}

/** Runs a program; never throws for an exit code. `input` goes to standard input. */
async function command(program: string, args: readonly string[], input = ''): Promise<CommandResult> {
  const child = run(program, [...args], { maxBuffer: 16 * 1024 * 1024 });
  child.child.stdin?.end(input);
  try {
    const { stdout, stderr } = await child;
    return { ok: true, stdout, stderr };
  } catch (error) {
    const { stdout = '', stderr = String(error) } = error as Partial<CommandResult>;
    return { ok: false, stdout, stderr };
  }
}

/** A command of hack/cluster/cluster.sh, for the cluster of `make up`: `['kubectl', 'get', …]`, `['kill', 'etcd']`. */
export function clusterCommand(args: readonly string[], input?: string): Promise<CommandResult> {
  return command(CLUSTER_SH, args, input);
}

export interface Tools {
  /** kubectl for one kubeconfig. */
  kubectl(kubeconfig: string, args: readonly string[], input?: string): Promise<CommandResult>;
  helm(args: readonly string[]): Promise<CommandResult>;
}

/** The programs of the local cluster, also where no cluster is. */
export async function findTools(): Promise<Tools> {
  const { ok, stdout, stderr } = await clusterCommand(['tools']);
  if (!ok) throw new Error(stderr);
  const pathOf = (name: string) => new RegExp(`^export ${name}='(.*)'$`, 'm').exec(stdout)?.[1] ?? '';
  return {
    kubectl: (kubeconfig, args, input) => command(pathOf('KUBECTL'), ['--kubeconfig', kubeconfig, ...args], input),
    helm: (args) => command(pathOf('HELM'), args),
  };
}
