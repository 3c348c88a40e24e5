/** Sessions of which runs have left the cluster go on from the archive, through the real runner and the real gateway. */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentRunChunks } from '../../src/api/v1alpha1/agent-run-chunk.js';
import { chunkName } from '../../src/api/names.js';
import type { TranscriptMessage } from '../../src/protocol/run.js';
import { makeEntry } from '../builders/archive-entries.js';
import { BOX, NAMESPACE } from '../builders/gateway-world.js';
import { MemoryArchive } from '../builders/memory-archive.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const SESSION = { sessionId: 's-helper-1' };
const AWAY = '(Earlier messages of this conversation are archived, and the archive cannot be read at the moment.)';

const temporary = temporaryDirectories();
let archive: MemoryArchive;
let pods: PodWorld;
beforeEach(async () => {
  archive = new MemoryArchive();
  pods = await PodWorld.start(temporary, { archive });
});
afterEach(() => pods.close());

/** As controller and retention: the run goes to the archive and leaves the cluster. */
async function archiveAndRemove(name: string): Promise<void> {
  const { api } = pods.world;
  const run = pods.world.run(name);
  const count = run.status?.transcript?.chunks ?? 0;
  const names = Array.from({ length: count }, (_, seq) => `${NAMESPACE}/${chunkName(name, seq)}`);
  const chunks = names.flatMap((key) => api.peek(AgentRunChunks, key)?.spec ?? []);
  const owner = { workspace: 'main', box: BOX, agentUid: 'uid-agent' };
  await archive.put(makeEntry(run, { ...owner, sessionTitle: undefined, chunks }));
  for (const key of names) api.vanish(AgentRunChunks, key);
  api.vanish(AgentRuns, `${NAMESPACE}/${name}`);
  archive.calls.length = 0;
}

/** What a further run of the session is given. */
async function claimed(name: string, previousRun?: string) {
  const pod = pods.world.addRun(name, { ...SESSION, message: 'and then?' }, previousRun);
  const reply = await pods.world.claim(pods.world.startGateway(), pod);
  expect(reply.status).toBe(200);
  const history = reply.json['history'] as TranscriptMessage[];
  return {
    texts: history.map((message) => (message.role === 'tool' ? message.result : message.text)),
    untrusted: (reply.json['abilities'] as { untrusted: boolean }).untrusted,
  };
}

test('a session of which nothing is in the cluster goes on where it was', async () => {
  await pods.run('helper-1', { message: '/say First.' });
  await pods.run('helper-2', { ...SESSION, message: '/say Second.' }, 'helper-1');
  await archiveAndRemove('helper-1');
  await archiveAndRemove('helper-2');
  expect(await claimed('helper-3')).toEqual({
    texts: ['/say First.', 'First.', '/say Second.', 'Second.'],
    untrusted: false,
  });
});

test('a session goes on with both parts: the one in the archive and the one in the cluster', async () => {
  await pods.run('helper-1', { message: '/say First.' });
  await pods.run('helper-2', { ...SESSION, message: '/say Second.' }, 'helper-1');
  await archiveAndRemove('helper-1');
  const { texts } = await claimed('helper-3', 'helper-2');
  expect(texts).toEqual(['/say First.', 'First.', '/say Second.', 'Second.']);
});

test('a run of the cluster whose transcript is in the archive is part of the conversation', async () => {
  const run = await pods.run('helper-1', { message: '/say First.' });
  await archiveAndRemove('helper-1');
  const transcript = { state: 'archived' as const, chunks: 0, bytes: 0 };
  pods.world.api.seed(AgentRuns, { ...run, status: { ...run.status, phase: 'done', transcript } });
  expect((await claimed('helper-2', 'helper-1')).texts).toEqual(['/say First.', 'First.']);
});

test('the archive is not asked about a new session, nor while the run that opened it is in the cluster', async () => {
  await pods.run('helper-1', { message: '/say First.' });
  await pods.run('helper-2', { ...SESSION, message: '/say Second.' }, 'helper-1');
  await claimed('helper-3', 'helper-2');
  expect(archive.calls).toEqual([]);
});

test('an archived question is answered by the next message', async () => {
  await pods.run('helper-1', { message: '/ask Which one? | red | blue\n/say Thank you.' });
  await archiveAndRemove('helper-1');
  const answered = await pods.run('helper-2', { ...SESSION, message: 'the blue one' });
  expect(answered.status).toMatchObject({ phase: 'done', output: 'Thank you.' });
  expect(answered.status?.pending).toBeUndefined();
});

test('the mark of a session from outside does not get lost with its runs', async () => {
  await pods.run('helper-1', { message: '/say First.', trigger: { origin: 'trigger', name: 'deploy' } });
  await archiveAndRemove('helper-1');
  expect((await claimed('helper-2')).untrusted).toBe(true);
});

test('an archive that is away delays no run: it is told what is missing, and counts as untrusted', async () => {
  await pods.run('helper-1', { message: '/say First.' });
  await archiveAndRemove('helper-1');
  archive.available = false;
  expect(await claimed('helper-2')).toEqual({ texts: [AWAY], untrusted: true });
  const ended = await pods.run('helper-3', { ...SESSION, message: '/say Still here.' });
  expect(ended.status).toMatchObject({ phase: 'done', output: 'Still here.' });
});

test('an archive that is away takes no trust from a session whose latest run is in the cluster', async () => {
  await pods.run('helper-1', { message: '/say First.' });
  await pods.run('helper-2', { ...SESSION, message: '/say Second.' }, 'helper-1');
  await archiveAndRemove('helper-1');
  archive.available = false;
  expect(await claimed('helper-3', 'helper-2')).toEqual({
    texts: [AWAY, '/say Second.', 'Second.'],
    untrusted: false,
  });
});
