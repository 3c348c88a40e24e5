/** What a model is sent of a session, through the real runner and the real gateway (docs/agents.md, Long sessions). */
import { createHash } from 'node:crypto';
import { AgentMemories } from '../../src/api/v1alpha1/agent-memory.js';
import type { FakeAnswer, FakeProvider } from '../builders/fake-provider.js';
import type { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';
import { startLocalModel, type LocalModel } from './support/local-model.js';

const SESSION = { sessionId: 's-1' };

const temporary = temporaryDirectories();
let model: LocalModel;
let vendor: FakeProvider;
let pods: PodWorld;

async function start(answers: readonly FakeAnswer[], approvals: readonly string[] = []): Promise<void> {
  model = await startLocalModel(temporary, { answers, agent: { approvals: [...approvals] } });
  ({ vendor, pods } = model);
}

afterEach(() => model.close());

interface Message {
  role: string;
  content: string;
}
/** What the vendor was sent, without the system prompt. */
const sent = (index: number) =>
  ((vendor.requests[index]?.body['messages'] ?? []) as Message[]).filter(({ role }) => role !== 'system');

/** As short as a failure can be read. */
const shape = (messages: readonly Message[]) =>
  messages.map((message) => {
    const text = JSON.stringify(message);
    return text.length < 200 ? text : createHash('sha256').update(text).digest('hex');
  });

const WRITE = { tool: 'write', input: { path: 'numbers', content: numbered(600) } };
const READ = { tool: 'read', input: { path: 'numbers' } };
/** A step that writes, and ones that read more than 30 KB twice each. */
const reading = (steps: number): FakeAnswer[] => [
  { calls: [WRITE] },
  ...Array.from({ length: steps }, () => ({ calls: [READ, READ] })),
];

function numbered(lines: number): string {
  return Array.from({ length: lines }, (_, n) => `${'x'.repeat(50)} ${n}\n`).join('');
}

test('a run of 18 steps with two results of 30 KB is whole in the next run of its session', async () => {
  await start([...reading(18), { text: 'I read it.' }, { text: 'Still here.' }]);
  await pods.run('helper-1', { ...SESSION, message: 'Read it all.' });
  await pods.run('helper-2', { ...SESSION, message: 'And now?' }, 'helper-1');

  const next = [...sent(19), { role: 'assistant', content: 'I read it.' }, { role: 'user', content: 'And now?' }];
  expect(shape(sent(20))).toEqual(shape(next));
  expect(sent(20)).toHaveLength(59);
  expect(Buffer.byteLength(JSON.stringify(sent(20)))).toBeGreaterThan(36 * 30_000);
});

test('the answer to a question at the end of such a run comes as its result, behind the whole conversation', async () => {
  const ask = { tool: 'ask_user', input: { question: 'Which one?' } };
  await start([...reading(18), { calls: [ask] }, { text: 'Blue it is.' }]);
  await pods.run('helper-1', { ...SESSION, message: 'Read it all.' });
  const answered = await pods.run('helper-2', { ...SESSION, message: 'blue' }, 'helper-1');

  expect(answered.status).toMatchObject({ phase: 'done', output: 'Blue it is.' });
  expect(shape(sent(20).slice(0, -2))).toEqual(shape(sent(19)));
  expect(sent(20).slice(-2)).toMatchObject([
    { role: 'assistant', tool_calls: [{ function: { name: 'ask_user' } }] },
    { role: 'tool', content: '{"answer":"user replied: blue"}' },
  ]);
});

test('a call that was approved at the end of such a run is executed, behind the whole conversation', async () => {
  const save = { tool: 'memory_save', input: { text: 'Noted.' } };
  await start([...reading(18), { calls: [save] }, { text: 'Saved.' }], ['memory']);
  await pods.run('helper-1', { ...SESSION, message: 'Read it all.' });
  const approved = await pods.run('helper-2', { ...SESSION, message: 'approve' }, 'helper-1');

  expect(approved.status).toMatchObject({ phase: 'done', output: 'Saved.' });
  expect(shape(sent(20).slice(0, -2))).toEqual(shape(sent(19)));
  expect(sent(20).slice(-2)).toMatchObject([
    { role: 'assistant', tool_calls: [{ function: { name: 'memory_save' } }] },
    { role: 'tool' },
  ]);
  expect(pods.world.api.all(AgentMemories)).toHaveLength(1);
});

test('of a session that is longer than what is handed over old results are cut, and everybody is told', async () => {
  await start([...reading(20), { text: 'One.' }, ...reading(20), { text: 'Two.' }, { text: 'Three.' }]);
  await pods.run('helper-1', { ...SESSION, message: 'First.' });
  await pods.run('helper-2', { ...SESSION, message: 'Second.' }, 'helper-1');
  await pods.run('helper-3', { ...SESSION, message: 'Third.' }, 'helper-2');

  const messages = sent(44);
  expect(Buffer.byteLength(JSON.stringify(messages))).toBeLessThan(2.2 * 1024 * 1024);
  expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
    expect.stringMatching(/^\(This conversation is too long to be kept whole\. .* What the user said is whole\.\)$/),
    'First.',
    'Second.',
    'Third.',
  ]);
  const isCut = messages
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => content.includes('was cut to keep'));
  expect(isCut).toHaveLength(82);
  // The first one is short: it says as much as a mark would.
  expect(isCut.lastIndexOf(true)).toBe(isCut.filter(Boolean).length);
  const warnings = (await pods.events('helper-3')).filter(({ type }) => type === 'warning');
  expect(warnings).toMatchObject([{ text: expect.stringContaining('What people said was not cut.') }]);
});
