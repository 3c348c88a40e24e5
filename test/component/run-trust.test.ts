/** What a Box lets runs from outside do that outlives them, kept by the gateway at every call. */
import { AgentMemories } from '../../src/api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { runPath } from '../../src/protocol/run.js';
import { GatewayWorld, NAMESPACE, type GatewayPod, type RunPod } from '../builders/gateway-world.js';

const HOOK = { trigger: { origin: 'trigger' as const, name: 'hook', uid: 'u' } };
const PERSISTING = {
  memory_save: { text: 'Remember.' },
  memory_delete: { id: 'helper-1' },
  edit_soul: { soul: 'Obey me.' },
  install_skill: { slug: 'review', name: 'Review', description: 'Reviews.', body: '# How' },
  install_mcp: { name: 'lint', transport: 'stdio', command: 'lint-mcp' },
  call_agent: { handle: 'writer', message: 'Go.', wait: false },
};
type Tool = keyof typeof PERSISTING;

let world: GatewayWorld;
let gateway: GatewayPod;

function start(untrusted: Record<string, unknown> | undefined): void {
  world = new GatewayWorld({ box: untrusted === undefined ? {} : { untrusted } });
  world.api.seed(Agents, {
    apiVersion: '',
    kind: '',
    metadata: { name: 'writer', namespace: NAMESPACE, uid: 'uid-writer' },
    spec: AgentSpec.parse({ name: 'Writer' }),
    status: { active: true },
  });
  gateway = world.startGateway();
}

/** The tools that the claim names, and what a call of each that would persist something came to. */
async function tried(name: string, spec: object) {
  const pod: RunPod = world.addRun(name, spec);
  const { json } = await world.claim(gateway, pod);
  const { tools, approvals } = json['abilities'] as { tools: string[]; approvals: { required: string[] } };
  const answers: Partial<Record<Tool, string>> = {};
  for (const [index, [tool, input]] of Object.entries(PERSISTING).entries()) {
    const body = { epoch: 1, call: index + 1, tool, input };
    const reply = await world.post(gateway, runPath(NAMESPACE, name, 'tool'), body, pod.token);
    const { isError, result } = reply.json as { isError: boolean; result: { error?: string } };
    answers[tool as Tool] = isError ? (result.error ?? '') : 'done';
  }
  return {
    offered: Object.keys(PERSISTING).filter((tool) => tools.includes(tool)),
    required: approvals.required,
    answers,
  };
}

const ALL = Object.keys(PERSISTING);
const NOT_THERE = expect.stringContaining('is not there');
const APPROVAL = expect.stringContaining('needs the approval of a person');

test('by default notes are written and marked, changes of the agent are proposals, agents of the Box are called', async () => {
  start(undefined);
  expect(await tried('helper-9', HOOK)).toEqual({
    offered: ALL,
    required: ['self'],
    answers: {
      memory_save: 'done',
      memory_delete: 'there is no note helper-1: memory_search shows the ids',
      edit_soul: APPROVAL,
      install_skill: APPROVAL,
      install_mcp: APPROVAL,
      call_agent: 'done',
    },
  });
  expect(world.api.all(AgentMemories).map(({ spec }) => spec.untrusted)).toEqual([true]);
});

test('what is refused is neither offered nor done', async () => {
  start({ memory: 'refuse', selfImprovement: 'refuse', callAgents: 'refuse' });
  const { offered, required, answers } = await tried('helper-9', HOOK);
  expect([offered, required]).toEqual([[], []]);
  expect(answers).toEqual(Object.fromEntries(ALL.map((tool) => [tool, NOT_THERE])));
  expect(world.api.all(AgentMemories)).toEqual([]);
  expect(world.api.all(AgentRuns)).toHaveLength(1);
  expect(world.writes('agents')).toBe(0);
});

test('what is allowed is done at once', async () => {
  start({ selfImprovement: 'allow' });
  const { required, answers } = await tried('helper-9', HOOK);
  expect(required).toEqual([]);
  expect(answers).toMatchObject({ edit_soul: 'done', install_skill: 'done', install_mcp: 'done' });
});

test('runs that a person started are not meant', async () => {
  start({ memory: 'refuse', selfImprovement: 'refuse', callAgents: 'refuse' });
  const { offered, answers } = await tried('helper-9', {});
  expect(offered).toEqual(ALL);
  expect(answers).toMatchObject({ memory_save: 'done', edit_soul: 'done', install_skill: 'done', call_agent: 'done' });
});

test('the runs that it calls are', async () => {
  start({ memory: 'refuse' });
  const parent = { name: 'p', uid: 'p', depth: 1, agents: ['boss'], waits: true, untrusted: true };
  expect((await tried('helper-9', { parent })).answers).toMatchObject({ memory_save: NOT_THERE });
});

test('a setting that changes counts from the next call on', async () => {
  start(undefined);
  const pod = world.addRun('helper-9', HOOK);
  await world.claim(gateway, pod);
  const box = world.api.peek(Boxes, 'lab');
  if (box === undefined) throw new Error('there is no Box');
  world.api.seed(Boxes, { ...box, spec: { ...box.spec, untrusted: { ...box.spec.untrusted, memory: 'refuse' } } });
  const body = { epoch: 1, call: 1, tool: 'memory_save', input: { text: 'x' } };
  expect(await world.post(gateway, runPath(NAMESPACE, 'helper-9', 'tool'), body, pod.token)).toMatchObject({
    json: { isError: true },
  });
});
