import { McpHarness } from '../../../test/builders/mcp-harness.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { countLiveRuns } from './backlog.js';

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
  expect(counts.isFinishedFull()).toBe(false);
  harness.seedRun('acme-box', 'greeter-5', { status: { phase: 'error' } });
  expect(counts.isFinishedFull()).toBe(true);
  harness.api.vanish(AgentRuns, 'bw-acme-box/greeter-0');
  expect(counts.isFinishedFull()).toBe(false);
});
