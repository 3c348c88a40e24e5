/** A long session on a small window, through the real runner and the real gateway (docs/agents.md, Long sessions). */
import type { FakeAnswer, FakeProvider } from '../builders/fake-provider.js';
import type { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';
import { startLocalModel, type LocalModel } from './support/local-model.js';

const WINDOW = 4096;
const MARK = '\n\n[The conversation since then, summarised]\n';

const temporary = temporaryDirectories();
let model: LocalModel;
let vendor: FakeProvider;
let pods: PodWorld;

async function start(answers: readonly FakeAnswer[], contextWindow: number | undefined): Promise<void> {
  model = await startLocalModel(temporary, { answers, contextWindow });
  ({ vendor, pods } = model);
}

afterEach(() => model.close());

type Message = { role: string; content: string };
/** What the vendor was sent, without the system prompt. */
const sent = (index: number) =>
  ((vendor.requests[index]?.body['messages'] ?? []) as Message[]).filter(({ role }) => role !== 'system');
const note = { tool: 'memory_save', input: { text: 'Noted.' } };
const LONG = 'x'.repeat(6_000);

test('is summarised when a call read more than four fifths of it, and goes on from there in the next run', async () => {
  await start(
    [
      { text: LONG, calls: [note], usage: { input: 3_300, output: 50 } },
      { text: 'Saved a note.', usage: { input: 900, output: 20 } },
      { text: 'All done.', usage: { input: 400, output: 10 } },
      { text: 'Still here.', usage: { input: 400, output: 10 } },
    ],
    WINDOW,
  );
  const session = { sessionId: 's-1' };

  const first = await pods.run('helper-1', { ...session, message: 'Do it.' });
  expect(first.status).toMatchObject({ phase: 'done', output: 'All done.', usage: { steps: 3, inputTokens: 4_600 } });
  expect(sent(1)).toHaveLength(1);
  expect(sent(1)[0]?.content).toContain('Summarise the conversation below');
  expect(vendor.requests[1]?.body['tools']).toBeUndefined();
  expect(sent(2)).toEqual([{ role: 'user', content: `Do it.${MARK}Saved a note.` }]);
  expect((await pods.events('helper-1')).filter(({ type }) => type === 'compaction')).toHaveLength(1);

  await pods.run('helper-2', { ...session, message: 'And now?' }, 'helper-1');
  expect(sent(3)).toEqual([
    { role: 'user', content: `Do it.${MARK}Saved a note.` },
    { role: 'assistant', content: 'All done.' },
    {
      role: 'user',
      content: expect.stringMatching(/^<run_context>\n[^<]*"Noted\."\n<\/run_context>\n\nAnd now\?$/),
    },
  ]);
});

test.each([
  ['below four fifths', 3_200, WINDOW],
  ['with a window that is not known', 1_000_000, undefined],
])('%s nothing is summarised', async (_name, input, contextWindow) => {
  await start([{ text: LONG, calls: [note], usage: { input, output: 50 } }, { text: 'All done.' }], contextWindow);

  expect((await pods.run('helper-1', { message: 'Do it.' })).status).toMatchObject({ usage: { steps: 2 } });
  expect(sent(1)).toHaveLength(3);
});
