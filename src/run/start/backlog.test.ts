import { McpHarness } from '../../../test/builders/mcp-harness.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { BACKLOG_LIMITS, exceededBacklog } from './backlog-budget.js';
import { BacklogCounter, countLiveRuns } from './backlog.js';
import type { CountedRun } from './backlog.js';

test('live runs are counted by agent, Box and installation; an ended or removed one no more', () => {
  const harness = new McpHarness();
  harness.seedRun('acme-box', 'greeter-1', { spec: { message: 'é' } });
  const counts = countLiveRuns(harness.caches.AgentRun);
  harness.seedRun('acme-box', 'greeter-2', { spec: { message: 'abc' } });
  harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy', message: 'x' } });
  expect(counts.agent('acme-box', 'greeter')).toEqual({ runs: 2, bytes: 5 });
  expect(counts.box('rival-box')).toEqual({ runs: 1, bytes: 1 });
  expect(counts.installation()).toEqual({ runs: 3, bytes: 6 });
  harness.seedRun('acme-box', 'greeter-1', { spec: { message: 'é' }, status: { phase: 'done' } });
  harness.api.vanish(AgentRuns, 'bw-rival-box/spy-1');
  expect(counts.installation()).toEqual({ runs: 1, bytes: 3 });
  expect(counts.box('rival-box')).toEqual({ runs: 0, bytes: 0 });
});

test('finished runs have a maximum as well, a fifth above that of retention', () => {
  const harness = new McpHarness();
  const counts = countLiveRuns(harness.caches.AgentRun, 5);
  for (let i = 0; i < 5; i++) harness.seedRun('acme-box', `greeter-${i}`, { status: { phase: 'done' } });
  harness.seedRun('acme-box', 'greeter-5');
  expect(counts.isFinishedFull('acme-box')).toBe(false);
  harness.seedRun('acme-box', 'greeter-5', { status: { phase: 'error' } });
  expect(counts.isFinishedFull('acme-box')).toBe(true);
  harness.api.vanish(AgentRuns, 'bw-acme-box/greeter-0');
  expect(counts.isFinishedFull('acme-box')).toBe(false);
});

test('finished runs that somebody holds although they were deleted count as gone', async () => {
  const harness = new McpHarness();
  const counts = countLiveRuns(harness.caches.AgentRun, 5);
  const metadata = { finalizers: ['example.com/mine'] };
  for (let i = 0; i < 6; i++) harness.seedRun('acme-box', `greeter-${i}`, { metadata, status: { phase: 'done' } });
  expect(counts.isFinishedFull('acme-box')).toBe(true);
  await harness.api.delete(AgentRuns, { namespace: 'bw-acme-box', name: 'greeter-0' });
  expect(harness.api.peek(AgentRuns, 'bw-acme-box/greeter-0')).toBeDefined();
  expect(counts.isFinishedFull('acme-box')).toBe(false);
});

/** A source that shows so many runs of each Box. */
function runsOf(boxes: Record<string, { runs: number; terminal?: boolean; inputBytes?: number }>) {
  const values: CountedRun[] = Object.entries(boxes).flatMap(([box, { runs, terminal = false, inputBytes = 1 }]) =>
    Array.from({ length: runs }, (_, i) => {
      const namespace = box === '' ? 'elsewhere' : `bw-${box}`;
      return { namespace, name: `a-${i}`, box, agent: 'a', terminal, inputBytes };
    }),
  );
  return countLiveRuns({ values: () => values, onChange: () => () => undefined });
}

test('runs outside the namespaces of Boxes count nowhere', () => {
  const counts = runsOf({ '': { runs: 30_000 }, lab: { runs: 1 } });
  expect(counts.installation()).toEqual({ runs: 1, bytes: 1 });
  expect(counts.fullest('box')).toEqual({ runs: 1, bytes: 1 });
});

test('of one Box no more than its limit counts for all, however many runs it holds', () => {
  const counts = runsOf({ hog: { runs: 25_000, inputBytes: 20_000 }, lab: { runs: 2_000 } });
  expect(counts.installation()).toEqual({ runs: 12_000, bytes: BACKLOG_LIMITS.box.bytes + 2_000 });
  expect(exceededBacklog(counts, { box: 'hog', agent: 'a' })).toBe('box');
  expect(exceededBacklog(counts, { box: 'lab', agent: 'a' })).toBeUndefined();
});

test('adding and removing runs ends where it began, also above the limit of a Box', () => {
  const counter = new BacklogCounter();
  const run = { box: 'lab', agent: 'a', inputBytes: 10_000 };
  for (let i = 0; i < 12_000; i++) counter.add(run, 1);
  expect(counter.installation).toEqual(BACKLOG_LIMITS.box);
  for (let i = 0; i < 12_000; i++) counter.add(run, -1);
  expect(counter.installation).toEqual({ runs: 0, bytes: 0 });
});

test('however many Boxes fill the installation, one with less than its guarantee has room', () => {
  const hogs = Object.fromEntries([1, 2, 3].map((hog) => [`hog-${hog}`, { runs: 10_000 }]));
  const counts = runsOf({ ...hogs, small: { runs: 999 }, large: { runs: 1_000 } });
  expect(exceededBacklog(counts, { box: 'small', agent: 'b' })).toBeUndefined();
  expect(exceededBacklog(counts, { box: 'new', agent: 'a' })).toBeUndefined();
  expect(exceededBacklog(counts, { box: 'large', agent: 'b' })).toBe('installation');
});

test('finished runs of one Box turn away no other that has few', () => {
  const counts = runsOf({ hog: { runs: 60_000, terminal: true }, lab: { runs: 999, terminal: true } });
  expect(exceededBacklog(counts, { box: 'hog', agent: 'a' })).toBe('installation');
  expect(exceededBacklog(counts, { box: 'lab', agent: 'a' })).toBeUndefined();
});
