/** Pages in a real thread, bundled as the product bundles it. */
import { build } from 'esbuild';
import { deflateSync } from 'node:zlib';
import { join } from 'node:path';
import { temporaryDirectories } from '../../../../test/builders/workspace.js';
import { FakeClock } from '../../../../test/builders/fake-clock.js';
import { pdfOf } from '../../../../test/builders/pdf.js';
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

const html = (text: string) => ({ html: text, url: 'https://a.example/' });

const tooComplex = 'The page cannot be turned into text: it is too complex.';

test('a page is read', async () => {
  const read = createPageReader({ worker, clock: systemClock });
  const page = await read(html('<html><head><title>T</title></head><body>Hi</body></html>'), never);
  expect(page).toEqual({ title: 'T', markdown: 'Hi' });
});

test('nesting that no parser stands is a failure of this page alone', async () => {
  const read = createPageReader({ worker, clock: systemClock });
  const page = await read(html(`${'<b>'.repeat(20_000)}deep`), never).catch((error: Error) => error);
  expect(page instanceof Error ? page.message : page.markdown).toMatch(/^\*\*deep\*\*$|too complex/);
  expect((await read(html('<p>next</p>'), never)).markdown).toBe('next');
});

test('a page that takes too long is ended, with its thread', async () => {
  const clock = new FakeClock();
  const endless = await threadOf(
    'endless',
    "import {parentPort} from 'node:worker_threads'; for (;;) parentPort.unref();",
  );
  const reading = createPageReader({ worker: endless, clock })(html('<p>x</p>'), never);
  const ended = reading.catch((error: Error) => error.message);
  await clock.advance(10_000);
  expect(await ended).toBe(tooComplex);
});

test('a page that takes too much memory is ended', async () => {
  const greedy = await threadOf('greedy', 'const all = []; for (;;) all.push(new Array(1e6).fill(0.5));');
  const read = createPageReader({ worker: greedy, clock: systemClock });
  await expect(read(html('<p>x</p>'), never)).rejects.toThrow(tooComplex);
});

test('a caller that is gone ends the thread', async () => {
  const abort = new AbortController();
  const endless = await threadOf('waiting', 'for (;;);');
  const reading = createPageReader({ worker: endless, clock: systemClock })(html('x'), abort.signal);
  abort.abort(new Error('gone'));
  await expect(reading).rejects.toThrow('gone');
});

test('a PDF is read', async () => {
  const read = createPageReader({ worker, clock: systemClock });
  const pdf = pdfOf([['One', 'Two'], ['Three']]);
  expect((await read({ pdf }, never)).markdown).toBe('[page 1]\nOne\nTwo\n\n[page 2]\nThree');
  await expect(read({ pdf: Buffer.from('%PDF-1.4 nothing') }, never)).rejects.toThrow('The PDF is damaged.');
});

test('a PDF that unpacks to more memory than there may be is ended', async () => {
  const read = createPageReader({ worker, clock: systemClock });
  // Filters on top of each other: each makes the text a thousand times as long.
  const packed = deflateSync(deflateSync(Buffer.alloc(384 * 1024 * 1024)));
  expect(packed.length).toBeLessThan(10_000);
  const pdf = pdfOf([], { packed, filter: '[/FlateDecode /FlateDecode]' });
  await expect(read({ pdf }, never)).rejects.toThrow('The PDF cannot be turned into text: it is too complex.');
});

test('buffers count too', async () => {
  const filling = 'const all = []; for (;;) all.push(Buffer.alloc(8e6, 1));';
  const greedy = await threadOf('buffers', filling);
  const read = createPageReader({ worker: greedy, clock: systemClock });
  await expect(read(html('x'), never)).rejects.toThrow(tooComplex);
});
