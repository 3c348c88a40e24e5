/**
 * The running install that the end-to-end tests use: what `make up` left in `.local/quickstart.json`. The tests are
 * its users: kubectl, HTTP, MCP. They make their own Workspaces and Boxes and remove them.
 */
import { readFileSync } from 'node:fs';
import { clusterCommand } from '../../builders/kubectl.js';
import type { CommandResult } from '../../builders/kubectl.js';
import { clusterOf, kindOf } from './cluster.js';

export const RELEASE_NAMESPACE = 'boxwright-system';

export interface Facts {
  kubeconfig: string;
  baseUrl: string;
  apiKey: string;
  triggerUrl: string;
}

/** The facts of the install; fails with what to do when there is none. */
export function facts(): Facts {
  try {
    return JSON.parse(readFileSync('.local/quickstart.json', 'utf8')) as Facts;
  } catch (error) {
    throw new Error('no install to test: run `make up` first', { cause: error });
  }
}

/** Runs kubectl of the cluster; never throws for an exit code. `input` goes to standard input. */
export function kubectl(args: readonly string[], input?: string): Promise<CommandResult> {
  return clusterCommand(['kubectl', ...args], input);
}

/** kubectl that must succeed; its standard output. */
export async function kubectlOk(args: readonly string[], input?: string): Promise<string> {
  const result = await kubectl(args, input);
  if (!result.ok) throw new Error(`kubectl ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

export interface Images {
  controlPlane: string;
  runner: string;
  /** The one with a shell. */
  tools: string;
}

/** The images that the installation runs; the nodes have them. */
export async function productImages(): Promise<Images> {
  interface Deployment {
    spec: { template: { spec: { containers: [{ image: string; env: { name: string; value?: string }[] }] } } };
  }
  const deployment = await getObject<Deployment>('deployment', 'boxwright-controller', RELEASE_NAMESPACE);
  const [container] = deployment?.spec.template.spec.containers ?? [];
  const named = (variable: string) => container?.env.find(({ name }) => name === variable)?.value ?? '';
  return {
    controlPlane: container?.image ?? '',
    runner: named('BOXWRIGHT_RUNNER_IMAGE'),
    tools: named('BOXWRIGHT_TOOLS_IMAGE'),
  };
}

/** Applies manifests given as objects. */
export async function apply(...objects: readonly object[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  await kubectlOk(['apply', '-f', '-'], JSON.stringify(list));
}

/** One object, or undefined when it is not there; `kind` is the word for it that kubectl takes. */
export async function getObject<T>(kind: string, name: string, namespace?: string): Promise<T | undefined> {
  const cluster = await clusterOf(facts().kubeconfig);
  const object = await cluster.read(kindOf(kind), { name, ...(namespace === undefined ? {} : { namespace }) });
  return object as T | undefined;
}

/**
 * Waits until `read` gives a value, and asks it again whenever something changed in the cluster; fails with the last state
 * in words. The bound only ends a hang.
 */
export async function eventually<T>(
  what: string,
  read: () => Promise<T | undefined | false>,
  boundMs = 240_000,
): Promise<T> {
  const cluster = await clusterOf(facts().kubeconfig);
  const end = Date.now() + boundMs;
  let last: unknown;
  while (Date.now() < end) {
    const { change } = cluster;
    try {
      const value = await read();
      if (value !== undefined && value !== false) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    await cluster.changeAfter(change);
  }
  throw new Error(`not within ${boundMs / 1000} s: ${what} (last: ${String(last)})`);
}
