/**
 * Programs for people with an MCP client in them, set up as the README says. Without an account they have no model that
 * would call a tool; each can say whether it reached a server, with which key, and what went wrong.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { WRONG_KEY, startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';
import { startLoopbackProxy } from './support/loopback-proxy.js';
import { installPrograms } from './support/programs.js';
import { createHome, runProcess } from './support/run-process.js';

let api: LiveApi;
let modules: string;
beforeAll(async () => {
  [api, modules] = await Promise.all([startLiveApi(), installPrograms()]);
}, 900_000);
afterAll(() => api.stop());

/** Nothing but the server is asked: no update, no statistics, no catalogue. */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  NO_COLOR: '1',
};

interface Session {
  /** Runs the program in one home folder and gives what it printed, without colours. */
  run: (...args: string[]) => Promise<string>;
  /** Writes one of its settings; the path starts in its home folder. */
  write: (path: string, content: object) => Promise<void>;
  url: string;
}

/** What the program says of a server after it was set up with a key; and that it really asked the API. */
async function tell(
  [command, ...first]: readonly [string, ...string[]],
  use: (session: Session) => Promise<string>,
): Promise<string> {
  const home = await createHome();
  const proxy = await startLoopbackProxy(api.url);
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runProcess(command, [...first, ...args], {
      cwd: home.path,
      env: { ...home.env, ...QUIET },
    });
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
    // oxlint-disable-next-line no-control-regex
    return `${stdout}${stderr}`.replaceAll(/\u001B\[[0-9;]*m/g, '');
  };
  const write = async (path: string, content: object) => {
    await mkdir(dirname(join(home.path, path)), { recursive: true });
    await writeFile(join(home.path, path), JSON.stringify(content));
  };
  const said = await use({ run, write, url: proxy.url });
  proxy.close();
  await home.remove();
  expect(proxy.requests).toContain('POST /api/mcp/account');
  return said.replaceAll(proxy.url, 'URL');
}

const native = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';
const programs = {
  claude: () => [join(modules, `@anthropic-ai/claude-code-${native}/claude`)] as const,
  // For processors without AVX2 too.
  opencode: () =>
    [join(modules, `opencode-${native}${native === 'linux-x64' ? '-baseline' : ''}/bin/opencode`)] as const,
  qwen: () => [process.execPath, join(modules, '@qwen-code/qwen-code/cli-entry.js')] as const,
};

const bearer = (key: string) => `Authorization: Bearer ${key}`;

describe('Claude Code: claude mcp add, then claude mcp list', () => {
  const list = (key: string) =>
    tell(programs.claude(), async ({ run, url }) => {
      await run('mcp', 'add', '--transport', 'http', 'boxwright', url, '--header', bearer(key));
      return run('mcp', 'list');
    });

  test('connects', async () => {
    expect(await list(api.key)).toContain('boxwright: URL (HTTP) - ✔ Connected');
  });

  test('shows a wrong key as such, in our words', async () => {
    const said = await list(WRONG_KEY);
    expect(said).toContain('HTTP 401');
    expect(said).toContain('send the header "Authorization: Bearer <API_KEY>" with a valid API key');
  });
});

describe('Qwen Code: qwen mcp add, then qwen mcp list', () => {
  const list = (key: string) =>
    tell(programs.qwen(), async ({ run, url }) => {
      await run('mcp', 'add', '--transport', 'http', 'boxwright', url, '--header', bearer(key));
      return run('mcp', 'list');
    });

  test('connects', async () => {
    expect(await list(api.key)).toContain('✓ boxwright: URL (http) - Connected');
  });

  test('does not connect with a wrong key', async () => {
    expect(await list(WRONG_KEY)).toContain('✗ boxwright: URL (http) - Disconnected');
  });
});

describe('OpenCode: a server in its settings, then opencode mcp list', () => {
  const list = (key: string) =>
    tell(programs.opencode(), async ({ run, write, url }) => {
      const server = { type: 'remote', url, headers: { Authorization: `Bearer ${key}` } };
      await write('.config/opencode/opencode.json', { mcp: { boxwright: server } });
      return run('mcp', 'list');
    });

  test('connects', async () => {
    expect(await list(api.key)).toMatch(/✓ boxwright connected\s+│\s+URL/);
  });

  test('shows that it was refused with a wrong key', async () => {
    const said = await list(WRONG_KEY);
    expect(said).toContain('✗ boxwright');
    expect(said).toContain('failed');
  });
});

test('README.md names the versions that are tried here', async () => {
  const readme = await readFile('README.md', 'utf8');
  const manifest = JSON.parse(await readFile('test/clients/programs/package.json', 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const names = {
    'Claude Code': '@anthropic-ai/claude-code',
    OpenCode: 'opencode-ai',
    'Qwen Code': '@qwen-code/qwen-code',
  };
  for (const [name, packageName] of Object.entries(names)) {
    const row = readme.split('\n').find((line) => line.startsWith(`| ${name}`));
    expect(row).toContain(`${manifest.dependencies[packageName]}: by a test`);
  }
});
