import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { assistantMessage, userMessage } from '../../../test/builders/run-events.js';
import { apiError } from '../../../test/builders/recording-api.js';
import { AgentTools, Agents } from '../../api/v1alpha1/agent.js';
import { KubeApiError, KubeConnectionError } from '../../kube/errors.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

function compressed(message: string) {
  return {
    encoding: 'gzip' as const,
    bytes: Buffer.byteLength(message),
    sha256: createHash('sha256').update(message).digest('hex'),
    data: gzipSync(message).toString('base64'),
  };
}

test('a run with a model of its own gets that one, and the provider of its agent where it names none', async () => {
  const fallbackModels = ['claude-sonnet-5'];
  const world = new GatewayWorld({ agent: { provider: 'anthropic', model: 'claude-haiku-4-5', fallbackModels } });
  const gateway = world.startGateway();
  const asked = [{ name: 'claude-opus-5' }, { provider: 'openai' as const, name: 'gpt-5' }];
  for (const [at, model] of asked.entries()) {
    const { provider = 'anthropic', name } = model;
    const reply = await world.claim(gateway, world.addRun(`helper-${at}`, { model }));
    expect(reply.json).toMatchObject({ model: { provider, model: name } });
    expect(reply.json).not.toHaveProperty('model.fallbacks');
    expect(world.run(`helper-${at}`).status).toMatchObject({ provider, model: name });
  }
});

test('the claim answers with everything the run needs, writes one status and reads nothing', async () => {
  const world = new GatewayWorld({
    agent: { temperature: 0.2, reasoning: 'low', maxOutputTokens: 4000, stepLimit: 20, handle: 'helpy' },
  });
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', {
    message: 'do it',
    limits: { stepLimit: 7, executionSeconds: 60 },
    trigger: { origin: 'trigger', name: 'deploy' },
  });

  const reply = await world.claim(gateway, pod);

  expect(reply.status).toBe(200);
  expect(reply.json).toEqual({
    protocol: 1,
    epoch: 1,
    gatewayAddress: '10.0.0.1:8443',
    run: { namespace: NAMESPACE, name: 'helper-1', sessionId: 's-helper-1', origin: 'trigger:deploy' },
    agent: {
      handle: 'helpy',
      name: 'Helper',
      description: '',
      soul: 'Be brief.',
      tools: { shell: true, files: true, web: true, browser: true, memory: true, agents: true },
    },
    model: {
      provider: 'boxwright',
      model: 'scripted',
      basePath: '/gateway/boxwright/v1',
      temperature: 0.2,
      reasoning: 'low',
      maxOutputTokens: 4000,
    },
    message: 'do it',
    history: [],
    abilities: {
      tools: [
        'memory_search',
        'memory_save',
        'memory_delete',
        'list_agents',
        'call_agent',
        'await_agents',
        'publish_file',
        'edit_soul',
        'install_skill',
        'install_mcp',
      ],
      untrusted: true,
      parallel: true,
      subtasks: true,
      memories: [],
      skills: [],
      approvals: { required: ['self'], always: [] },
    },
    mcpServers: [],
    warnings: [],
    lacks: [],
    limits: { stepLimit: 7, executionSeconds: 60 },
    intervals: { heartbeatSeconds: 4, reportSeconds: 5 },
  });
  expect(world.run('helper-1').status).toMatchObject({
    phase: 'running',
    reason: 'Working',
    provider: 'boxwright',
    model: 'scripted',
    claim: {
      podUid: 'uid-pod-helper-1-a',
      podName: 'helper-1-a',
      at: '2026-01-01T00:00:00.000Z',
      gatewayPod: 'gateway-1',
      gatewayUid: 'uid-gateway-1',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    },
  });
  expect(world.api.writes.map(({ resource }) => resource)).toEqual(['agentruns/status']);
  expect(world.api.reads).toEqual([]);
});

test.each([
  ['the image has none', true, false, true],
  ['the image has one', true, true, undefined],
  ['an older runner does not say', true, undefined, undefined],
  ['the agent wants none', false, false, undefined],
])('a claim notes that a browser is missing: %s', async (_name, browser, hasBrowser, noted) => {
  const world = new GatewayWorld({ agent: { tools: AgentTools.parse({ browser }) } });
  const pod = world.addRun('helper-1', { message: 'x' });
  await world.claim(world.startGateway(), pod, hasBrowser === undefined ? {} : { hasBrowser });
  expect(world.run('helper-1').status?.claim?.withoutBrowser).toBe(noted);
});

test('a repeated claim of the same pod gets the same answer and writes nothing', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');

  const first = await world.claim(gateway, pod);
  const again = await world.claim(gateway, pod);

  expect(again).toEqual(first);
  expect(world.writes('agentruns/status')).toBe(1);
});

test('a claim whose answer was lost after the write is answered when it comes again', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  world.api.failNext({
    verb: 'patch',
    resource: 'agentruns/status',
    error: new KubeConnectionError('cut', 'network'),
    afterWrite: true,
  });

  const lost = await world.claim(gateway, pod);
  const again = await world.claim(gateway, pod);

  expect(lost).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
  expect(again.status).toBe(200);
  expect(again.json).toMatchObject({ epoch: 1 });
});

test('a second pod of the same Job gets 409', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  const second = world.addPod('helper-1', 'b');
  await world.claim(gateway, pod);

  const reply = await world.claim(gateway, second);

  expect(reply).toMatchObject({ status: 409, json: { error: 'another pod holds the run' } });
  expect(world.writes('agentruns/status')).toBe(1);
});

test('of two pods that claim at two gateways at once, one wins and the other gets 409', async () => {
  const world = new GatewayWorld();
  const [one, two] = [world.startGateway(), world.startGateway()];
  const pod = world.addRun('helper-1');
  const second = world.addPod('helper-1', 'b');

  const replies = await Promise.all([world.claim(one, pod), world.claim(two, second)]);

  expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409]);
  expect(world.run('helper-1').status?.claim?.epoch).toBe(1);
});

test('of one pod whose claim reaches two gateways at once, one serves and the other names it', async () => {
  const world = new GatewayWorld();
  const [one, two] = [world.startGateway(), world.startGateway()];
  const pod = world.addRun('helper-1');

  const replies = await Promise.all([world.claim(one, pod), world.claim(two, pod)]);

  const served = replies.find(({ status }) => status === 200);
  const sent = replies.find(({ status }) => status === 421);
  expect(sent?.json['gatewayAddress']).toBe(served?.json['gatewayAddress']);
  expect(one.gateway.served.size + two.gateway.served.size).toBe(1);
});

test('a claim that loses against another writer decides again on the newer run', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  world.api.failNext({ verb: 'patch', resource: 'agentruns/status', error: apiError(409, 'Conflict') });

  expect((await world.claim(gateway, pod)).status).toBe(200);
  expect(world.api.reads.map(({ resource }) => resource)).toEqual(['agentruns']);
});

test.each([
  ['ended', { status: { phase: 'done' as const, reason: 'Completed' } }],
  ['cancelled before its start', { spec: { cancelRequested: true } }],
])('a run that is %s answers 410 and stays as it is', async (_name, change) => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  world.changeRun('helper-1', change);

  expect((await world.claim(gateway, pod)).status).toBe(410);
  expect(world.api.writes).toEqual([]);
});

test('a compressed message is read once from the API server and checked', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const message = `${'long '.repeat(2000)}ä`;
  const pod = world.addRun('helper-1', { input: compressed(message) });

  const reply = await world.claim(gateway, pod);

  expect(reply.json['message']).toBe(message);
  expect(world.api.reads.map(({ resource }) => resource)).toEqual(['agentruns']);
});

test.each([
  ['no data', { ...compressed('x'), data: undefined }, 'the data of spec.input is gone'],
  ['another digest', { ...compressed('x'), sha256: '00' }, 'does not match spec.input.sha256'],
  ['another size', { ...compressed('x'), bytes: 9 }, 'another size than spec.input.bytes'],
  ['no gzip', { ...compressed('x'), data: 'bm90IGd6aXA=' }, 'is not gzip of at most 128 KiB'],
  ['a bomb', compressed('0'.repeat(200_000)), 'is not gzip of at most 128 KiB'],
])('a damaged input (%s) ends the run as InvalidRun', async (_name, input, text) => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', { input });

  expect((await world.claim(gateway, pod)).status).toBe(410);
  expect(world.run('helper-1').status).toMatchObject({ phase: 'error', reason: 'InvalidRun', usageFinal: true });
  expect(world.run('helper-1').status?.message).toContain(text);
  expect(world.writes('agentruns/status')).toBe(1);
});

test.each([
  [
    'AgentNotFound',
    {},
    'There is no Agent nobody in namespace bw-lab. Check spec.agent; create the agent, then a new run.',
  ],
  ['AgentDeleted', { agentUid: 'uid-old' }, 'Agent nobody was deleted before the run started.'],
])('a run without its agent ends as %s', async (reason, spec, message) => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('nobody-1', { agent: 'nobody', ...spec });

  expect((await world.claim(gateway, pod)).status).toBe(410);
  expect(world.run('nobody-1').status).toMatchObject({ phase: 'error', reason, message });
});

test('an agent of the same name that was made again does not execute the run', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', { agentUid: 'uid-of-the-first' });

  expect((await world.claim(gateway, pod)).status).toBe(410);
  expect(world.run('helper-1').status).toMatchObject({ phase: 'error', reason: 'AgentDeleted' });
});

test('a run that is claimed again after its agent went ends, and keeps what it used', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', { agentUid: 'uid-agent' });
  expect((await world.claim(gateway, pod)).status).toBe(200);
  await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });
  await world.api.delete(Agents, { namespace: NAMESPACE, name: 'helper' });

  expect((await world.claim(gateway, pod)).status).toBe(410);
  await world.clock.advance(1_000);

  expect(world.run('helper-1').status).toMatchObject({ reason: 'AgentDeleted', usage: { steps: 1 }, usageFinal: true });
});

test('a session continues: the claim carries the messages of the earlier runs, oldest first', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  for (const [name, previous] of [
    ['helper-1', undefined],
    ['helper-2', 'helper-1'],
  ] as const) {
    const pod = world.addRun(name, { sessionId: 's-1', message: `message of ${name}` }, previous);
    await world.claim(gateway, pod);
    const events = [userMessage(1, `message of ${name}`), assistantMessage(2, `answer of ${name}`)];
    const outcome = { reason: 'Completed', message: '', output: `answer of ${name}` };
    await world.call(gateway, pod, 'finish', { epoch: 1, events, outcome });
    await world.clock.advance(1000);
  }
  const pod = world.addRun('helper-3', { sessionId: 's-1' }, 'helper-2');

  const reply = await world.claim(gateway, pod);

  expect(reply.json['history']).toEqual([
    { role: 'user', text: 'message of helper-1' },
    { role: 'assistant', text: 'answer of helper-1' },
    { role: 'user', text: 'message of helper-2' },
    { role: 'assistant', text: 'answer of helper-2' },
  ]);
});

test('a claim for another pod than the one of the token is refused', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');

  const reply = await world.call(gateway, pod, 'claim', { protocol: 1, podUid: 'uid-other' });

  expect(reply.status).toBe(403);
  expect(world.api.writes).toEqual([]);
});

test('a run whose claim the API server finds invalid ends at once, and says why', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', { message: 'do it' });
  const causes = [{ field: 'status.claim.podName', reason: 'FieldValueTooLong' }];
  const error = new KubeApiError({ status: 422, reason: 'Invalid', message: 'invalid', details: { causes } });
  world.api.failNext({ verb: 'patch', resource: 'agentruns/status', error });
  expect(await world.claim(gateway, pod)).toMatchObject({ status: 410 });
  expect(world.run('helper-1').status).toMatchObject({
    phase: 'error',
    reason: 'InvalidRun',
    message: expect.stringContaining('claim') as string,
  });
});

test('an outputSchema goes to the runner, and the status says that there is one', async () => {
  const outputSchema = { type: 'object', required: ['total'] };
  const world = new GatewayWorld({ agent: { outputSchema } });
  const claimed = await world.claim(world.startGateway(), world.addRun('helper-1'));
  expect(claimed.json['outputSchema']).toBe(JSON.stringify(outputSchema));
  expect(world.run('helper-1').status?.structured).toBe(true);
});

test('of an outputSchema that is too large the runner is told why, and nobody keeps it', async () => {
  const world = new GatewayWorld({ agent: { outputSchema: { title: 'x'.repeat(1_000_000) } } });
  const claimed = await world.claim(world.startGateway(), world.addRun('helper-1'));
  expect(claimed.json['outputSchema']).toMatch(/^"it has \d+ bytes; at most 16384 are possible"$/);
});
