/** A run of a real model server is recorded, and replayed without it: real runner, real gateway, real tools (docs/evals.md). */
import { gunzipSync, gzipSync } from 'node:zlib';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { ConfigMaps } from '../../src/kube/core-types.js';
import { RECORDING_KEY } from '../../src/gateway/scripted/recordings.js';
import { readFinished } from '../../src/transcript/chunk-store.js';
import type { FakeAnswer } from '../builders/fake-provider.js';
import { NAMESPACE } from '../builders/gateway-world.js';
import { temporaryDirectories } from '../builders/workspace.js';
import { startLocalModel, type LocalModel } from './support/local-model.js';

const temporary = temporaryDirectories();
let model: LocalModel;

afterEach(() => model.close());

const MESSAGE = 'Write a note and read it.';
const write = (content: string) => ({ tool: 'write', input: { path: 'note', content } });
const READ = { tool: 'read', input: { path: 'note' } };
const SHELL = { tool: 'shell', input: { command: 'date +%s%N; cat /proc/sys/kernel/random/uuid' } };
const ANSWERS: readonly FakeAnswer[] = [
  { text: 'First a note.', calls: [write('one two'), write('three')] },
  { calls: [READ] },
  { text: 'It says three.' },
];

const whole = (pieces: Buffer[]): Buffer => Buffer.concat(pieces);

/** As the documented command does: the pieces one after the other, whatever their order. */
async function record(name: string, run: AgentRun, packed = whole): Promise<void> {
  const chunks = await readFinished(model.pods.world.api, run);
  const pieces = chunks.map((chunk) => Buffer.from(chunk?.spec.data ?? '', 'base64')).reverse();
  const binaryData = { [RECORDING_KEY]: packed(pieces).toString('base64') };
  const metadata = { name, namespace: NAMESPACE };
  model.pods.world.api.seed(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, binaryData });
}

const replay = (name: string, recording: NonNullable<AgentRun['spec']['recording']>, message = MESSAGE) =>
  model.pods.run(name, { message, recording });

/** The text of the recording with something changed. */
const changed = (from: string, to: string) => (pieces: Buffer[]) =>
  gzipSync(gunzipSync(whole(pieces)).toString().replace(from, to));

test('says what the model said, makes the calls anew, and needs neither the model nor money', async () => {
  model = await startLocalModel(temporary, { answers: ANSWERS, contextWindow: 4096 });
  const real = await model.pods.run('helper-1', { message: MESSAGE });
  expect(real.status).toMatchObject({ output: 'It says three.' });
  await record('sum', real);
  const asked = model.vendor.requests.length;

  const again = await replay('helper-2', { configMap: 'sum' });

  expect(again.status).toMatchObject({
    phase: 'done',
    reason: 'Completed',
    provider: 'boxwright',
    model: 'recording',
    output: 'It says three.',
    usage: { steps: 3, costUsd: '0.000000' },
  });
  expect(model.vendor.requests).toHaveLength(asked);
  expect(await model.pods.calls('helper-2')).toEqual(await model.pods.calls('helper-1'));
});

test('a result that differs ends the run with both results, unless any result of the tool will do', async () => {
  model = await startLocalModel(temporary, { answers: [{ calls: [SHELL] }, { text: 'Seen.' }] });
  await record('time', await model.pods.run('helper-1', { message: MESSAGE }));

  const strict = await replay('helper-2', { configMap: 'time' });
  const loose = await replay('helper-3', { configMap: 'time', anyResultOf: ['shell'] });

  expect(strict.status).toMatchObject({ phase: 'error', reason: 'ReplayFailed', usage: { steps: 1 } });
  expect(strict.status?.message).toMatch(/^Step 2: the tool shell answered ".*" where the recording has ".*"\. Read /);
  expect(loose.status).toMatchObject({ phase: 'done', output: 'Seen.' });
});

test.each([
  ['a message that is another one', 'sum', 'Something else.', 'Step 1: the message of the run is not the one that was'],
  ['no ConfigMap', 'none', MESSAGE, 'ConfigMap none cannot be replayed: it is not in this namespace'],
  ['a tool that is not there', 'tools', MESSAGE, 'calls the tool teleport, which the run does not have here'],
  ['an answer that is missing', 'short', MESSAGE, 'the recording ends after 2 answers of the model'],
  ['parts that are missing', 'cut', MESSAGE, 'parts of the transcript are missing'],
  ['no gzip', 'plain', MESSAGE, 'recording.jsonl.gz is no gzip of at most 4 MiB'],
  ['something else in the gzip', 'other', MESSAGE, 'a line is not an event'],
  ['a bomb', 'bomb', MESSAGE, 'recording.jsonl.gz is no gzip of at most 4 MiB'],
])('%s ends the run and says so', async (_what, configMap, message, said) => {
  model = await startLocalModel(temporary, {
    answers: [{ calls: [write('x')] }, { calls: [READ] }, { text: 'Done.' }],
  });
  const real = await model.pods.run('helper-1', { message: MESSAGE });
  await record('sum', real);
  await record('tools', real, changed('"tool":"read","input"', '"tool":"teleport","input"'));
  await record('short', real, changed('"role":"assistant","text":"Done."', '"role":"user","text":"Done."'));
  await record('cut', real, changed('"seq":3', '"seq":99'));
  await record('plain', real, () => Buffer.from('hello'));
  await record('other', real, () => gzipSync('{"hello":1}'));
  await record('bomb', real, () => gzipSync(Buffer.alloc(5 * 1024 * 1024)));

  const run = await replay('helper-2', { configMap }, message);

  expect(run.status).toMatchObject({ phase: 'error', reason: 'ReplayFailed' });
  expect(run.status?.message).toContain(said);
});
