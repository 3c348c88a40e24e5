/** The files of a case of an AgentEval lie in the workspace before the first step: real runner, real gateway, real tools. */
import { AgentEvalSpec, AgentEvals } from '../../src/api/v1alpha1/agent-eval.js';
import { NAMESPACE } from '../builders/gateway-world.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
afterEach(() => pods.close());

const message = '/shell cat notes.txt data/in/prices.csv\n/say Read.';
const trigger = { origin: 'eval' as const, name: 'sums', uid: 'uid-eval', case: 'reads' };
const FILES = [
  { path: 'notes.txt', content: 'Two items.\n' },
  { path: 'data/in/prices.csv', content: 'a,12.50\nb,7.50\n' },
];

async function start(files: typeof FILES): Promise<void> {
  pods = await PodWorld.start(temporary, { agent: { tools: { files: false } } });
  pods.world.api.seed(AgentEvals, {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'AgentEval',
    metadata: { namespace: NAMESPACE, name: 'sums', uid: 'uid-eval' },
    spec: AgentEvalSpec.parse({
      agent: 'helper',
      cases: [
        { name: 'other', message, assertions: [{ contains: 'Read' }] },
        { name: 'reads', message, files, assertions: [{ contains: 'Read' }] },
      ],
    }),
  });
}

test('each of them, for the run of that case alone', async () => {
  await start(FILES);

  expect((await pods.run('helper-1', { message, trigger })).status).toMatchObject({ phase: 'done', output: 'Read.' });
  expect(await pods.calls('helper-1')).toMatchObject([
    { isError: false, result: { output: 'Two items.\na,12.50\nb,7.50\n' } },
  ]);
  const { case: _reads, ...ofJudge } = trigger;
  for (const [name, of] of [
    ['helper-2', { ...trigger, case: 'other' }],
    ['helper-3', ofJudge],
  ] as const) {
    await pods.run(name, { message, trigger: of });
    expect(await pods.calls(name)).toMatchObject([{ isError: true }]);
  }
});

test('one that cannot be laid ends the run before its first step, with its name', async () => {
  await start([...FILES, { path: 'notes.txt/below.txt', content: 'x' }]);

  const run = await pods.run('helper-1', { message, trigger });

  expect(run.status).toMatchObject({ phase: 'error', reason: 'RunnerError', usage: { steps: 0 } });
  expect(run.status?.message).toContain('The file notes.txt/below.txt could not be laid into the workspace: ');
});

test.each([
  ['a case that is gone', { ...trigger, case: 'gone' }],
  ['another eval of that name', { ...trigger, uid: 'uid-of-another' }],
])('%s ends the run', async (_what, of) => {
  await start(FILES);

  const run = await pods.run('helper-1', { message, trigger: of });

  expect(run.status).toMatchObject({ phase: 'error', reason: 'InvalidRun' });
  expect(run.status?.message).toContain(`AgentEval sums has no case ${of.case} any more.`);
});
