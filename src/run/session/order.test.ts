import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { previousRunOf } from './order.js';

function run(name: string, at?: string): AgentRun {
  const pod = { podUid: '', podName: '', gatewayPod: '', gatewayUid: '', gatewayAddress: '', epoch: 1 };
  const status = { phase: 'done' as const, ...(at === undefined ? {} : { claim: { ...pod, at } }) };
  return { apiVersion: '', kind: '', metadata: { name }, spec: { agent: 'helper' }, status };
}

test.each<[string, AgentRun[], string | undefined]>([
  ['nothing, alone in its session', [run('new')], undefined],
  ['nothing, when no pod took another one', [run('a')], undefined],
  ['the run that was claimed last', [run('a', '2026-01-02'), run('b', '2026-01-03'), run('c', '2026-01-01')], 'b'],
  ['never itself', [run('new', '2026-01-03'), run('a', '2026-01-01')], 'a'],
  ['the same one everywhere, when two were claimed at once', [run('b', '2026-01-01'), run('a', '2026-01-01')], 'b'],
])('a run continues %s', (_what, session, expected) => {
  expect(previousRunOf(run('new'), session)?.metadata.name).toBe(expected);
});
