/** Pages in a real thread, bundled as the product bundles it. */
import { build } from 'esbuild';
import { join } from 'node:path';
import { temporaryDirectories } from '../../../../test/builders/workspace.js';
import { FakeClock } from '../../../../test/builders/fake-clock.js';
import { systemClock } from '../../../runtime/clock.js';
import { createPageReader } from './page-reader.js';

const temporary = temporaryDirectories();
const never = new AbortController().signal;
let directory: string;
let worker: string;

beforeAll(async () => {
  directory = await temporary('worker');
  worker = await bundled('page-worker', { entryPoints: ['src/runner/tools/web/page-worker.ts'] });
});

async function bundled(name: string, source: Parameters<typeof build>[0]): Promise<string> {
  const outfile = join(directory, `${name}.mjs`);
  await build({ ...source, outfile, bundle: true, platform: 'node', format: 'esm', target: 'node24' });
  return outfile;
}
const threadOf = (name: string, contents: string) => bundled(name, { stdin: { contents, resolveDir: '.' } });

const tooComplex = 'The page cannot be turned into text: it is too complex.';

test('a page is read', async () => {
  const read = createPageReader({ worker, clock: systemClock });
  const page = await read('<html><head><title>T</title></head><body>Hi</body></html>', 'https://a.example/', never);
  expect(page).toEqual({ title: 'T', markdown: 'Hi' });
});

test('nesting that no parser stands is a failure of this page alone', async () => {
  const read = createPageReader({ worker, clock: systemClock });
  const page = await read(`${'<b>'.repeat(20_000)}deep`, 'https://a.example/', never).catch((error: Error) => error);
  expect(page instanceof Error ? page.message : page.markdown).toMatch(/^\*\*deep\*\*$|too complex/);
  expect((await read('<p>next</p>', 'https://a.example/', never)).markdown).toBe('next');
});

test('a page that takes too long is ended, with its thread', async () => {
  const clock = new FakeClock();
  const endless = await threadOf(
    'endless',
    "import {parentPort} from 'node:worker_threads'; for (;;) parentPort.unref();",
  );
  const reading = createPageReader({ worker: endless, clock })('<p>x</p>', 'https://a.example/', never);
  const ended = reading.catch((error: Error) => error.message);
  await clock.advance(10_000);
  expect(await ended).toBe(tooComplex);
});

test('a page that takes too much memory is ended', async () => {
  const greedy = await threadOf('greedy', 'const all = []; for (;;) all.push(new Array(1e6).fill(0.5));');
  const read = createPageReader({ worker: greedy, clock: systemClock });
  await expect(read('<p>x</p>', 'https://a.example/', never)).rejects.toThrow(tooComplex);
});

test('a caller that is gone ends the thread', async () => {
  const abort = new AbortController();
  const endless = await threadOf('waiting', 'for (;;);');
  const reading = createPageReader({ worker: endless, clock: systemClock })('x', 'https://a.example/', abort.signal);
  abort.abort(new Error('gone'));
  await expect(reading).rejects.toThrow('gone');
});
