/** Files of an agent that stay between its runs, in real pods on a volume of the node. */
import { jest } from '@jest/globals';
import { conditionOf } from './support/conditions.js';
import { apply, eventually, getObject, kubectl } from './support/install.js';
import { toolOk } from './support/mcp.js';
import { NODE_TMP, onNode, someNode } from './support/node.js';
import { createRun, ended, withReason } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

const CLASS = 'boxwright-e2e-local';
const VOLUME = 'boxwright-e2e-volume';
const FOLDER = 'boxwright-e2e-volume';

/** Every way in which a shell and git take settings; `acted` is there when one of them came from an earlier run. */
const TRUSTED = [
  'bash -i -c true < /dev/null 2> /dev/null; bash -l -c true',
  'git sneak 2> /dev/null; test ! -e acted || echo acted',
  'echo planted files: $(ls -d .bashrc .bash_profile .profile .gitconfig .config/git/config | wc -l)',
  'echo left at home: $(find ~ -type f | wc -l)',
  'env | grep -E "^(HOME|XDG_|BASH_ENV|ENV)"',
  'echo git: $(git config --global user.name || echo none)',
].join('; ');

describe('persistent workspaces', () => {
  let tenant: Tenant;
  let node: Awaited<ReturnType<typeof someNode>>;

  beforeAll(async () => {
    node = await someNode();
    await onNode(node.name, `mkdir -p ${NODE_TMP}/${FOLDER}`);
    const workspaceVolume = { mode: 'persistent', storageClassName: CLASS, size: '64Mi' };
    tenant = await createTenant('e2e-volumes', { box: { workspaceVolume, bounds: { unschedulableSeconds: 5 } } });
  });

  afterAll(async () => {
    await tenant.remove();
    await kubectl(['delete', 'pv', VOLUME, '--ignore-not-found']);
    await kubectl(['delete', 'storageclass', CLASS, '--ignore-not-found']);
    await onNode(node.name, `rm -rf ${NODE_TMP}/${FOLDER}`);
  });

  const claim = () => getObject<{ status?: { phase?: string } }>('pvc', 'keeper-workspace', tenant.namespace);

  /** The controller of agents says it at its own time, not with the run. */
  async function persistenceIs(reason: string): Promise<void> {
    const read = () => conditionOf('WorkspacePersistent', 'agent', 'keeper', tenant.namespace);
    await eventually(`WorkspacePersistent of the agent says ${reason}`, async () => (await read())?.reason === reason);
  }

  async function createStorageClass(): Promise<void> {
    await apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: CLASS },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
  }

  async function createVolume(): Promise<void> {
    const onThisNode = { key: 'kubernetes.io/hostname', operator: 'In', values: [node.hostname] };
    await apply({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: VOLUME },
      spec: {
        capacity: { storage: '64Mi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: CLASS,
        local: { path: `/tmp/${FOLDER}` },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [onThisNode] }] } },
      },
    });
  }

  /** What an untrusted run can leave for later ones: settings in the workspace, and in its own home. */
  async function plantSettings(): Promise<void> {
    const plant = [
      'printf "touch /workspace/acted\\n" | tee .bashrc .bash_profile .profile > ~/.bashrc',
      'printf "[user]\\n\\tname = Mallory\\n[alias]\\n\\tsneak = !touch /workspace/acted\\n" | tee .gitconfig > ~/.gitconfig',
      'mkdir -p .config/git ~/.config/git',
      'cp .gitconfig .config/git/config && cp .gitconfig ~/.config/git/config',
    ].join(' && ');
    await createRun(tenant, 'keeper', `/shell ${plant}\n/say planted`, 'plants');
    expect((await ended(tenant, 'plants')).status).toMatchObject({ phase: 'done', output: 'planted' });
  }

  test('runs wait for a StorageClass, then for a volume, with the cause; then files stay until the agent goes', async () => {
    await tenant.agent('keeper');
    await createRun(tenant, 'keeper', '/shell echo kept > note; mkdir sub; id\n/say written', 'writes');
    await withReason(tenant, 'writes', 'WorkspaceNotReady');
    await persistenceIs('StorageClassNotFound');

    await createStorageClass();
    const stuck = await withReason(tenant, 'writes', 'NoCapacity');
    expect(stuck.status?.message).toContain('Volume claim keeper-workspace has no volume');
    await persistenceIs('VolumePending');

    await createVolume();
    expect((await ended(tenant, 'writes')).status).toMatchObject({ phase: 'done', output: 'written' });
    await persistenceIs('VolumeBound');

    // Two at once share the volume and its node.
    await createRun(tenant, 'keeper', '/shell test -s note && echo more >> note; sleep 3', 'appends');
    await createRun(tenant, 'keeper', '/shell cat note && rmdir sub && cp note copy', 'reads');
    for (const name of ['appends', 'reads']) {
      expect((await ended(tenant, name)).status).toMatchObject({ phase: 'done' });
    }
    const { toolCalls } = await toolOk<{ toolCalls: { result: string; isError: boolean }[] }>(
      tenant.apiKey,
      'get_run',
      {
        agentId: tenant.agentId('keeper'),
        runId: 'reads',
        includeToolCalls: true,
      },
    );
    expect(toolCalls).toMatchObject([{ isError: false, result: expect.stringContaining('kept') }]);

    await plantSettings();
    await createRun(tenant, 'keeper', `/shell ${TRUSTED}`, 'trusts');
    expect((await ended(tenant, 'trusts')).status).toMatchObject({ phase: 'done' });
    const seen = await toolOk<{ toolCalls: { result: string }[] }>(tenant.apiKey, 'get_run', {
      agentId: tenant.agentId('keeper'),
      runId: 'trusts',
      includeToolCalls: true,
    });
    const { output } = JSON.parse(seen.toolCalls[0]?.result ?? '{}') as { output: string };
    expect(output.trim().split('\n')).toEqual(['planted files: 5', 'left at home: 0', 'HOME=/home/agent', 'git: none']);

    await createRun(tenant, 'keeper', '/shell sleep 300', 'works');
    await withReason(tenant, 'works', 'Working');
    await toolOk(tenant.apiKey, 'delete_agent', { agentId: tenant.agentId('keeper'), confirm: true });
    await eventually(
      'the agent is gone',
      async () => (await getObject('agent', 'keeper', tenant.namespace)) === undefined,
    );
    await eventually('its volume claim is gone', async () => (await claim()) === undefined);
  });
});
