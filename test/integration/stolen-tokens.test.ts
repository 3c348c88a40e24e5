/**
 * What the token of each of our service accounts opens: the rights and policies of the chart on a real API server, asked
 * with tokens that it issued and with nothing else.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { findTools } from '../builders/kubectl.js';
import type { CommandResult, Tools } from '../builders/kubectl.js';
import { spawnApiServer } from '../builders/spawn-api-server.mjs';

const RELEASE = 'boxwright-system';
const BOX = 'bw-dev';
const WORKSPACE = 'bw-ws-acme';
const RUNNER = `${BOX}/boxwright-runner`;
const ours = ['api', 'gateway', 'controller'].map((name) => `${RELEASE}/boxwright-${name}`);
const ACCOUNTS = [...ours, RUNNER];

describe('a stolen token', () => {
  let server: Awaited<ReturnType<typeof spawnApiServer>>;
  let tools: Tools;
  let folder: string;
  const kubeconfigs = new Map<string, string>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boxwright-tokens-'));
    server = await spawnApiServer();
    tools = await findTools();
    await admin(['apply', '-f', 'crds']);
    await admin(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
    for (const [name, labels] of [
      [RELEASE, {}],
      [BOX, { 'boxwright.dev/box': 'dev' }],
      [WORKSPACE, { 'boxwright.dev/workspace': 'acme' }],
    ] as const) {
      await admin(['create', '-f', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    }
    for (const account of ACCOUNTS) {
      const [namespace = '', name = ''] = account.split('/');
      await admin(['create', 'serviceaccount', name, '-n', namespace]);
      kubeconfigs.set(account, await kubeconfigOf(namespace, name));
    }
    for (const file of ['rbac', 'admission']) {
      const place = ['template', 'boxwright', 'charts/boxwright', '-n', RELEASE, '--kube-version', '1.34.0'];
      const show = ['--set', 'publicUrl=http://x', '--show-only', `templates/${file}.yaml`];
      await adminText(['apply', '-f', '-'], (await tools.helm([...place, ...show])).stdout);
    }
  }, 300_000);

  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function adminText(args: readonly string[], input?: string): Promise<string> {
    const result = await tools.kubectl(server.kubeconfig, args, input);
    if (!result.ok) throw new Error(`${args.join(' ')}: ${result.stderr}`);
    return result.stdout;
  }

  const admin = (args: readonly string[], input?: object) =>
    adminText(args, input === undefined ? undefined : JSON.stringify(input));

  /** With the token of the service account, and without the certificate of the administrator. */
  async function kubeconfigOf(namespace: string, name: string): Promise<string> {
    const token = (await admin(['create', 'token', name, '-n', namespace])).trim();
    const config = parse(await readFile(server.kubeconfig, 'utf8')) as { users: { name: string; user: object }[] };
    config.users = config.users.map((user) => ({ ...user, user: { token } }));
    const path = join(folder, `${namespace}-${name}`);
    await writeFile(path, stringify(config), { mode: 0o600 });
    return path;
  }

  const withToken = (account: string, args: readonly string[], input?: object): Promise<CommandResult> =>
    tools.kubectl(kubeconfigs.get(account) ?? '', args, input === undefined ? undefined : JSON.stringify(input));

  const binding = (name: string, namespace?: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'User', name: 'mallory', apiGroup: 'rbac.authorization.k8s.io' }],
  });
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'x' },
    spec: { containers: [{ name: 'x', image: 'x' }] },
  };

  test.each(ACCOUNTS)('of %s is that of this account, and of nobody else', async (account) => {
    const { stdout } = await withToken(account, ['auth', 'whoami', '-o', 'json']);
    const { status } = JSON.parse(stdout) as { status: { userInfo: { username: string } } };
    expect(status.userInfo.username).toBe(`system:serviceaccount:${account.replace('/', ':')}`);
  });

  describe.each(ACCOUNTS)('of %s', (account) => {
    const tries: [string, string[], object?][] = [
      ['lists Secrets of all namespaces', ['get', 'secrets', '-A']],
      ['lists Secrets of the installation', ['get', 'secrets', '-n', RELEASE]],
      ['lists Secrets of a Box', ['get', 'secrets', '-n', BOX]],
      ['lists Secrets of a Workspace', ['get', 'secrets', '-n', WORKSPACE]],
      ['reads a Secret elsewhere', ['get', 'secret', 'x', '-n', 'kube-system']],
      ['creates a pod', ['create', '-n', BOX, '-f', '-'], pod],
      ['creates a pod elsewhere', ['create', '-n', 'default', '-f', '-'], pod],
      ['creates a pod in the installation', ['create', '-n', RELEASE, '-f', '-'], pod],
      ['enters a pod', ['create', '--raw', `/api/v1/namespaces/${BOX}/pods/x/exec?command=id`, '-f', '-'], {}],
      ['reads logs of a pod', ['get', '--raw', `/api/v1/namespaces/${BOX}/pods/x/log`]],
      ['issues a token of runs', ['create', 'token', 'boxwright-runner', '-n', BOX]],
      ['issues a token of the controller', ['create', 'token', 'boxwright-controller', '-n', RELEASE]],
      ['speaks for others', ['get', 'pods', '-n', BOX, '--as=mallory']],
      ['binds a role in the cluster', ['create', '-f', '-'], binding('x')],
      ['binds a role in a Box', ['create', '-f', '-'], binding('x', BOX)],
      ['binds a role elsewhere', ['create', '-f', '-'], binding('x', 'kube-system')],
      ['makes a role', ['create', 'clusterrole', 'x', '--verb=*', '--resource=*']],
      ['lifts an admission policy', ['delete', 'validatingadmissionpolicybinding', 'boxwright-box-namespaces']],
      ['changes a process of ours', ['patch', 'deployment', 'boxwright-api', '-n', RELEASE, '-p', '{}']],
      ['writes a ConfigMap of the installation', ['create', 'configmap', 'x', '-n', RELEASE]],
      ['reads ConfigMaps elsewhere', ['get', 'configmaps', '-n', 'kube-system']],
      [
        'widens a Box',
        ['create', '-f', '-'],
        { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Box', metadata: { name: 'x' }, spec: { workspace: 'acme' } },
      ],
      [
        'makes an API key',
        ['create', '-n', WORKSPACE, '-f', '-'],
        { apiVersion: 'boxwright.dev/v1alpha1', kind: 'APIKey', metadata: { name: 'x' }, spec: {} },
      ],
    ];
    test.each(tries.map(([what, args, input]) => [what, { args, input }] as const))(
      'never %s',
      async (_what, { args, input }) => {
        const result = await withToken(account, args, input);
        expect({ args, ...result }).toMatchObject({ ok: false, stderr: expect.stringMatching(/forbidden|denied/i) });
      },
    );
  });

  test.each<[string, string, string[]]>([
    ['api', 'reads credentials of a Box', ['get', 'secret', 'x', '-n', BOX]],
    ['api', 'reads the keys of models or the CA', ['get', 'secret', 'boxwright-ca', '-n', RELEASE]],
    ['api', 'makes a Job', ['create', 'job', 'x', '--image=x', '-n', BOX]],
    ['api', 'deletes a run', ['delete', 'agentrun', 'x', '-n', BOX]],
    [
      'api',
      'writes the status of runs',
      ['patch', 'agentrun', 'x', '-n', BOX, '--subresource=status', '-p', '{}', '--type=merge'],
    ],
    ['gateway', 'reads the keyring', ['get', 'secret', 'boxwright-keyring', '-n', RELEASE]],
    ['gateway', 'reads API keys', ['get', 'secret', 'x', '-n', WORKSPACE]],
    ['gateway', 'makes a Job', ['create', 'job', 'x', '--image=x', '-n', BOX]],
    ['gateway', 'creates an agent', ['create', '-f', 'examples/quickstart.yaml']],
    ['gateway', 'deletes a run', ['delete', 'agentrun', 'x', '-n', BOX]],
    ['controller', 'reads credentials of a Box', ['get', 'secret', 'x', '-n', BOX]],
    ['controller', 'reads a Secret of the installation that it did not make', ['get', 'secret', 'x', '-n', RELEASE]],
  ])('of the %s never %s', async (name, _what, args) => {
    const result = await withToken(`${RELEASE}/boxwright-${name}`, args);
    expect({ args, ...result }).toMatchObject({ ok: false, stderr: expect.stringMatching(/forbidden/i) });
  });

  test('of a run pod reads nothing of ours either', async () => {
    for (const kind of ['agentruns', 'agents', 'pods', 'jobs', 'networkpolicies', 'events', 'serviceaccounts']) {
      const result = await withToken(RUNNER, ['get', kind, '-n', BOX]);
      expect({ kind, ...result }).toMatchObject({ ok: false, stderr: expect.stringMatching(/forbidden/i) });
    }
  });
});
