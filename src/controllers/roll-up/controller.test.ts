import { FINALIZER_ROLL_UP } from '../../api/labels.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import {
  NAMESPACE,
  makeAgent,
  makeBox,
  makeRun,
  makeTrigger,
  makeWorkspace,
} from '../../../test/builders/run-objects.js';
import { PartDriver } from '../../../test/builders/run-world.js';
import { createTotalsController } from './controller.js';
import { controllerTriggerInformer } from '../../projections/agent-trigger.js';
import { controllerAgentInformer } from '../../projections/agent.js';
import { controllerBoxInformer } from '../../projections/box.js';
import { controllerWorkspaceInformer } from '../../projections/workspace.js';
import { controllerRunInformer } from '../../projections/agent-run.js';

function setUp() {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const driver = new PartDriver(
    createTotalsController({
      api,
      clock,
      releaseNamespace: 'boxwright',
      caches: {
        runs: api.informer(controllerRunInformer),
        agents: api.informer(controllerAgentInformer),
        triggers: api.informer(controllerTriggerInformer),
        boxes: api.informer(controllerBoxInformer),
        workspaces: api.informer(controllerWorkspaceInformer),
      },
    }),
    clock,
  );
  api.seed(Workspaces, makeWorkspace());
  api.seed(Boxes, makeBox());
  api.seed(Agents, makeAgent());
  api.seed(AgentTriggers, makeTrigger());
  const pass = async (seconds: number) => {
    await clock.advance(seconds * 1000);
    while (await driver.runDue());
  };
  const writes = () => api.writes.splice(0).map(({ resource, key, body }) => [`${resource} ${key}`, statusOf(body)]);
  return { api, pass, writes };
}

const statusOf = (body: unknown) => (body as { status: unknown }).status;
const fired = { trigger: { origin: 'trigger', name: 'push', uid: 'uid-trigger' } } as const;
const used = {
  usage: { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.001000' },
} as const;

describe('totals for kubectl', () => {
  it('show zeros for a new agent and trigger, and no cost and no time', async () => {
    const { pass, writes } = setUp();
    await pass(0);
    await pass(5);
    expect(writes()).toEqual([
      [`agents/status ${NAMESPACE}/ada`, { runs: 0, tokens: 0 }],
      [`agenttriggers/status ${NAMESPACE}/ada.push`, { fireCount: 0 }],
    ]);
  });

  it('are written once in 5 s, however many runs come', async () => {
    const { api, pass, writes } = setUp();
    await pass(0);
    await pass(5);
    writes();
    for (let i = 0; i < 100; i++) api.seed(AgentRuns, makeRun(`ada-${i}`, { spec: fired, status: used }));
    await pass(0);
    await pass(4);
    expect(writes()).toEqual([]);
    await pass(1);
    expect(writes()).toEqual([
      [
        `agents/status ${NAMESPACE}/ada`,
        { runs: 100, tokens: 1500, costUsd: '0.100000', lastRunAt: '2026-01-01T00:00:00.000Z' },
      ],
      [`agenttriggers/status ${NAMESPACE}/ada.push`, { fireCount: 100, lastFiredAt: '2026-01-01T00:00:00.000Z' }],
    ]);
    await pass(60);
    expect(writes()).toEqual([]);
  });

  it('count neither runs of a namesake that was deleted nor runs that were refused', async () => {
    const { api, pass, writes } = setUp();
    api.seed(AgentRuns, makeRun('ada-1', { spec: { agentUid: 'uid-of-the-old-one' } }));
    api.seed(AgentRuns, makeRun('ada-2', { metadata: { finalizers: [] } }));
    await pass(0);
    await pass(5);
    expect(writes()[0]).toEqual([`agents/status ${NAMESPACE}/ada`, { runs: 0, tokens: 0 }]);
  });
});

describe('UIDs of removed runs', () => {
  it('leave folding when our finalizer is gone, however long others hold the run', async () => {
    const { api, pass, writes } = setUp();
    const seedHeld = (name: string, finalizers: string[]) =>
      api.seed(AgentRuns, makeRun(name, { metadata: { finalizers, deletionTimestamp: '2026-01-01T00:10:00Z' } }));
    const released = seedHeld('ada-1', ['x.example/y']);
    const counted = seedHeld('ada-2', ['x.example/y', FINALIZER_ROLL_UP]);
    await pass(0);
    await pass(5);
    const folding = [released.metadata.uid, counted.metadata.uid];
    await api.patch(Workspaces, { name: 'acme' }, { status: { folding } }, { type: 'merge', subresource: 'status' });
    writes();
    for (let i = 0; i < 10; i++) await pass(5);
    expect(writes()).toEqual([['workspaces/status acme', { folding: [counted.metadata.uid] }]]);
  });

  it('leave folding when the run is gone, and stay while it is visible', async () => {
    const { api, pass, writes } = setUp();
    const still = api.seed(AgentRuns, makeRun('ada-1'));
    await pass(0);
    await pass(5);
    writes();
    const folding = [still.metadata.uid, 'uid-of-a-gone-run'];
    await api.patch(Boxes, { name: 'dev' }, { status: { folding } }, { type: 'merge', subresource: 'status' });
    writes();
    await pass(0);
    for (let i = 0; i < 10; i++) await pass(5);
    expect(writes()).toEqual([['boxes/status dev', { folding: [still.metadata.uid] }]]);
    api.vanish(AgentRuns, `${NAMESPACE}/ada-1`);
    for (let i = 0; i < 10; i++) await pass(5);
    expect(writes()).toContainEqual(['boxes/status dev', { folding: [] }]);
    api.clearRecords();
    for (let i = 0; i < 10; i++) await pass(5);
    expect(api.reads).toEqual([]);
    expect(writes()).toEqual([]);
  });
});
