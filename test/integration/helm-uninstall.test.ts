/**
 * `helm install` and `helm uninstall` on a real API server: after it nobody is left to fold totals or to release finalizers,
 * and nothing may hang. There is no kubelet and no Job controller, so the test plays the hook's pod: the real process,
 * with nothing but the token of its service account.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { FINALIZER_CLEANUP, FINALIZER_ROLL_UP } from '../../src/api/labels.js';
import { runReleaseFinalizers } from '../../src/processes/release-finalizers.js';
import { eventually } from '../builders/api-server.js';
import { findTools } from '../builders/kubectl.js';
import type { CommandResult, Tools } from '../builders/kubectl.js';
import { spawnApiServer } from '../builders/spawn-api-server.mjs';

const RELEASE = 'boxwright-system';
const NAMESPACE = 'bw-dev';
const HOOK = 'boxwright-uninstall';

interface Kubeconfig {
  users: { name: string; user: object }[];
}

describe('helm uninstall', () => {
  let server: Awaited<ReturnType<typeof spawnApiServer>>;
  let tools: Tools;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boxwright-uninstall-'));
    server = await spawnApiServer();
    tools = await findTools();
    await helmOk(['install', 'boxwright', 'charts/boxwright', '--create-namespace', '--set', 'publicUrl=http://x']);
    await ok(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=120s']);
  }, 300_000);

  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const kubectl = (args: readonly string[], input?: string): Promise<CommandResult> =>
    tools.kubectl(server.kubeconfig, args, input);

  async function ok(args: readonly string[], input?: string): Promise<string> {
    const result = await kubectl(args, input);
    if (!result.ok) throw new Error(`${args.join(' ')}: ${result.stderr}`);
    return result.stdout;
  }

  async function helmOk(args: readonly string[]): Promise<void> {
    const result = await tools.helm(['--kubeconfig', server.kubeconfig, '--namespace', RELEASE, ...args]);
    if (!result.ok) throw new Error(`helm ${args.join(' ')}: ${result.stderr}`);
  }

  async function create(kind: string, name: string, spec: object, finalizers: string[], namespace?: string) {
    const metadata = { name, finalizers, ...(namespace === undefined ? {} : { namespace }) };
    const object = { apiVersion: 'boxwright.dev/v1alpha1', kind, metadata, spec };
    await ok(['create', '-f', '-'], JSON.stringify(object));
  }

  /** The kubeconfig of the hook's pod: its token and nothing else. */
  async function hookKubeconfig(): Promise<string> {
    const token = (await ok(['create', 'token', HOOK, '-n', RELEASE])).trim();
    const config = parse(await readFile(server.kubeconfig, 'utf8')) as Kubeconfig;
    for (const user of config.users) user.user = { token };
    const path = join(folder, 'kubeconfig');
    await writeFile(path, stringify(config), { mode: 0o600 });
    return path;
  }

  const exists = async (...args: string[]) => (await kubectl(['get', ...args])).ok;

  /** As the Job controller, when the pod has ended well. */
  async function completeHook(): Promise<void> {
    const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: time,
    }));
    const status = { startTime: time, completionTime: time, succeeded: 1, conditions, uncountedTerminatedPods: {} };
    const patch = JSON.stringify({ status });
    await ok(['patch', 'job', HOOK, '-n', RELEASE, '--subresource=status', '--type=merge', '-p', patch]);
  }

  it('releases what our finalizers hold, keeps objects and CRDs, and leaves nothing that could hang', async () => {
    await ok(['create', 'namespace', NAMESPACE]);
    // As the controller makes it; the policies of the chart refuse our kinds elsewhere.
    await ok(['label', 'namespace', NAMESPACE, 'boxwright.dev/box=dev']);
    await create('Workspace', 'acme', { slots: 1 }, [FINALIZER_CLEANUP]);
    await create('Box', 'dev', { workspace: 'acme' }, [FINALIZER_CLEANUP]);
    await create('Agent', 'ada', { name: 'Ada' }, [FINALIZER_CLEANUP], NAMESPACE);
    await create('AgentRun', 'kept', { agent: 'ada', message: 'x' }, [FINALIZER_ROLL_UP], NAMESPACE);
    await create('AgentRun', 'going', { agent: 'ada', message: 'x' }, [FINALIZER_ROLL_UP], NAMESPACE);
    await create('AgentRun', 'held', { agent: 'ada', message: 'x' }, [FINALIZER_ROLL_UP, 'example.com/x'], NAMESPACE);
    // Nobody folds it: without the hook it would stay for ever.
    await ok(['delete', 'agentrun', 'going', '-n', NAMESPACE, '--wait=false']);

    const uninstalled = helmOk(['uninstall', 'boxwright', '--timeout=120s']);
    uninstalled.catch(() => undefined);
    await eventually(() => exists('job', HOOK, '-n', RELEASE), 'the hook is there');
    // It comes after the control plane: a controller that still works would put finalizers back.
    expect(await ok(['get', 'deployments', '-n', RELEASE, '-o', 'name'])).toBe('');
    const kubeconfig = await hookKubeconfig();
    expect(await runReleaseFinalizers({ KUBECONFIG: kubeconfig, BOXWRIGHT_LOG_LEVEL: 'error' })).toBe(0);
    for (const forbidden of [
      ['get', 'secrets', '-A'],
      ['delete', 'agentrun', 'kept', '-n', NAMESPACE],
      ['create', 'namespace', 'x'],
    ]) {
      expect((await tools.kubectl(kubeconfig, forbidden)).ok).toBe(false);
    }
    await completeHook();
    await uninstalled;

    for (const kind of ['serviceaccount', 'job']) expect(await exists(kind, HOOK, '-n', RELEASE)).toBe(false);
    for (const kind of ['clusterroles', 'clusterrolebindings', 'validatingadmissionpolicies']) {
      expect(await ok(['get', kind, '-l', 'app.kubernetes.io/name=boxwright', '-o', 'name'])).toBe('');
    }
    expect(await exists('agentrun', 'going', '-n', NAMESPACE)).toBe(false);
    const left = await ok(['get', 'agentrun', 'held', '-n', NAMESPACE, '-o', 'jsonpath={.metadata.finalizers}']);
    expect(left).toBe('["example.com/x"]');

    for (const args of [
      ['agentrun', 'kept', '-n', NAMESPACE],
      ['agent', 'ada', '-n', NAMESPACE],
      ['box', 'dev'],
      ['workspace', 'acme'],
    ]) {
      await ok(['delete', ...args, '--timeout=120s']);
    }
    await ok(['patch', 'agentrun', 'held', '-n', NAMESPACE, '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
    // The CRDs are still there, as those of the former release.
    const again = ['install', 'other', 'charts/boxwright', '-n', 'elsewhere', '--create-namespace'];
    const reinstall = (...more: string[]) =>
      tools.helm(['--kubeconfig', server.kubeconfig, ...again, '--set', 'publicUrl=http://x', ...more]);
    expect(await reinstall()).toMatchObject({
      ok: false,
      stderr: expect.stringContaining('invalid ownership metadata'),
    });
    expect(await reinstall('--take-ownership')).toMatchObject({ ok: true });
    expect(await ok(['get', 'deployments', '-n', 'elsewhere', '-o', 'name'])).toContain('boxwright-api');
    const gone = ['uninstall', 'other', '-n', 'elsewhere', '--no-hooks'];
    expect(await tools.helm(['--kubeconfig', server.kubeconfig, ...gone])).toMatchObject({ ok: true });
    const crds = (await ok(['get', 'crds', '-o', 'name'])).split('\n').filter((name) => name.endsWith('boxwright.dev'));
    expect(crds.length).toBeGreaterThan(10);
    await ok(['delete', ...crds, '--timeout=120s']);
  }, 300_000);
});
