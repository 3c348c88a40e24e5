/** Notes and skills of an agent, through the real runner and the real gateway. */
import { AgentMemories } from '../../src/api/v1alpha1/agent-memory.js';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { runPath } from '../../src/protocol/run.js';
import { packedFiles } from '../builders/skill-files.js';
import { NAMESPACE, type RunPod } from '../builders/gateway-world.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
beforeEach(async () => {
  pods = await PodWorld.start(temporary);
});
afterEach(() => pods.close());

const HOOK = { trigger: { origin: 'trigger' as const, name: 'hook', uid: 'u' } };

function notes() {
  return pods.world.api.all(AgentMemories);
}

/** One call as a runner posts it. */
async function tool(pod: RunPod, call: number, name: string, input: unknown): Promise<Record<string, unknown>> {
  const body = { epoch: 1, call, tool: name, input };
  const { status, json } = await pods.world.post(
    pods.gateway,
    runPath(pod.namespace, pod.run, 'tool'),
    body,
    pod.token,
  );
  return { status, ...json };
}

async function claimed(name: string, spec = {}): Promise<RunPod> {
  const pod = pods.world.addRun(name, spec);
  expect((await pods.world.claim(pods.gateway, pod)).status).toBe(200);
  return pod;
}

function seedNote(name: string, text: string, more: object = {}): void {
  pods.world.api.seed(AgentMemories, {
    apiVersion: '',
    kind: '',
    metadata: { name, namespace: NAMESPACE },
    spec: { agent: 'helper', text, ...more },
  });
}

function setAgent(spec: object): void {
  pods.world.api.seed(Agents, {
    apiVersion: '',
    kind: '',
    metadata: { name: 'helper', namespace: NAMESPACE, uid: 'uid-agent' },
    spec: AgentSpec.parse({ name: 'Helper', ...spec }),
  });
}

describe('memory', () => {
  test('a note that one run saves is found by the next, and deleted by the one after', async () => {
    await pods.run('helper-1', { message: '/tool memory_save {"text": "The build takes 5 minutes."}' });
    const [note] = notes();
    expect(note).toMatchObject({
      metadata: {
        namespace: NAMESPACE,
        name: expect.stringMatching(/^helper-[0-9a-f]{20}$/),
        labels: { 'boxwright.dev/agent': 'helper' },
        annotations: { 'boxwright.dev/requested-by': 'run:helper-1' },
        ownerReferences: [expect.objectContaining({ kind: 'Agent', name: 'helper', uid: 'uid-agent' })],
      },
      spec: { agent: 'helper', text: 'The build takes 5 minutes.', run: 'helper-1' },
    });
    expect(note?.spec.untrusted).toBeUndefined();
    const id = note?.metadata.name ?? '';

    await pods.run('helper-2', { message: '/tool memory_search {"query": "BUILD minutes"}' });
    expect(await pods.calls('helper-2')).toEqual([
      {
        tool: 'memory_search',
        isError: false,
        result: { found: 1, notes: [{ id, text: 'The build takes 5 minutes.', updatedAt: expect.any(String) }] },
      },
    ]);

    await pods.run('helper-3', { message: `/tool memory_delete {"id": "${id}"}\n/tool memory_search {}` });
    expect((await pods.calls('helper-3')).map(({ result }) => result)).toEqual([
      { deleted: id },
      { found: 0, notes: [] },
    ]);
    expect(notes()).toEqual([]);
  });

  test('a run finds what it has just saved, and a repeated call saves nothing twice', async () => {
    const pod = await claimed('helper-1');
    const first = await tool(pod, 1, 'memory_save', { text: 'one' });
    expect(await tool(pod, 1, 'memory_save', { text: 'one' })).toEqual(first);
    expect(notes()).toHaveLength(1);
    expect(await tool(pod, 2, 'memory_search', {})).toMatchObject({ result: { found: 1 } });
    // Its answer is kept for a runner that did not hear it.
    await tool(pod, 1, 'memory_save', { text: 'late' });
    expect(notes()).toHaveLength(1);
    // Another gateway pod knows no answers; the name is the same.
    const other = pods.world.startGateway();
    pods.world.removeGatewayPod('gateway-1');
    const reply = await pods.world.post(
      other,
      runPath(pod.namespace, pod.run, 'tool'),
      { epoch: 1, call: 1, tool: 'memory_save', input: { text: 'one' } },
      pod.token,
    );
    expect(reply.json).toEqual({ result: first['result'], isError: false });
    expect(notes()).toHaveLength(1);
  });

  test('the newest notes stand in the claim, marked when they came from outside', async () => {
    seedNote('helper-a', 'old', { updatedAt: '2026-01-01T00:00:00Z' });
    seedNote('helper-b', 'new', { updatedAt: '2026-01-02T00:00:00Z', untrusted: true });
    seedNote('other-c', 'not mine', { agent: 'other' });
    const { json } = await pods.world.claim(pods.gateway, pods.world.addRun('helper-1'));
    expect(json['abilities']).toMatchObject({
      untrusted: false,
      memories: [
        { id: 'helper-b', text: 'new', untrusted: true },
        { id: 'helper-a', text: 'old', untrusted: false },
      ],
    });
  });

  test('what a webhook run saves is marked, in its whole session, and it cannot delete trusted notes', async () => {
    seedNote('helper-a', 'trusted');
    await pods.run('helper-1', { ...HOOK, sessionId: 's-1', message: '/say hi' });
    expect(pods.world.run('helper-1').status?.untrusted).toBe(true);
    const message = '/tool memory_save {"text": "x"}\n/tool memory_delete {"id": "helper-a"}';
    await pods.run('helper-2', { sessionId: 's-1', message }, 'helper-1');
    expect(pods.world.run('helper-2').status?.untrusted).toBe(true);
    expect((await pods.calls('helper-2')).map(({ isError }) => isError)).toEqual([false, true]);
    expect(notes().map(({ metadata, spec }) => [metadata.name === 'helper-a', spec.untrusted])).toEqual([
      [true, undefined],
      [false, true],
    ]);
  });

  test('the limits are 2 KiB a note and 500 notes an agent', async () => {
    for (let i = 0; i < 499; i++) seedNote(`helper-${i}`, 'x');
    seedNote('other-0', 'x', { agent: 'other' });
    const pod = await claimed('helper-1');
    expect(await tool(pod, 1, 'memory_save', { text: 'é'.repeat(1025) })).toMatchObject({
      status: 200,
      isError: true,
      result: { error: 'the note has 2050 bytes; at most 2048 are possible: shorten it' },
    });
    expect(await tool(pod, 2, 'memory_save', { text: 'é'.repeat(1024) })).toMatchObject({ isError: false });
    expect(await tool(pod, 3, 'memory_save', { text: 'x' })).toMatchObject({
      isError: true,
      result: { error: 'you have 500 notes, which is the limit: delete some that are not needed' },
    });
    expect(notes()).toHaveLength(501);
  });

  test("another agent's note cannot be deleted", async () => {
    seedNote('other-0', 'x', { agent: 'other' });
    expect(await tool(await claimed('helper-1'), 1, 'memory_delete', { id: 'other-0' })).toMatchObject({
      isError: true,
      result: { error: 'there is no note other-0: memory_search shows the ids' },
    });
    expect(notes()).toHaveLength(1);
  });
});

describe('what the gateway refuses, whatever the runner offers', () => {
  test.each([
    ['a tool of a family that is off', 'memory_save', { text: 'x' }, /it may be switched off/],
    ['a tool that is not there', 'toString', {}, /the tool toString is not there/],
    ['a skill of an agent without skills', 'read_skill', { slug: 'x' }, /it may be switched off/],
  ])('%s', async (_what, name, input, error) => {
    setAgent({ tools: { memory: false } });
    const answer = await tool(await claimed('helper-1'), 1, name, input);
    expect(answer).toMatchObject({ status: 200, isError: true, result: { error: expect.stringMatching(error) } });
    expect(notes()).toEqual([]);
  });

  test('an input that does not fit is named', async () => {
    expect(await tool(await claimed('helper-1'), 1, 'memory_save', { text: '' })).toMatchObject({
      isError: true,
      result: { error: expect.stringMatching(/^the input does not fit the tool memory_save: text: /) },
    });
  });

  test('a run that is not claimed, has ended, or is that of another token', async () => {
    const fresh = pods.world.addRun('helper-1');
    expect(await tool(fresh, 1, 'memory_save', { text: 'x' })).toMatchObject({ status: 409 });
    const pod = await claimed('helper-2');
    const url = runPath(NAMESPACE, 'helper-1', 'tool');
    expect((await pods.world.post(pods.gateway, url, {}, pod.token)).status).toBe(403);
    pods.world.changeRun('helper-2', { status: { phase: 'cancelled' } });
    expect(await tool(pod, 1, 'memory_save', { text: 'x' })).toMatchObject({ status: 410 });
    expect(notes()).toEqual([]);
  });

  test('an agent that was deleted and made again under the same name', async () => {
    const pod = await claimed('helper-1', { agentUid: 'uid-agent' });
    pods.world.api.seed(Agents, {
      apiVersion: '',
      kind: '',
      metadata: { name: 'helper', namespace: NAMESPACE, uid: 'uid-another' },
      spec: AgentSpec.parse({ name: 'Helper' }),
    });
    expect(await tool(pod, 1, 'memory_save', { text: 'x' })).toMatchObject({ isError: true });
    expect(notes()).toEqual([]);
  });
});

describe('skills', () => {
  beforeEach(() => {
    const files = packedFiles(
      new Map([
        ['check.sh', Buffer.from('echo ok')],
        ['long.txt', Buffer.from('😀'.repeat(20_001))],
      ]),
    );
    pods.world.api.seed(AgentSkills, {
      apiVersion: '',
      kind: '',
      metadata: { name: 'helper.review', namespace: NAMESPACE },
      spec: { agent: 'helper', name: 'Review', description: 'Reviews\n code.', body: '# How to review', ...files },
    });
  });

  test('the index is in the claim; instructions and files are read on demand', async () => {
    const message = ['/tool read_skill {"slug": "review"}', '/tool read_skill {"slug": "review", "path": "check.sh"}'];
    await pods.run('helper-1', { message: message.join('\n') });
    expect((await pods.calls('helper-1')).map(({ result }) => result)).toEqual([
      {
        slug: 'review',
        name: 'Review',
        content: '# How to review',
        nextOffset: null,
        files: [
          { path: 'check.sh', bytes: 7 },
          { path: 'long.txt', bytes: 80_004 },
        ],
        directory: '/workspace/.skills/review',
      },
      { slug: 'review', path: 'check.sh', encoding: 'utf8', content: 'echo ok', nextOffset: null },
    ]);
    const { json } = await pods.world.claim(pods.gateway, pods.world.addRun('helper-2'));
    expect(json['abilities']).toMatchObject({
      tools: expect.arrayContaining(['read_skill']),
      skills: [{ slug: 'review', description: 'Reviews\n code.' }],
    });
  });

  test('long files come in pages that hold whole characters', async () => {
    const pod = await claimed('helper-1');
    const page = async (call: number, offset: number) =>
      (await tool(pod, call, 'read_skill', { slug: 'review', path: 'long.txt', offset })) as unknown as {
        result: { content: string; nextOffset: number | null };
      };
    const first = (await page(1, 0)).result;
    const second = (await page(2, first.nextOffset ?? 0)).result;
    expect(first.content.isWellFormed()).toBe(true);
    expect(first.content + second.content).toBe('😀'.repeat(20_001));
    expect(second.nextOffset).toBeNull();
  });

  test.each([
    [{ slug: 'nope' }, 'there is no skill nope; you have: review'],
    [{ slug: '../x' }, 'there is no skill ../x; you have: review'],
    [{ slug: 'review', path: 'no.md' }, 'the skill has no file no.md; read_skill without path lists its files'],
  ])('%j is refused', async (input, error) => {
    expect(await tool(await claimed('helper-1'), 1, 'read_skill', input)).toMatchObject({
      isError: true,
      result: { error },
    });
  });
});
