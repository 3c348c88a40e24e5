/** What is in the images that the installation runs, seen from inside: programs, privileges, users, one Node.js. */
import { readFileSync } from 'node:fs';
import { jest } from '@jest/globals';
import { apply, eventually, getObject, kubectl, kubectlOk, productImages } from './support/install.js';
import type { Images } from './support/install.js';
import { finishedRun } from './support/mcp.js';
import { createRun, ended } from './support/runs.js';
import { createTenant } from './support/tenant.js';

jest.setTimeout(600_000);

interface Contents {
  node: string;
  programs: string[];
  privileged: string[];
}

/** Walks the whole image: files that can be executed, and those with setuid or setgid. */
const WALK = `
const { lstatSync, readdirSync } = require('node:fs');
const found = { node: process.version, programs: [], privileged: [] };
const skipped = new Set(['/proc', '/sys', '/dev', '/run', '/var/run']);
const walk = (directory) => {
  for (const name of readdirSync(directory)) {
    const path = (directory === '/' ? '' : directory) + '/' + name;
    if (skipped.has(path)) continue;
    const { mode } = lstatSync(path);
    const type = mode & 0o170000;
    if (type !== 0o120000 && (mode & 0o6000) !== 0) found.privileged.push(path);
    if (type === 0o040000) walk(path);
    else if (type === 0o100000 && (mode & 0o111) !== 0) found.programs.push(path);
  }
};
walk('/');
console.log(JSON.stringify(found));
`;

/** Runs the walk as root in a pod of its own: no file may hide behind its owner. */
async function contentsOf(image: string): Promise<Contents> {
  const name = `boxwright-e2e-image-${Math.random().toString(36).slice(2, 10)}`;
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      containers: [
        { name: 'walk', image, command: ['/usr/local/bin/node', '-e', WALK], securityContext: { runAsUser: 0 } },
      ],
    },
  });
  try {
    await eventually(`pod ${name} ends`, async () => {
      const pod = await getObject<{ status?: { phase?: string } }>('pod', name, 'default');
      return pod?.status?.phase === 'Succeeded' || pod?.status?.phase === 'Failed';
    });
    return JSON.parse(await kubectlOk(['logs', name, '-n', 'default'])) as Contents;
  } finally {
    await kubectl(['delete', 'pod', name, '-n', 'default', '--grace-period=0', '--wait=false']);
  }
}

describe('the images of the installation', () => {
  let images: Images;
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } };

  beforeAll(async () => {
    images = await productImages();
  });

  test.each(['controlPlane', 'runner'] as const)('%s: no program but Node.js and tini, no shell', async (role) => {
    const { node, programs, privileged } = await contentsOf(images[role]);
    expect(programs.filter((path) => !/\.so[.\d]*$/.test(path))).toEqual(['/usr/bin/tini', '/usr/local/bin/node']);
    expect(privileged).toEqual([]);
    expect(node).toBe(`v${engines.node}`);
  });

  test('tools: what agents work with, the same Node.js, nothing with setuid or setgid', async () => {
    const { node, programs, privileged } = await contentsOf(images.tools);
    expect(programs).toEqual(expect.arrayContaining(['bash', 'curl', 'git', 'ssh'].map((name) => `/usr/bin/${name}`)));
    expect(programs).toContain('/usr/local/bin/rg');
    expect(privileged).toEqual([]);
    expect(node).toBe(`v${engines.node}`);
  });

  test('the user of a run has a name, and git and ssh work for it', async () => {
    const tenant = await createTenant('e2e-images');
    try {
      await tenant.agent('worker');
      const commands = [
        'whoami; id -gn; echo ~',
        'git init -q . && echo text > file && git add file && git commit -q -m First && git log --format="%an: %s"',
        'mkdir sub && cd sub && git init -q . && git commit -q --allow-empty -m Second && git log --format="%s"',
        'ssh -G example.com 2> /dev/null | grep -E "^(user|identityfile) " | head -2',
        'touch ~/.seen && ls -A ~',
      ];
      await createRun(tenant, 'worker', `/shell ${commands.join('; ')}\n/say Done.`, 'names');
      await ended(tenant, 'names');
      const run = await finishedRun(tenant.apiKey, tenant.agentId('worker'), 'names');
      const { output } = JSON.parse(run.toolCalls?.[0]?.result ?? '{}') as { output: string };
      expect(
        output
          .trim()
          .split('\n')
          .filter((line) => !line.startsWith('hint:')),
      ).toEqual([
        'agent',
        'boxwright',
        '/home/agent',
        'Agent: First',
        'Second',
        'user agent',
        'identityfile ~/.ssh/id_rsa',
        '.seen',
      ]);
    } finally {
      await tenant.remove();
    }
  });
});
