/** The tools against real files and processes in a temporary workspace, called as the socket calls them. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { RIPGREP } from '../../../test/builders/ripgrep.js';
import { webAccess } from '../../../test/builders/web-access.js';
import { pngOf } from '../../../test/builders/png.js';
import { temporaryDirectories } from '../../../test/builders/workspace.js';
import type { ToolName } from '../../protocol/tools-socket.js';
import { systemClock } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import type { ToolResult } from '../engine.js';
import { createToolExecutor } from './executor.js';
import { createShell } from './shell.js';
import type { Shell } from './shell.js';

const temporary = temporaryDirectories();
let workspace: string;
let home: string;
let outside: string;

beforeEach(async () => {
  workspace = await temporary('workspace');
  home = await temporary('home');
  outside = await temporary('outside');
  await writeFile(join(outside, 'secret'), 'top secret');
});

let calls = 0;
interface CallOptions {
  signal?: AbortSignal;
  clock?: Clock;
  /** One of its own for each call when absent. */
  shell?: Shell;
}

function call(tool: ToolName, input: Record<string, unknown>, options: CallOptions = {}) {
  calls += 1;
  const execute = createToolExecutor({
    workspace,
    home,
    ripgrep: RIPGREP,
    shell: options.shell ?? createShell({ home, clock: options.clock ?? systemClock }),
    clock: options.clock ?? systemClock,
    web: webAccess(),
  });
  const signal = options.signal ?? new AbortController().signal;
  return execute({ type: 'call', run: 'helper-1', call: calls, tool, input }, signal);
}

/** The lines of a result that is plain text. */
function textOf({ result }: ToolResult): string[] {
  expect(Object.keys(result)).toEqual(['text']);
  return String(result['text']).split('\n');
}

/** The system clock with waits cut: a time limit of seconds passes in milliseconds, in the same order. */
const hurried: Clock = { ...systemClock, after: (ms, callback) => systemClock.after(ms / 20, callback) };

describe('shell', () => {
  test('gives exit code and output, errors included, in the order written', async () => {
    expect(await call('shell', { command: 'echo one; echo two >&2; echo three' })).toEqual({
      isError: false,
      result: { exitCode: 0, output: expect.stringMatching(/^(?=.*one)(?=.*two)(?=.*three)/s) },
    });
  });

  test('an exit code other than 0 is an error with its output', async () => {
    expect(await call('shell', { command: 'echo no; exit 3' })).toEqual({
      isError: true,
      result: { exitCode: 3, output: 'no\n' },
    });
  });

  test('the environment has PATH, HOME and LANG and nothing else of ours', async () => {
    process.env['BOXWRIGHT_TEST_SECRET'] = 'sk-real';
    const { result } = await call('shell', { command: '/usr/bin/env' });
    delete process.env['BOXWRIGHT_TEST_SECRET'];
    const names = String(result['output'])
      .split('\n')
      .map((line) => line.split('=')[0]);
    // The shell itself adds the last three.
    expect(new Set(names.filter((name) => name !== ''))).toEqual(
      new Set(['HOME', 'LANG', 'PATH', 'PWD', 'SHLVL', '_']),
    );
    expect(result['output']).toContain(`HOME=${home}\n`);
  });

  test('settings of shell and git that lie in the workspace do not act', async () => {
    const startup = `touch ${join(outside, 'acted')}`;
    for (const name of ['.bashrc', '.bash_profile', '.profile', '.bash_login']) {
      await writeFile(join(workspace, name), startup);
    }
    await writeFile(join(workspace, '.gitconfig'), '[alias]\nsneak = !touch acted\n');
    process.env['BASH_ENV'] = join(workspace, '.bashrc');
    process.env['ENV'] = join(workspace, '.bashrc');
    await call('shell', { command: 'bash -i -c true </dev/null; bash -l -c true; sh -i -c true </dev/null; true' });
    delete process.env['BASH_ENV'];
    delete process.env['ENV'];
    expect(existsSync(join(outside, 'acted'))).toBe(false);
    expect((await call('shell', { command: 'git sneak' })).isError).toBe(true);
    expect(existsSync(join(workspace, 'acted'))).toBe(false);
  });

  test('leaves the CPU to the supervisor first: niceness 19, and none of ours', async () => {
    const { result } = await call('shell', { command: 'nice' });
    expect(result['output']).toBe('19\n');
    expect(getPriority()).toBeLessThan(19);
  });

  test('runs in the workspace, or in cwd', async () => {
    await mkdir(join(workspace, 'sub'));
    expect((await call('shell', { command: 'pwd' })).result['output']).toBe(`${workspace}\n`);
    expect((await call('shell', { command: 'pwd', cwd: 'sub' })).result['output']).toBe(`${workspace}/sub\n`);
  });

  test('refuses a cwd outside', async () => {
    await symlink(outside, join(workspace, 'way-out'));
    for (const cwd of ['..', outside, 'way-out']) {
      expect(await call('shell', { command: 'pwd', cwd })).toEqual({
        isError: true,
        result: { error: 'The path leads out of the workspace; only files in it can be used.' },
      });
    }
  });

  test('stops at the time limit and keeps what was written', async () => {
    expect(await call('shell', { command: 'echo begun; sleep 60', timeoutSeconds: 4 }, { clock: hurried })).toEqual({
      isError: true,
      result: {
        exitCode: null,
        signal: 'SIGTERM',
        error: 'The command was stopped after 4 seconds.',
        output: 'begun\n',
      },
    });
  });

  test('kills a command that ignores TERM, with its children', async () => {
    const command = `trap '' TERM; sh -c "trap '' TERM; echo \\$\\$; exec sleep 61" & sleep 61; sleep 61`;
    const { result } = await call('shell', { command, timeoutSeconds: 4 }, { clock: hurried });
    expect(result).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    expect(await isGone(Number(result['output']))).toBe(true);
  });

  test('is stopped when nobody waits any more', async () => {
    const abort = new AbortController();
    const running = call('shell', { command: 'echo begun; echo $$ > pid; sleep 62' }, { signal: abort.signal });
    const pid = await eventually(async () => Number(await readFile(join(workspace, 'pid'), 'utf8').catch(() => '')));
    abort.abort();
    expect((await running).result).toEqual({
      exitCode: null,
      signal: 'SIGTERM',
      error: 'The command was stopped with the run.',
      output: 'begun\n',
    });
    expect(await isGone(pid)).toBe(true);
  });

  test('does not wait for a background process that holds the output open', async () => {
    const { result, isError } = await call('shell', { command: 'sleep 20 & echo $!' });
    const pid = Number(result['output']);
    expect(isError).toBe(false);
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    process.kill(pid, 'SIGKILL');
  });

  test('shows head and tail of long output and keeps all of it in the log', async () => {
    const { result } = await call('shell', { command: 'echo first; seq 1 40000; echo last' });
    const output = String(result['output']);
    expect(output.startsWith('first\n1\n2\n')).toBe(true);
    expect(output.endsWith('\n40000\nlast\n')).toBe(true);
    expect(output).toMatch(/\n\[\.\.\. 198905 bytes left out \.\.\.\]\n/);
    expect(result['outputBytes']).toBe(228_905);
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(30_050);
    expect(result['logPath']).toBe(`.runs/helper-1/${calls}.log`);
    const log = await readFile(join(workspace, String(result['logPath'])), 'utf8');
    expect(log.startsWith('first\n1\n')).toBe(true);
    expect(log).toHaveLength(228_905);
  });

  test('caps the log at 10 MiB', async () => {
    const { result } = await call('shell', { command: 'head -c 12000000 /dev/zero | tr "\\0" x' });
    expect(result['outputBytes']).toBe(12_000_000);
    expect((await stat(join(workspace, String(result['logPath'])))).size).toBe(10 * 1024 * 1024);
  });

  test('writes no log through a link that the agent planted', async () => {
    await symlink(outside, join(workspace, '.runs'));
    const { result } = await call('shell', { command: 'seq 1 40000' });
    expect(result['logPath']).toBeUndefined();
    expect(result['outputBytes']).toBe(228_894);
    expect(execFileSync('ls', ['-A', outside], { encoding: 'utf8' })).toBe('secret\n');
  });

  test('an input that does not fit is refused with the field', async () => {
    expect(await call('shell', { command: 'true', timeoutSeconds: 601 })).toEqual({
      isError: true,
      result: { error: 'The input does not fit shell: timeoutSeconds is 601, and must be at most 600.' },
    });
  });
});

describe('a shell keeps from call to call', () => {
  let shell: Shell;
  const run = async (command: string, input: Record<string, unknown> = {}) =>
    (await call('shell', { command, ...input }, { shell })).result;

  beforeEach(async () => {
    shell = createShell({ home, clock: systemClock });
    await mkdir(join(workspace, 'sub/deep'), { recursive: true });
  });

  test('the directory, also after a failure and after exit', async () => {
    expect(await run('cd sub; false')).toEqual({ exitCode: 1, directory: 'sub', output: '' });
    expect(await run('pwd; cd deep; exit 3')).toMatchObject({ exitCode: 3, output: `${workspace}/sub\n` });
    expect(await run('set -eux; cd -')).toMatchObject({
      directory: 'sub',
      output: expect.stringContaining(`${workspace}/sub\n`),
    });
    expect(await run('cd ..')).toEqual({ exitCode: 0, output: '' });
    expect(await run('cd /')).toMatchObject({ directory: '/' });
    expect(await run('pwd')).toMatchObject({ output: '/\n' });
  });

  test('exported variables and functions, and no others', async () => {
    await run(`export A='one two' B=$'line\\nend'; C=3; greet() { echo hi; }; export -f greet; unset LANG`);
    expect(await run('echo "$A|$B|${C-}|$LANG"; greet')).toMatchObject({ output: 'one two|line\nend||C.UTF-8\nhi\n' });
    await run('unset A; export PATH=/nowhere');
    expect(await run('echo "${A-gone}"')).toMatchObject({ exitCode: 0, output: 'gone\n' });
    expect(await run('ls')).toMatchObject({ exitCode: 127 });
  });

  test('cwd is for one call', async () => {
    await run('cd sub/deep');
    expect(await run('pwd', { cwd: 'sub' })).toMatchObject({ output: `${workspace}/sub\n` });
  });

  test('nothing of a command that was killed, or of one that replaced its shell', async () => {
    await run('cd sub; export A=1');
    await run('cd deep; kill -9 $$');
    await run('cd deep; exec true');
    expect(await run('echo $A')).toEqual({ exitCode: 0, directory: 'sub', output: '1\n' });
  });

  test('a directory that is gone is the workspace again', async () => {
    await run('cd sub/deep');
    await run('rm -r ../../sub');
    expect(await run('pwd')).toEqual({ exitCode: 0, output: `${workspace}\n` });
  });

  test('no state that is too large, and none that a command makes up', async () => {
    await run('cd sub');
    await run('cd deep; head -c 300000 /dev/zero >&198');
    await run('cd deep; export A=$(printf %0140000d 7)');
    expect(await run('pwd')).toMatchObject({ output: `${workspace}/sub\n` });
    await run('trap - EXIT; printf garbage >&198');
    expect(await run('pwd')).toMatchObject({ output: `${workspace}/sub\n` });
  });

  test('with no variable or argument of its own in the command', async () => {
    expect(await run('echo "$# $0"; compgen -v | grep -ci boxwright')).toMatchObject({
      output: '0 bash\n0\n',
    });
    expect(await run('# a comment\ncat <<END\nheredoc\nEND')).toMatchObject({ exitCode: 0, output: 'heredoc\n' });
    expect(await run('echo "')).toMatchObject({ exitCode: 2, output: expect.stringContaining('unexpected EOF') });
  });
});

describe('a background command', () => {
  let shell: Shell;
  const use = (tool: ToolName, input: Record<string, unknown>) => call(tool, input, { shell });

  beforeEach(() => {
    shell = createShell({ home, clock: systemClock });
  });
  afterEach(() => shell.background.close());

  test('goes on beside other calls, is read piece by piece, and is stopped with its children', async () => {
    await use('shell', { command: 'mkdir sub; cd sub; export A=kept' });
    const command = 'echo $$ $A; (until [ -e go ]; do sleep 0.01; done; echo second; sleep 64)';
    const started = await use('shell', { command, background: true });
    expect(started).toMatchObject({ isError: false, result: { background: 'b1', running: true } });
    const [pid, variable] = String(started.result['output']).trim().split(' ');
    expect(variable).toBe('kept');
    expect((await use('shell_output', { id: 'b1' })).result).toEqual({ background: 'b1', running: true, output: '' });
    await use('shell', { command: 'touch go' });
    const second = await eventually(async () => {
      const { result } = await use('shell_output', { id: 'b1' });
      return result['output'] === 'second\n' ? 1 : 0;
    });
    expect(second).toBe(1);
    expect(await use('shell_stop', { id: 'b1' })).toEqual({
      isError: false,
      result: { background: 'b1', exitCode: null, signal: 'SIGTERM', output: '' },
    });
    expect(await isGone(Number(pid))).toBe(true);
    expect(await use('shell_output', { id: 'b1' })).toMatchObject({ result: { exitCode: null, output: '' } });
  });

  test('that fails at once says so in the answer to its start', async () => {
    expect(await use('shell', { command: 'nothing-like-it', background: true })).toEqual({
      isError: true,
      result: { background: 'b1', exitCode: 127, output: expect.stringContaining('not found') },
    });
  });

  test('is waited for', async () => {
    await use('shell', { command: 'sleep 1; echo done', background: true });
    expect((await use('shell_output', { id: 'b1', waitSeconds: 60 })).result).toEqual({
      background: 'b1',
      exitCode: 0,
      output: 'done\n',
    });
  });

  test('whose output is long is cut, with the whole of each part in a file', async () => {
    const started = await use('shell', { command: 'seq 1 40000', background: true });
    const read = await use('shell_output', { id: 'b1', waitSeconds: 60 });
    const paths = [started, read].map(({ result }) => result['logPath']).filter((path) => typeof path === 'string');
    expect(await readFile(join(workspace, paths[0] ?? ''), 'utf8')).toMatch(/^1\n2\n/);
  });

  test('has a name; others are refused with those there are', async () => {
    expect((await use('shell_stop', { id: 'b9' })).result['error']).toBe(
      'There is no background command b9: none was started in this run.',
    );
    await use('shell', { command: 'sleep 65', background: true });
    expect((await use('shell_output', { id: 'b9' })).result['error']).toBe(
      'There is no background command b9: there are b1.',
    );
  });

  test('ends with the run, and 16 are the most', async () => {
    const started = await Promise.all(
      Array.from({ length: 16 }, () => use('shell', { command: 'echo $$; sleep 66', background: true })),
    );
    expect((await use('shell', { command: 'sleep 66', background: true })).result['error']).toMatch(/^16 commands run/);
    const first = started.map(({ result }) => Number(result['output'])).find((pid) => pid > 0);
    await shell.background.close();
    expect(await isGone(first ?? 0)).toBe(true);
    expect(await use('shell', { command: 'true', background: true })).toMatchObject({ isError: false });
  });
});

describe('files', () => {
  test('what is written is read, listed and edited', async () => {
    expect(await call('write', { path: 'a/b.txt', content: 'one\ntwo\ntwo\n' })).toEqual({
      isError: false,
      result: { text: 'Wrote 12 bytes to a/b.txt.' },
    });
    expect((await call('read', { path: `${workspace}/a/b.txt` })).result).toEqual({
      text: '1\tone\n2\ttwo\n3\ttwo',
    });
    expect((await call('edit', { path: 'a/b.txt', oldText: 'one', newText: '$&1' })).result).toEqual({
      text: 'Replaced 1 occurrence in a/b.txt.',
    });
    expect(await readFile(join(workspace, 'a/b.txt'), 'utf8')).toBe('$&1\ntwo\ntwo\n');
    expect((await call('list', {})).result).toEqual({ text: 'a/' });
    expect((await call('list', { path: 'a' })).result).toEqual({ text: 'b.txt\t12' });
  });

  test('a picture is shown, unless it is too large', async () => {
    const png = pngOf(3, 3);
    await writeFile(join(workspace, 'a.png'), png);
    expect(await call('read', { path: 'a.png' })).toEqual({
      isError: false,
      result: { text: `a.png: image/png, ${png.length} bytes` },
      pictures: [{ mediaType: 'image/png', data: png.toString('base64') }],
    });
    await writeFile(join(workspace, 'b.png'), pngOf(3, 3, 700 * 1024));
    const { isError, result } = await call('read', { path: 'b.png' });
    expect([isError, result['error']]).toEqual([true, expect.stringContaining('at most 640 KiB')]);
    await writeFile(join(workspace, 'tiny.png'), png.subarray(0, 20));
    expect((await call('read', { path: 'tiny.png' })).isError).toBe(true);
  });

  test('files of a skill lie in its directory, scripts can be run, and none leaves it', async () => {
    const put = (path: string, text: string) =>
      call('put_skill_file', { slug: 'review', path, content: Buffer.from(text).toString('base64') });
    expect((await put('scripts/check.sh', '#!/bin/sh\necho checked\n')).isError).toBe(false);
    await put('notes.md', 'text');
    expect((await call('shell', { command: '.skills/review/scripts/check.sh' })).result['output']).toBe('checked\n');
    expect((await stat(join(workspace, '.skills/review/notes.md'))).mode & 0o111).toBe(0);
    for (const path of ['../other/x', '../../x', '..']) {
      expect((await put(path, 'x')).result['error']).toBe('The path leads out of the skill.');
    }
    await symlink(outside, join(workspace, '.skills/review/out'));
    expect((await put('out/x', 'x')).result['error']).toMatch(/leads out of the workspace/);
  });

  test('edit wants exactly one occurrence, or replaceAll', async () => {
    await writeFile(join(workspace, 'f'), 'two two');
    expect((await call('edit', { path: 'f', oldText: 'one', newText: '' })).result['error']).toMatch(/does not occur/);
    expect((await call('edit', { path: 'f', oldText: 'two', newText: '' })).result['error']).toMatch(/occurs 2 times/);
    expect(await readFile(join(workspace, 'f'), 'utf8')).toBe('two two');
    await call('edit', { path: 'f', oldText: 'two', newText: '2', replaceAll: true });
    expect(await readFile(join(workspace, 'f'), 'utf8')).toBe('2 2');
  });

  test('several edits are made one after the other, all or none', async () => {
    await writeFile(join(workspace, 'f'), 'one\ntwo\nthree\n');
    const edits = [
      { oldText: 'one', newText: '1' },
      { oldText: '1\ntwo', newText: '1\n2' },
    ];
    const third = { oldText: 'a three', newText: '3' };
    expect((await call('edit', { path: 'f', edits: [...edits, third] })).result['error']).toBe(
      'Edit 3 of 3: oldText does not occur in the file. The nearest place is line 3 (- as given, + as in the file):\n- a three\n+ three\nNothing was changed.',
    );
    expect(await readFile(join(workspace, 'f'), 'utf8')).toBe('one\ntwo\nthree\n');
    expect((await call('edit', { path: 'f', edits })).result).toEqual({ text: 'Replaced 2 occurrences in f.' });
    expect(await readFile(join(workspace, 'f'), 'utf8')).toBe('1\n2\nthree\n');
  });

  test('an edit needs one of its two forms', async () => {
    await writeFile(join(workspace, 'f'), 'one');
    const edits = [{ oldText: 'one', newText: '1' }];
    expect((await call('edit', { path: 'f', oldText: 'one', newText: '1', edits })).result['error']).toBe(
      'Give either oldText and newText, or edits.',
    );
    for (const input of [{}, { oldText: 'one' }, { edits: [] }]) {
      expect((await call('edit', { path: 'f', ...input })).result['error']).toMatch(/^oldText and newText are needed/);
    }
  });

  test('line ends of two characters stay, also where a model writes one', async () => {
    await writeFile(join(workspace, 'f'), 'one\r\ntwo\r\nthree\r\n');
    await call('edit', { path: 'f', oldText: 'one\ntwo', newText: '1\n2' });
    expect(await readFile(join(workspace, 'f'), 'utf8')).toBe('1\r\n2\r\nthree\r\n');
  });

  test('a replacement that would blow the file up is refused', async () => {
    await writeFile(join(workspace, 'f'), 'x'.repeat(10_000));
    const edit = { path: 'f', oldText: 'x', newText: 'y'.repeat(1000), replaceAll: true };
    expect((await call('edit', edit)).result['error']).toBe('The file is too large to be edited (5 MiB).');
  });

  test('reads 2000 lines, then says where to go on', async () => {
    await writeFile(join(workspace, 'long'), Array.from({ length: 4500 }, (_, i) => `${i + 1}`).join('\n'));
    const first = textOf(await call('read', { path: 'long' }));
    expect(first).toHaveLength(2001);
    expect(first.slice(-2)).toEqual(['2000\t2000', '[2500 more lines; read on with offset 2001]']);
    const last = textOf(await call('read', { path: 'long', offset: 4001 }));
    expect(last).toHaveLength(500);
    expect(last.at(-1)).toBe('4500\t4500');
    expect(textOf(await call('read', { path: 'long', offset: 4499, limit: 1 }))).toEqual([
      '4499\t4499',
      '[1 more line; read on with offset 4500]',
    ]);
  });

  test('says when there is nothing to read', async () => {
    await writeFile(join(workspace, 'short'), 'one\ntwo\n');
    await writeFile(join(workspace, 'empty'), '');
    expect(textOf(await call('read', { path: 'short', offset: 9 }))).toEqual(['[the file has 2 lines]']);
    expect(textOf(await call('read', { path: 'empty' }))).toEqual(['[the file is empty]']);
  });

  test('reads at most 50 KiB, and a line at most 4 KiB', async () => {
    await writeFile(join(workspace, 'wide'), `${'x'.repeat(500)}\n`.repeat(500));
    const wide = textOf(await call('read', { path: 'wide' }));
    expect(wide).toHaveLength(103);
    expect(wide.at(-1)).toBe('[398 more lines; read on with offset 103]');
    await writeFile(join(workspace, 'one-line'), 'y'.repeat(3_000_000));
    expect(Buffer.byteLength(textOf(await call('read', { path: 'one-line' })).join('\n'))).toBeLessThanOrEqual(4098);
  });

  test('names of one line each: a link is marked, a line end is escaped', async () => {
    await symlink('nowhere', join(workspace, 'link'));
    await writeFile(join(workspace, 'two\nlines'), '');
    expect(textOf(await call('list', {}))).toEqual(['link@', '"two\\nlines"\t0']);
    expect(textOf(await call('glob', { pattern: '*' }))).toEqual(['"two\\nlines"']);
    await mkdir(join(workspace, 'none'));
    expect(textOf(await call('list', { path: 'none' }))).toEqual(['[the directory is empty]']);
  });

  test('what is not text is neither read nor edited', async () => {
    await writeFile(join(workspace, 'binary'), Buffer.from([1, 0, 2]));
    expect((await call('read', { path: 'binary' })).result).toEqual({ error: 'The file is not text.' });
    await writeFile(join(workspace, 'latin1'), Buffer.from([0x61, 0xe9]));
    const edit = await call('edit', { path: 'latin1', oldText: 'a', newText: 'b' });
    expect(edit.result).toEqual({ error: 'The file is not text.' });
    expect(await readFile(join(workspace, 'latin1'))).toEqual(Buffer.from([0x61, 0xe9]));
  });

  test('a pipe is refused at once instead of waited for', async () => {
    execFileSync('mkfifo', [join(workspace, 'pipe')]);
    expect((await call('grep', { pattern: 'x', path: 'pipe' })).result).toEqual({
      error: 'The path is neither a file nor a directory.',
    });
    expect((await call('grep', { pattern: 'x' })).result).toEqual({ text: '[nothing matches]' });
    for (const [tool, input] of [
      ['read', {}],
      ['write', { content: 'x' }],
    ] as const) {
      expect((await call(tool, { path: 'pipe', ...input })).result).toEqual({
        error: 'The path is not a regular file.',
      });
    }
  });

  test('a missing file says so', async () => {
    expect((await call('read', { path: 'nothing' })).result).toEqual({ error: 'There is no such file or directory.' });
  });

  describe('cannot leave the workspace', () => {
    const inputs: [ToolName, Record<string, unknown>][] = [
      ['read', {}],
      ['write', { content: 'x' }],
      ['edit', { oldText: 'top', newText: 'no' }],
      ['list', {}],
      ['grep', { pattern: 'top' }],
      ['glob', { pattern: '**' }],
    ];

    test.each(inputs)('%s', async (tool, input) => {
      await symlink(outside, join(workspace, 'directory-link'));
      await symlink(join(outside, 'secret'), join(workspace, 'file-link'));
      await symlink('directory-link', join(workspace, 'link-to-link'));
      const paths = [
        '../outside',
        '/etc',
        join(outside, 'secret'),
        'file-link',
        'directory-link/secret',
        'link-to-link/new',
      ];
      for (const path of [...paths, `${workspace}-evil/x`, 'a/../../x']) {
        expect(await call(tool, { ...input, path })).toEqual({
          isError: true,
          result: { error: 'The path leads out of the workspace; only files in it can be used.' },
        });
      }
      expect(await readFile(join(outside, 'secret'), 'utf8')).toBe('top secret');
    });

    test('writing through a dangling link creates nothing outside', async () => {
      await symlink(join(outside, 'new'), join(workspace, 'dangling'));
      expect((await call('write', { path: 'dangling', content: 'x' })).isError).toBe(true);
      expect(existsSync(join(outside, 'new'))).toBe(false);
    });

    test('grep and glob below the workspace follow no link', async () => {
      await symlink(outside, join(workspace, 'directory-link'));
      await symlink(join(outside, 'secret'), join(workspace, 'file-link'));
      expect((await call('grep', { pattern: 'secret' })).result).toEqual({ text: '[nothing matches]' });
      expect((await call('glob', { pattern: '**' })).result).toEqual({ text: '[no file matches]' });
    });

    test('a link inside is followed', async () => {
      await writeFile(join(workspace, 'real'), 'text');
      await symlink('real', join(workspace, 'alias'));
      expect((await call('read', { path: 'alias' })).result).toEqual({ text: '1\ttext' });
    });
  });
});

describe('grep', () => {
  test('gives path, line and text', async () => {
    await mkdir(join(workspace, 'src'));
    await writeFile(join(workspace, 'src', 'a:1.ts'), 'x\nconst Answer = 42;\n');
    await writeFile(join(workspace, 'b.md'), 'answer\n');
    const match = ['src/a:1.ts', '2:const Answer = 42;'];
    expect(textOf(await call('grep', { pattern: 'Answer = [0-9]+' }))).toEqual(match);
    expect(textOf(await call('grep', { pattern: 'ANSWER', include: '*.ts', ignoreCase: true }))).toEqual(match);
    expect(textOf(await call('grep', { pattern: '42', path: 'src/a:1.ts' }))).toEqual(match);
    expect(textOf(await call('grep', { pattern: '^.' }))).toEqual([
      'b.md',
      '1:answer',
      '',
      'src/a:1.ts',
      '1:x',
      '2:const Answer = 42;',
    ]);
  });

  test('stops at 100 matches, and cuts a line at 500 bytes', async () => {
    await writeFile(join(workspace, 'many'), `${'m'.repeat(2_000_000)}\n${'m\n'.repeat(300)}`);
    const lines = textOf(await call('grep', { pattern: 'm' }));
    expect(lines).toHaveLength(102);
    expect(lines[1]).toBe(`1:${'m'.repeat(500)}`);
    expect(lines.at(-1)).toBe('[there are more matches; search in fewer files]');
  });

  test('lines around a match, and classes of characters', async () => {
    await writeFile(join(workspace, 'f'), 'a\nb\nport 8080\nd\ne\nport 9\n');
    expect(textOf(await call('grep', { pattern: String.raw`\bport \d{4}\b`, context: 1 }))).toEqual([
      'f',
      '2-b',
      '3:port 8080',
      '4-d',
    ]);
    expect(textOf(await call('grep', { pattern: 'port (?!8)' }))).toEqual(['f', '6:port 9']);
    expect(textOf(await call('grep', { pattern: '(.)\\1' }))).toEqual(['[nothing matches]']);
  });

  test('much context is cut by bytes', async () => {
    const block = `${`${'x'.repeat(400)}\n`.repeat(19)}hit\n`;
    await writeFile(join(workspace, 'f'), block.repeat(30));
    const lines = textOf(await call('grep', { pattern: 'hit', context: 20 }));
    expect(Buffer.byteLength(lines.join('\n'))).toBeLessThan(41_000);
    expect(lines.at(-1)).toBe('[there are more matches; search in fewer files]');
  });

  test('leaves out what .gitignore names, and .git, and .runs, but not hidden files', async () => {
    for (const path of ['a.ts', 'b.py', 'dist/c.ts', '.hidden/d.ts', '.git/e.ts', '.runs/f.ts']) {
      await call('write', { path, content: 'needle\n' });
    }
    await writeFile(join(workspace, '.gitignore'), 'dist/\n');
    const files = async (input: Record<string, unknown>) =>
      textOf(await call('grep', { pattern: 'needle', ...input })).filter((line) => line !== '' && line !== '1:needle');
    expect(await files({})).toEqual(['.hidden/d.ts', 'a.ts', 'b.py']);
    expect(await files({ type: 'py' })).toEqual(['b.py']);
    expect(await files({ include: '*.ts' })).toEqual(['.hidden/d.ts', 'a.ts']);
    expect(await files({ ignored: true })).toEqual(['.hidden/d.ts', 'a.ts', 'b.py', 'dist/c.ts']);
    expect(await files({ path: 'dist/c.ts' })).toEqual(['dist/c.ts']);
    expect((await call('grep', { pattern: 'needle', type: 'nope' })).result).toEqual({
      error: 'The search failed: unrecognized file type: nope',
    });
  });

  test('a broken expression is the mistake of the caller', async () => {
    expect(await call('grep', { pattern: '(' })).toEqual({
      isError: true,
      result: { error: expect.stringMatching(/^The search failed: [^]*unclosed group$/) },
    });
  });

  test('a pattern that looks like an option is a pattern', async () => {
    await writeFile(join(workspace, 'f'), '--version\n');
    expect(textOf(await call('grep', { pattern: '--version' }))).toEqual(['f', '1:--version']);
  });
});

describe('glob', () => {
  test('finds by pattern, not in .git or .runs', async () => {
    for (const path of ['a.ts', 'src/b.ts', 'src/deep/c.tsx', 'src/d.md', '.git/e.ts', '.runs/f.ts']) {
      await call('write', { path, content: '' });
    }
    expect((await call('glob', { pattern: '**/*.{ts,tsx}' })).result).toEqual({
      text: 'a.ts\nsrc/b.ts\nsrc/deep/c.tsx',
    });
    expect((await call('glob', { pattern: '*.ts', path: 'src' })).result).toEqual({ text: 'src/b.ts' });
  });

  test('passes over a directory that cannot be opened', async () => {
    await call('write', { path: 'src/a.ts', content: '' });
    // Its path is longer than the system takes: nobody opens it by name, not even root.
    const deeper = `name=$(printf 'd%.0s' {1..250}); for level in {1..20}; do mkdir "$name" && cd "$name"; done`;
    execFileSync('/bin/bash', ['-c', deeper], { cwd: workspace });
    const found = await call('glob', { pattern: '**/*.ts' });
    execFileSync('/bin/rm', ['-r', 'd'.repeat(250)], { cwd: workspace });
    expect(found.result).toEqual({ text: 'src/a.ts' });
    expect(await call('glob', { pattern: '*', path: 'none' })).toMatchObject({ isError: true });
  });

  test('says when there are more than 1000', async () => {
    await Promise.all(Array.from({ length: 1001 }, (_, i) => writeFile(join(workspace, `f${i}`), '')));
    const lines = textOf(await call('glob', { pattern: 'f*' }));
    expect(lines).toHaveLength(1001);
    expect(lines.at(-1)).toBe('[the search stopped after 1000 files; narrow the pattern]');
  });
});

async function eventually(probe: () => Promise<number>): Promise<number> {
  for (;;) {
    const value = await probe();
    if (value > 0) return value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Whether a process has ended (a zombie has too); a few looks, since SIGKILL takes effect a moment later. */
async function isGone(pid: number): Promise<boolean> {
  for (let look = 0; look < 200; look++) {
    const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    if (state === undefined || / Z /.test(state)) return true;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return false;
}
