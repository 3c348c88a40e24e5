import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { AgentRunChunks } from '../api/v1alpha1/agent-run-chunk.js';
import { RecordingApi } from '../../test/builders/recording-api.js';
import { toolEvent } from '../../test/builders/run-events.js';
import { readTranscript } from './chunk-store.js';
import { TranscriptLog } from './log.js';

const OWNER = { namespace: 'bw-lab', name: 'helper-1', uid: 'uid-run' };
const CLAIM = { podUid: 'p', podName: 'p', at: '', gatewayPod: '', gatewayUid: '', gatewayAddress: '', epoch: 1 };

function run(status: Partial<NonNullable<AgentRun['status']>>): Pick<AgentRun, 'metadata' | 'status'> {
  return { metadata: { ...OWNER }, status: { phase: 'done', ...status } };
}

async function withChunks(count: number) {
  const api = new RecordingApi();
  const log = new TranscriptLog(api, OWNER);
  for (let seq = 1; seq <= count; seq++) await log.append([toolEvent(seq)]);
  api.clearRecords();
  return api;
}

test('a finished run is read by name, one GET a chunk', async () => {
  const api = await withChunks(3);

  const transcript = await readTranscript(api, run({ transcript: { state: 'full', chunks: 3, bytes: 1 } }));

  expect(transcript).toEqual({ events: [toolEvent(1), toolEvent(2), toolEvent(3)], state: 'full' });
  expect(api.reads.map(({ key }) => key)).toEqual(['bw-lab/helper-1.00', 'bw-lab/helper-1.01', 'bw-lab/helper-1.02']);
});

test('a working run is read as far as its chunks go, since its status lags behind', async () => {
  const api = await withChunks(2);

  const { events } = await readTranscript(api, run({ phase: 'running', claim: CLAIM }));

  expect(events).toHaveLength(2);
});

test.each([
  ['of a run that was never claimed', { phase: 'running' as const }, 'full'],
  ['of a finished run without one', {}, 'full'],
  ['that expired', { transcript: { state: 'expired' as const, chunks: 3, bytes: 1 } }, 'expired'],
  ['that was archived', { transcript: { state: 'archived' as const, chunks: 3, bytes: 1 } }, 'archived'],
])('a transcript %s is empty and costs no read', async (_name, status, state) => {
  const api = await withChunks(3);

  expect(await readTranscript(api, run(status))).toEqual({ events: [], state });
  expect(api.reads).toEqual([]);
});

test('a missing chunk and a damaged one leave the rest readable', async () => {
  const api = await withChunks(3);
  api.vanish(AgentRunChunks, 'bw-lab/helper-1.01');
  const last = api.peek(AgentRunChunks, 'bw-lab/helper-1.02');
  if (last !== undefined) api.seed(AgentRunChunks, { ...last, spec: { ...last.spec, sha256: '00' } });

  expect(await readTranscript(api, run({ transcript: { state: 'full', chunks: 3, bytes: 1 } }))).toEqual({
    events: [toolEvent(1)],
    state: 'truncated',
  });
});
