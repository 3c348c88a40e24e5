/** A burst in one Box and a run in another, on a node that is full: the scheduler knows pods and no Boxes. */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { isTerminal } from '../../src/run/status.js';
import { PLACING_BY_WEIGHT } from '../../src/controllers/agent-run/admission/limits-and-fairness.js';
import { eventually } from '../builders/api-server.js';
import { FakeNode } from '../builders/fake-node.js';
import { Installation } from '../builders/installation.js';

const BURST = 30;
const PLACES = 3;

let installation: Installation;
let node: FakeNode;

beforeAll(async () => {
  installation = await Installation.start();
  const { server, gatewayPort } = installation;
  node = new FakeNode({ server, gatewayPort, places: PLACES });
  await node.start();
  const spec = { maxRunning: 100, maxRunningPerAgent: 100 };
  for (const name of ['burst', 'single']) await installation.createBox({ name, agents: ['ada'], spec });
}, 1_200_000);

afterAll(async () => {
  await node.stop();
  await installation.stop();
});

test('the run of another Box waits for few pods of the burst', async () => {
  const create = (box: string, name: string) =>
    installation.create(AgentRuns, { namespace: `bw-${box}`, name }, { agent: 'ada', message: '/say done' });
  node.hold();
  for (let i = 0; i < BURST; i++) await create('burst', `burst-${i}`);
  await eventually(() => node.waiting > 0, 'the node is not full');
  await create('single', 'single');
  await eventually(() => node.started.includes('single'), 'the run of the other Box has no Job');
  node.release();
  await installation.waitFor(AgentRuns, { namespace: 'bw-single', name: 'single' }, isTerminal);
  expect(node.placed.indexOf('single')).toBeLessThanOrEqual(PLACES + PLACING_BY_WEIGHT);
  await eventually(() => node.executions.size === BURST + 1, 'the burst does not end');
  expect([...node.executions.values()]).toEqual(Array.from({ length: BURST + 1 }, () => 1));
  await eventually(() => node.open === 0, 'Jobs that work, or ended without a TTL');
  expect([...installation.errors, ...node.errors]).toEqual([]);
});
