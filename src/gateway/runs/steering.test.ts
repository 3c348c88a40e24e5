import { gzipSync } from 'node:zlib';
import { createHash } from 'node:crypto';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent } from '../../protocol/run.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

const SESSION = { sessionId: 's-1' };
const OUTCOME = { reason: 'Completed', message: '', output: 'done' };

async function atWork() {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', SESSION);
  await world.claim(gateway, pod);
  world.api.clearRecords();
  /** A message to the session, as the API stores it. */
  const send = (name: string, spec: Partial<AgentRun['spec']> = {}) =>
    world.api.seed(AgentRuns, {
      apiVersion: '',
      kind: '',
      metadata: { name, namespace: NAMESPACE },
      spec: {
        agent: 'helper',
        ...SESSION,
        steer: true,
        ...(spec.input === undefined ? { message: name } : {}),
        ...spec,
      },
      status: { phase: 'running' },
    });
  const report = (events: readonly RunEvent[] = []) => world.call(gateway, pod, 'events', { epoch: 1, events });
  return { world, gateway, pod, send, report };
}

const took = (seq: number, run: string): RunEvent => {
  const message = { role: 'user' as const, text: run, steered: run };
  return { type: 'message', v: 1, seq, at: '2026-01-01T00:00:00.000Z', message };
};

test('the run at work is offered what people sent to its session, the oldest first, until it took it', async () => {
  const { world, send, report } = await atWork();
  send('helper-3', { createdAt: '2026-01-01T00:00:02.000Z' });
  send('helper-2', { createdAt: '2026-01-01T00:00:01.000Z' });
  send('helper-4', { steer: false });
  send('helper-5', { sessionId: 's-2' });
  send('helper-6', { cancelRequested: true });

  const offered = {
    steer: [
      { run: 'helper-2', text: 'helper-2' },
      { run: 'helper-3', text: 'helper-3' },
    ],
  };
  expect((await report()).json).toMatchObject(offered);
  expect((await report()).json).toMatchObject(offered);
  expect(world.api.writes).toEqual([]);

  expect((await report([took(1, 'helper-2')])).json).toMatchObject({ ack: 1, steer: [{ run: 'helper-3' }] });
  expect(world.run('helper-2').status).toMatchObject({
    phase: 'done',
    reason: 'Delivered',
    message: 'The message was given to run helper-1, which was at work.',
    usage: { steps: 0, totalTokens: 0 },
    usageFinal: true,
  });
  const before = world.api.writes.length;
  await report([took(1, 'helper-2')]);
  expect(world.api.writes).toHaveLength(before);
});

test('a message that the run did not take before its end waits for its turn', async () => {
  const { world, gateway, pod, send } = await atWork();
  send('helper-2');
  send('helper-3');

  await world.call(gateway, pod, 'finish', { epoch: 1, events: [took(1, 'helper-2')], outcome: OUTCOME });

  expect(world.run('helper-2').status?.reason).toBe('Delivered');
  expect(world.run('helper-3').status).toEqual({ phase: 'running' });
});

test('what was taken is done with before the run has ended: its session is not free before', async () => {
  const { world, gateway, pod, send } = await atWork();
  send('helper-2');

  await world.call(gateway, pod, 'finish', { epoch: 1, events: [took(1, 'helper-2')], outcome: OUTCOME });

  const written = world.api.writes.filter(({ resource }) => resource.startsWith('agentruns/')).map(({ key }) => key);
  expect(written).toEqual([`${NAMESPACE}/helper-2`, `${NAMESPACE}/helper-1`]);
});

test('a run cannot end others: only a message to its session that waits', async () => {
  const { world, send, report } = await atWork();
  world.addRun('helper-2', SESSION);
  send('helper-3', { steer: false });
  const working = world.addRun('helper-4', { ...SESSION, steer: true });
  world.changeRun('helper-4', { status: { ...world.run('helper-1').status } });

  const names = ['helper-2', 'helper-3', 'helper-4', 'nobody-5', 'helper-1'];
  expect(await report(names.map((name, index) => took(index + 1, name)))).toMatchObject({ status: 200 });

  for (const name of [...names.slice(0, 3), 'helper-1']) expect(world.run(name).status?.phase).toBe('running');
  expect(working.run).toBe('helper-4');
});

test('a run cannot end messages to other sessions', async () => {
  const { world, send, report } = await atWork();
  send('helper-2', { sessionId: 's-2' });
  send('other-3', { agent: 'other' });

  await report([took(1, 'helper-2'), took(2, 'other-3')]);

  expect(world.run('helper-2').status).toEqual({ phase: 'running' });
  expect(world.run('other-3').status).toEqual({ phase: 'running' });
});

test('a long message is read once', async () => {
  const { world, send, report } = await atWork();
  const text = 'x'.repeat(100_000);
  const bytes = Buffer.from(text);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const data = gzipSync(bytes).toString('base64');
  send('helper-2', { input: { encoding: 'gzip', bytes: bytes.length, sha256, data } });
  send('helper-3', { input: { encoding: 'gzip', bytes: 7, sha256, data } });

  for (let n = 0; n < 3; n++) expect((await report()).json['steer']).toEqual([{ run: 'helper-2', text }]);
  expect(world.api.reads.filter(({ key }) => key === `${NAMESPACE}/helper-2`)).toHaveLength(1);
});
