/** Files that agents publish, through the real runner, the real tools and the real gateway. */
import { createHash } from 'node:crypto';
import { AgentRunFileParts } from '../../src/api/v1alpha1/agent-run-file-part.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { ClusterFileStore } from '../../src/files/cluster-file-store.js';
import { runPath } from '../../src/protocol/run.js';
import { NAMESPACE, type RunPod } from '../builders/gateway-world.js';
import { PodWorld } from '../builders/pod-world.js';
import { apiError } from '../builders/recording-api.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
beforeEach(async () => {
  pods = await PodWorld.start(temporary);
});
afterEach(() => pods.close());

const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');

/** One call of publish_file as a runner posts it. */
async function publish(pod: RunPod, call: number, input: object, content: Buffer | undefined, epoch = 1) {
  const body = { epoch, call, tool: 'publish_file', input, content: content?.toString('base64') };
  const path = runPath(pod.namespace, pod.run, 'tool');
  const { status, json } = await pods.world.post(pods.gateway, path, body, pod.token);
  return { status, isError: json['isError'], result: json['result'] as Record<string, unknown> | undefined };
}

async function claimed(name: string): Promise<RunPod> {
  const pod = pods.world.addRun(name, {});
  expect((await pods.world.claim(pods.gateway, pod)).status).toBe(200);
  return pod;
}

const filesOf = (name: string) => pods.world.run(name).status?.files;

/** Writes of files and of status since the last call. */
function writes(): string[] {
  return pods.world.api.writes
    .splice(0)
    .filter(({ resource }) => ['agentrunfileparts', 'agentruns/status'].includes(resource))
    .map(({ verb, resource }) => `${verb} ${resource}`);
}

test('an agent publishes a file: its content is stored, its run lists it, and the agent is told what it was', async () => {
  const run = await pods.run('helper-1', {
    message: [
      '/tool write {"path": "out/report.md", "content": "# Report\\n"}',
      '/tool publish_file {"path": "out/report.md", "description": "What was found"}',
    ].join('\n'),
  });
  const told = { name: 'report.md', mediaType: 'text/markdown; charset=utf-8', bytes: 9, sha256: sha256('# Report\n') };
  expect((await pods.calls('helper-1'))[1]).toEqual({ tool: 'publish_file', result: told, isError: false });
  const file = { ...told, description: 'What was found', part: 0, parts: 1 };
  expect(run.status).toMatchObject({ phase: 'done', files: [file], fileCount: 1 });
  const owner = { namespace: NAMESPACE, name: 'helper-1', uid: run.metadata.uid ?? '' };
  const content = await new ClusterFileStore(pods.world.api).read(owner, file, new AbortController().signal);
  expect(content?.toString()).toBe('# Report\n');
});

test('a run without files writes what it always did', async () => {
  const run = await pods.run('helper-1', { message: '/say Hello.' });
  expect(run.status).not.toHaveProperty('files');
  expect(writes()).toEqual(['patch agentruns/status', 'patch agentruns/status']);
});

test('a file that is not there, is none or leads out of the workspace is not published', async () => {
  await pods.run('helper-1', {
    message: ['missing', '..', '/etc/passwd', '.'].map((path) => `/tool publish_file {"path": "${path}"}`).join('\n'),
  });
  expect((await pods.calls('helper-1')).map(({ isError }) => isError)).toEqual([true, true, true, true]);
  expect(pods.world.api.all(AgentRunFileParts)).toEqual([]);
});

test('a file of several pieces comes whole, and one that is too large is refused in words', async () => {
  const size = 1024 * 1024;
  await pods.run('helper-1', {
    message: [
      `/tool shell {"command": "head -c ${size} /dev/urandom > most; head -c ${size + 1} /dev/zero > more"}`,
      '/tool publish_file {"path": "most"}',
      '/tool publish_file {"path": "more"}',
    ].join('\n'),
  });
  const [, most, more] = await pods.calls('helper-1');
  expect(most).toMatchObject({ isError: false, result: { bytes: size, mediaType: 'application/octet-stream' } });
  expect(more).toMatchObject({ isError: true, result: { error: expect.stringContaining('1024 KiB') } });
  expect(filesOf('helper-1')).toMatchObject([{ name: 'most', bytes: size, part: 0, parts: 2 }]);
});

describe('the gateway', () => {
  test('lists the files before the first piece is stored, and the file after it', async () => {
    const pod = await claimed('helper-1');
    writes();
    await publish(pod, 1, { path: 'a.txt' }, Buffer.from('a'));
    expect(writes()).toEqual(['patch agentruns/status', 'create agentrunfileparts', 'patch agentruns/status']);
    await publish(pod, 2, { path: 'b.txt' }, Buffer.from('b'));
    expect(writes()).toEqual(['create agentrunfileparts', 'patch agentruns/status']);
    // The same content under another name lies there already.
    await publish(pod, 3, { path: 'c.txt' }, Buffer.from('a'));
    expect(writes()).toEqual(['patch agentruns/status']);
    // The same again is the same file.
    await publish(pod, 4, { path: 'c.txt' }, Buffer.from('a'));
    expect(writes()).toEqual([]);
    expect(filesOf('helper-1')?.map(({ name, part }) => [name, part])).toEqual([
      ['a.txt', 0],
      ['b.txt', 1],
      ['c.txt', 0],
    ]);
  });

  // Mark, piece, list: the answer of each write is lost, or the write itself.
  test.each(
    ['patch agentruns/status', 'create agentrunfileparts', 'patch agentruns/status'].flatMap((write, index) =>
      [false, true].map((afterWrite) => [index, write, afterWrite] as const),
    ),
  )('a call whose write %i (%s, written: %s) is lost can be repeated', async (index, write, afterWrite) => {
    const pod = await claimed('helper-1');
    if (index === 2) await publish(pod, 1, { path: 'a.txt' }, Buffer.from('a'));
    const [verb, resource] = write.split(' ') as ['patch' | 'create', string];
    pods.world.api.failNext({ verb, resource, error: apiError(500, 'lost'), afterWrite });
    const input = { path: 'b.txt' };
    expect((await publish(pod, 2, input, Buffer.from('b'))).status).toBe(503);
    expect((await publish(pod, 2, input, Buffer.from('b'))).result).toMatchObject({ name: 'b.txt', bytes: 1 });
    expect(filesOf('helper-1')?.filter(({ name }) => name === 'b.txt')).toHaveLength(1);
    // Whatever was lost, what the status says is enough to remove all.
    const { metadata } = pods.world.run('helper-1');
    const owner = { namespace: NAMESPACE, name: 'helper-1', uid: metadata.uid ?? '' };
    await new ClusterFileStore(pods.world.api).remove(owner, new AbortController().signal);
    expect(pods.world.api.all(AgentRunFileParts)).toEqual([]);
  });

  test('a run publishes so many files and so many bytes', async () => {
    const pod = await claimed('helper-1');
    const most = Buffer.alloc(1024 * 1024, 1);
    for (let call = 1; call <= 4; call++) {
      most[0] = call;
      expect(await publish(pod, call, { path: `${call}` }, most)).toMatchObject({ status: 200, isError: false });
    }
    expect(await publish(pod, 5, { path: 'x' }, Buffer.from('x'))).toMatchObject({
      isError: true,
      result: { error: 'a run publishes at most 16 files and 4 MiB in all' },
    });
    const many = await claimed('helper-2');
    for (let call = 1; call <= 17; call++) {
      expect((await publish(many, call, { path: `${call}` }, Buffer.from(`${call}`))).isError).toBe(call === 17);
    }
    expect(filesOf('helper-2')).toHaveLength(16);
    expect(pods.world.run('helper-2').status?.fileCount).toBe(16);
  });

  test('takes no name that means something else, and no call without the file', async () => {
    const pod = await claimed('helper-1');
    expect(await publish(pod, 1, { path: 'a', name: '../a' }, Buffer.from('a'))).toMatchObject({ isError: true });
    expect(await publish(pod, 2, { path: 'a' }, undefined)).toMatchObject({ isError: true });
    expect((await publish(pod, 3, { path: 'a' }, Buffer.alloc(1024 * 1024 + 1))).isError).not.toBe(false);
    expect(filesOf('helper-1')).toBeUndefined();
  });

  test('publishes nothing for an agent without files, and nothing after the end', async () => {
    const pod = await claimed('helper-1');
    const run = pods.world.run('helper-1');
    pods.world.api.seed(Agents, {
      apiVersion: '',
      kind: '',
      metadata: { name: 'helper', namespace: NAMESPACE, uid: 'uid-agent' },
      spec: AgentSpec.parse({ name: 'Helper', tools: { files: false } }),
    });
    expect(await publish(pod, 1, { path: 'a' }, Buffer.from('a'))).toMatchObject({ isError: true });
    await pods.world.api.patch(
      AgentRuns,
      { namespace: NAMESPACE, name: 'helper-1' },
      { status: { ...run.status, phase: 'cancelled' } },
      { type: 'merge', subresource: 'status' },
    );
    expect((await publish(pod, 2, { path: 'a' }, Buffer.from('a'))).status).toBe(410);
    expect(pods.world.api.all(AgentRunFileParts)).toEqual([]);
  });
});
