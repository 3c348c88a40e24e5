/** A long session on a small window, through the real runner and the real gateway (docs/agents.md, Long sessions). */
import type { FakeAnswer, FakeFault, FakeProvider } from '../builders/fake-provider.js';
import type { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';
import { startLocalModel, type LocalModel } from './support/local-model.js';

const WINDOW = 4096;
const MARK = '\n\n[The conversation since then, summarised]\n';

const temporary = temporaryDirectories();
let model: LocalModel;
let vendor: FakeProvider;
let pods: PodWorld;

async function start(answers: readonly (FakeAnswer | FakeFault)[], contextWindow: number | undefined): Promise<void> {
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
  // The request goes behind the conversation as it was, with the same tools: a prompt cache has all of it.
  expect(sent(1)).toHaveLength(4);
  expect(sent(1)[0]).toEqual(sent(0)[0]);
  expect(sent(1).at(-1)?.content).toContain('Summarise it in plain text');
  expect(vendor.requests[1]?.body['tools']).toEqual(vendor.requests[0]?.body['tools']);
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
  ['below four fifths', 3_100, WINDOW],
  ['with a window that is not known', 1_000_000, undefined],
])('%s nothing is summarised', async (_name, input, contextWindow) => {
  await start([{ text: LONG, calls: [note], usage: { input, output: 50 } }, { text: 'All done.' }], contextWindow);

  expect((await pods.run('helper-1', { message: 'Do it.' })).status).toMatchObject({ usage: { steps: 2 } });
  expect(sent(1)).toHaveLength(3);
});

const REFUSED: FakeFault = {
  fault: 'status',
  status: 400,
  message: 'request (5031 tokens) exceeds the available context size (4096 tokens), try increasing it',
};
const usage = { input: 900, output: 20 };

test.each([
  ['a window that is not known', undefined],
  ['a window that is smaller than the Box says', 200_000],
])(
  'a refusal for %s is answered with a shorter conversation, and the session goes on',
  async (_name, contextWindow) => {
    await start(
      [
        { text: LONG, calls: [note], usage },
        REFUSED,
        { text: 'Saved a note.', usage },
        { text: 'All done.', usage },
        REFUSED,
        { text: 'Saved a note, and was done.', usage },
        { text: 'Still here.', usage },
        { text: 'And here.', usage },
      ],
      contextWindow,
    );
    const session = { sessionId: 's-1' };

    const first = await pods.run('helper-1', { ...session, message: 'Do it.' });
    expect(first.status).toMatchObject({ phase: 'done', output: 'All done.', usage: { steps: 3 } });
    expect(sent(3)).toEqual([{ role: 'user', content: `Do it.${MARK}Saved a note.` }]);

    // At the first call of a continued session.
    const second = await pods.run('helper-2', { ...session, message: LONG }, 'helper-1');
    expect(second.status).toMatchObject({ phase: 'done', output: 'Still here.' });
    expect(sent(4)).toHaveLength(3);
    const third = await pods.run('helper-3', { ...session, message: 'And now?' }, 'helper-2');
    expect(third.status).toMatchObject({ phase: 'done', output: 'And here.' });
    expect(sent(7).slice(-2)).toEqual([
      { role: 'assistant', content: 'Still here.' },
      { role: 'user', content: expect.stringMatching(/\n<\/run_context>\n\nAnd now\?$/) },
    ]);
    const warnings = (await pods.events('helper-2')).filter(({ type }) => type === 'warning');
    expect(warnings).toMatchObject([{ text: expect.stringContaining('about 4096 tokens') }]);
  },
);
