/** Tools that start a run respect the stated budget of waiting and working runs, with an error that says so. */
import { McpHarness } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
const MIB = 1_048_576;

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
  harness.seedTrigger('acme-box', 'greeter', 'hook');
  harness.seedSchedule('acme-box', 'greeter', 'daily');
});

/** One live run with an input of this size: the budget counts bytes as well. */
function fill(agent: string, mib: number, box = 'acme-box'): void {
  const input = { encoding: 'gzip', bytes: 1, sha256: 'x', data: 'x'.repeat(mib * MIB) };
  harness.seedRun(box, `${agent}-1`, { spec: { agent, message: undefined, input } });
  harness.api.clearRecords();
}

const CALLS: [string, object][] = [
  ['send_message', { agentId: AGENT, message: 'hi', waitSeconds: 0 }],
  ['test_trigger', { agentId: AGENT, slug: 'hook' }],
  ['run_schedule_now', { agentId: AGENT, slug: 'daily' }],
];

describe.each(CALLS)('%s', (tool, args) => {
  test.each([
    ['agent', 'greeter', 32, 0],
    ['box', 'other', 64, 0],
    ['installation', 'other', 4, 4],
  ])('beyond the budget of the %s starts nothing and says which limit', async (scope, agent, mib, fullBoxes) => {
    fill(agent, mib);
    for (let box = 0; box < fullBoxes; box++) fill('stranger', 64, `full-${box}`);
    const { isError, payload } = await harness.call(tool, args);
    expect([isError, payload]).toEqual([
      true,
      { error: `too many runs are waiting (limit of the ${scope}): try again when some have finished` },
    ]);
    expect(harness.api.writes).toEqual([]);
  });

  test('starts within the guarantee of its Box, however full the installation is', async () => {
    for (let box = 0; box < 5; box++) fill('stranger', 64, `full-${box}`);
    expect((await harness.call(tool, args)).isError).toBe(false);
  });

  test('counts runs that the cache does not show yet', async () => {
    fill('greeter', 31);
    const unseen = { box: 'acme-box', agent: 'greeter', namespace: 'bw-acme-box', name: 'greeter-2', inputBytes: MIB };
    const place = harness.liveRuns.reserve(unseen);
    expect((await harness.call(tool, args)).isError).toBe(true);
    place.settle('absent');
    expect((await harness.call(tool, args)).isError).toBe(false);
  });

  test('has a place before its create', async () => {
    const create = harness.api.create.bind(harness.api);
    const counted: number[] = [];
    harness.api.create = (...given) => {
      counted.push(harness.liveRuns.size);
      return create(...given);
    };
    expect((await harness.call(tool, args)).isError).toBe(false);
    expect([counted, harness.liveRuns.size]).toEqual([[1], 0]);
  });

  test('starts a run again when there is room', async () => {
    fill('greeter', 32);
    harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'done' } });
    harness.api.clearRecords();
    expect((await harness.call(tool, args)).isError).toBe(false);
    expect(harness.requests()).toContain('create agentruns');
  });
});
