/** The skill tools: list_skills, get_skill, read_skill_file, upsert_skill, delete_skill. */
import { randomBytes } from 'node:crypto';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { apiError } from '../builders/recording-api.js';
import { KEY, McpHarness } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
const OBJECT = 'bw-acme-box/greeter.code-review';
const NEW = { name: 'Code review', description: 'Use it to review code.', body: '# How\nRead it.' };
const NOW = '2026-05-01T10:00:00.000Z';
const KIB = 1024;

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

const upsert = (args: object) => harness.call('upsert_skill', { agentId: AGENT, ...args });
const read = (path: string, more: object = {}) =>
  harness.call('read_skill_file', { agentId: AGENT, slug: 'code-review', path, ...more });

async function refused(args: object, error: string) {
  const answer = await upsert(args);
  expect(answer.raw).toEqual({ content: [{ type: 'text', text: JSON.stringify({ error }) }], isError: true });
  expect(harness.api.writes).toEqual([]);
}

/** A skill with two files. */
async function made() {
  await upsert({
    ...NEW,
    files: [
      { path: 'scripts/check.sh', content: 'echo ok\n' },
      { path: 'logo.png', content: 'iVBORwA=', encoding: 'base64' },
    ],
  });
  harness.api.clearRecords();
  harness.barriers.length = 0;
}

describe('upsert_skill creates', () => {
  test('a skill with its files in one write', async () => {
    const { payload } = await upsert({ ...NEW, files: [{ path: 'a.txt', content: 'grüße' }] });
    expect(payload).toEqual({
      slug: 'code-review',
      ...NEW,
      files: [{ path: 'a.txt', bytes: 7 }],
      updatedAt: NOW,
    });
    expect(harness.requests()).toEqual(['create agentskills']);
    expect(harness.barriers).toEqual([{ kind: 'AgentSkill', resourceVersion: expect.stringMatching(/^\d+$/) }]);
    expect(harness.api.peek(AgentSkills, OBJECT)).toMatchObject({
      metadata: {
        labels: { 'boxwright.dev/agent': 'greeter' },
        annotations: { 'boxwright.dev/requested-by': KEY.slice(0, 11) },
      },
      spec: { agent: 'greeter', files: [{ path: 'a.txt', bytes: 7, encoding: 'utf8' }], updatedAt: NOW },
    });
  });

  test('nothing under a slug that is taken', async () => {
    await made();
    expect((await upsert({ ...NEW, name: 'CODE review' })).payload).toEqual({
      error:
        'this agent already has a skill with slug code-review: pass slug "code-review" to update it, or choose another name',
    });
  });

  const file = (path: string, content = 'x', more: object = {}) => ({ ...NEW, files: [{ path, content, ...more }] });
  const big = 'x'.repeat(256 * KIB);

  test.each([
    ['no name', { ...NEW, name: undefined }, 'missing required argument: name (string) is needed to create a skill; to update one, pass its slug'],
    ['no description', { ...NEW, description: null }, 'missing required argument: description (string) is needed to create a skill; to update one, pass its slug'],
    ['no body', { ...NEW, body: undefined }, 'missing required argument: body (string) is needed to create a skill; to update one, pass its slug'],
    ['a body with front matter', { ...NEW, body: '---\nname: x\ndescription: y\n---\n# How' }, 'argument "body" must not begin with front matter (---): pass name and description as arguments, and the text after it as body'],
    ['a body above 256 KiB', { ...NEW, body: `${big}y` }, 'argument "body" must have at most 262144 bytes (256 KiB)'],
    ['an absolute path', file('/etc/passwd'), 'argument "files.0.path" must be relative to the skill, for example scripts/check.sh'],
    ['a path upwards', file('a/../../b'), 'argument "files.0.path" must not have empty parts, "." or ".."'],
    ['a backslash', file('a\\b'), 'argument "files.0.path" must not have a backslash: separate folders by /'],
    ['a zero byte', file('a\0b'), 'argument "files.0.path" must not have control characters'],
    ['SKILL.md', file('SKILL.md'), 'argument "files.0.path" must not be SKILL.md: its text is the argument body'],
    ['a path that is too long', file('x'.repeat(257)), 'argument "files.0.path" must have 1 to 256 characters'],
    ['base64 that is none', file('a', 'hello!', { encoding: 'base64' }), 'argument "files.0.content" is not valid base64'],
    ['an encoding that is none', file('a', 'x', { encoding: 'latin1' }), 'argument "files.0.encoding" must be one of: utf8, base64'],
    ['a file above 256 KiB', file('a', `${big}y`), 'argument "files.0.content" has 262145 bytes; a file has at most 262144 (256 KiB)'],
    ['a file twice', { ...NEW, files: [{ path: 'a', content: '1' }, { path: 'a', content: '2' }] }, 'argument "files.1.path" is in files twice'],
    ['a file that is a folder too', { ...NEW, files: [{ path: 'a/b', content: '1' }, { path: 'a', content: '2' }] }, '"a" cannot be a file and a folder of the skill at once'],
    ['more than 1 MiB in all', { ...NEW, files: [1, 2, 3, 4].map((n) => ({ path: `${n}`, content: big })) }, 'the skill would have 1048590 bytes; at most 1048576 (1 MiB) are possible, body included'],
    ['more than 100 files', { ...NEW, files: Array.from({ length: 101 }, (_, n) => ({ path: `${n}`, content: 'x' })) }, 'argument "files" must have at most 100 items'],
    ['files to remove', { ...NEW, removeFiles: ['a'] }, 'argument "removeFiles.0": the skill has no such file'],
    ['a path in both lists', { ...NEW, files: [{ path: 'a', content: '1' }], removeFiles: ['b', 'a'] }, 'argument "removeFiles.1" is in files too: a file is either written or removed'],
    ['files that are no list', { ...NEW, files: 'a' }, 'argument "files" must be an array, got a string'],
    ['a file without content', { ...NEW, files: [{ path: 'a' }] }, 'missing required argument: files.0.content (string)'],
    ['a file that is a text', { ...NEW, files: ['a'] }, 'argument "files.0" must be an object, got a string'],
    ['a number as name', { ...NEW, name: 5 }, 'argument "name" must be a string, got a number'],
    ['a description that is too long', { ...NEW, description: 'd'.repeat(1025) }, 'argument "description" must have at most 1024 characters'],
    ['removeFiles with a number', { ...NEW, removeFiles: [1] }, 'argument "removeFiles.0" must be a string, got a number'],
  ])('nothing from %s', async (_what, args, error) => {
    await refused(args, error);
  }); // prettier-ignore

  test('a skill of 1 MiB that cannot be compressed', async () => {
    const files = [0, 1, 2, 3].map((n) => ({
      path: `${n}.bin`,
      content: randomBytes(n === 3 ? 256 * KIB - 20 : 256 * KIB).toString('base64'),
      encoding: 'base64',
    }));
    expect((await upsert({ ...NEW, body: 'short', files })).isError).toBe(false);
  });

  test('nothing when the cluster would not store it', async () => {
    const files = [0, 1, 2].map((n) => ({
      path: `${n}`,
      content: randomBytes(256 * KIB).toString('base64'),
      encoding: 'base64',
    }));
    const body = '\u0001'.repeat(256 * KIB);
    await refused({ ...NEW, body, files }, 'the skill is too large to be stored: make body or files smaller');
  });
});

describe('upsert_skill updates', () => {
  test('only what is passed: one read and one write', async () => {
    await made();
    await harness.clock.advance(1000);
    const { payload } = await upsert({ slug: 'code-review', description: 'Another one.' });
    expect(payload).toEqual({
      slug: 'code-review',
      ...NEW,
      description: 'Another one.',
      files: [{ path: 'logo.png', bytes: 5 }, { path: 'scripts/check.sh', bytes: 8 }],
      updatedAt: '2026-05-01T10:00:01.000Z',
    }); // prettier-ignore
    expect(harness.requests()).toEqual(['get agentskills', 'replace agentskills']);
    expect((await read('scripts/check.sh')).payload['content']).toBe('echo ok\n');
  });

  test('files: adds, replaces and removes in one write', async () => {
    await made();
    const { payload } = await upsert({
      slug: 'code-review',
      files: [{ path: 'scripts/check.sh', content: 'echo better\n' }, { path: 'new.md', content: '' }],
      removeFiles: ['logo.png'],
    }); // prettier-ignore
    expect(payload['files']).toEqual([
      { path: 'new.md', bytes: 0 },
      { path: 'scripts/check.sh', bytes: 12 },
    ]);
    expect(harness.api.writes).toHaveLength(1);
    expect((await read('scripts/check.sh')).payload['content']).toBe('echo better\n');
    expect((await read('new.md')).payload).toMatchObject({ content: '', totalChars: 0, nextOffset: null });
    expect((await read('logo.png')).payload['error']).toContain('file not found');
  });

  test('the name without the slug', async () => {
    await made();
    expect((await upsert({ slug: 'code-review', name: 'Reviewing' })).payload).toMatchObject({
      slug: 'code-review',
      name: 'Reviewing',
    });
  });

  test('nothing that is as it was, with no write', async () => {
    await made();
    const { payload } = await upsert({
      ...NEW,
      slug: 'code-review',
      files: [{ path: 'scripts/check.sh', content: 'echo ok\n' }],
    });
    expect(payload['updatedAt']).toBe(NOW);
    expect(harness.api.writes).toEqual([]);
  });

  test('nothing of a failed one: a missing file to remove leaves all as it was', async () => {
    await made();
    const before = harness.api.peek(AgentSkills, OBJECT);
    await refused(
      { slug: 'code-review', body: 'new', files: [{ path: 'b', content: 'c' }], removeFiles: ['nope'] },
      'argument "removeFiles.0": the skill has no such file',
    );
    expect(harness.api.peek(AgentSkills, OBJECT)).toEqual(before);
  });

  test('of two writers at once neither loses a file', async () => {
    await made();
    await Promise.all(
      ['a', 'b', 'c'].map((path) => upsert({ slug: 'code-review', files: [{ path: `${path}.txt`, content: path }] })),
    );
    const { payload } = await harness.call('get_skill', { agentId: AGENT, slug: 'code-review' });
    expect((payload['files'] as { path: string }[]).map(({ path }) => path)).toEqual([
      'a.txt', 'b.txt', 'c.txt', 'logo.png', 'scripts/check.sh',
    ]); // prettier-ignore
  });

  test('an unknown slug answers with the nearest ones', async () => {
    await made();
    await refused(
      { slug: 'codereview', body: 'x' },
      'skill not found: this agent has no skill with this slug; its slugs are: code-review',
    );
  });
});

describe('reading', () => {
  test('list_skills: all of the agent’s own by slug, without body and without a request', async () => {
    harness.seedSkill('acme-box', 'greeter', 'b', { files: { 'x.txt': 'abc' } });
    harness.seedSkill('acme-box', 'greeter', 'a', { metadata: { creationTimestamp: '2026-04-01T00:00:00Z' } });
    harness.seedSkill('acme-box', 'other', 'c');
    harness.api.clearRecords();
    expect((await harness.call('list_skills', { agentId: AGENT })).payload).toEqual({
      skills: [
        { slug: 'a', name: 'a', description: 'For a.', files: [], updatedAt: '2026-04-01T00:00:00.000Z' },
        { slug: 'b', name: 'b', description: 'For b.', files: [{ path: 'x.txt', bytes: 3 }], updatedAt: NOW },
      ],
    });
    expect(harness.requests()).toEqual([]);
    expect((await harness.call('get_agent', { agentId: AGENT })).payload['skills']).toEqual([
      { slug: 'a', name: 'a', description: 'For a.' },
      { slug: 'b', name: 'b', description: 'For b.' },
    ]);
  });

  test('get_skill: the whole record with one GET', async () => {
    await made();
    expect((await harness.call('get_skill', { agentId: AGENT, slug: 'code-review' })).payload).toEqual({
      slug: 'code-review',
      ...NEW,
      files: [{ path: 'logo.png', bytes: 5 }, { path: 'scripts/check.sh', bytes: 8 }],
      updatedAt: NOW,
    }); // prettier-ignore
    expect(harness.requests()).toEqual(['get agentskills']);
  });

  test('read_skill_file: text and base64 with one GET each', async () => {
    await made();
    expect((await read('scripts/check.sh')).payload).toEqual({
      slug: 'code-review', path: 'scripts/check.sh', encoding: 'utf8', content: 'echo ok\n', offset: 0, nextOffset: null, totalChars: 8,
    }); // prettier-ignore
    expect((await read('logo.png')).payload).toMatchObject({ encoding: 'base64', content: 'iVBORwA=', totalChars: 8 });
    expect(harness.requests()).toEqual(['get agentskills', 'get agentskills']);
  });

  test('read_skill_file: pages of 100,000 characters', async () => {
    await made();
    const text = 'line\n'.repeat(50_000);
    await upsert({ slug: 'code-review', files: [{ path: 'long.txt', content: text }] });
    const pages: string[] = [];
    for (let offset: unknown = 0; offset !== null;) {
      const { payload } = await read('long.txt', { offset });
      expect(payload).toMatchObject({ offset, totalChars: 250_000 });
      pages.push(String(payload['content']));
      offset = payload['nextOffset'];
    }
    expect(pages.map(({ length }) => length)).toEqual([100_000, 100_000, 50_000]);
    expect(pages.join('')).toBe(text);
  });

  test.each([
    ['read_skill_file', { slug: 'code-review', path: 'SKILL.md' }, 'SKILL.md is not a file of the skill: get_skill returns its text as body'],
    ['read_skill_file', { slug: 'code-review', path: 'scripts/chek.sh' }, 'file not found: the skill has no file of this path; its files are: scripts/check.sh, logo.png'],
    ['read_skill_file', { slug: 'code-review', path: '__proto__' }, 'file not found: the skill has no file of this path; its files are: logo.png, scripts/check.sh'],
    ['read_skill_file', { slug: 'code-review', path: 'logo.png', offset: -1 }, 'argument "offset" must be at least 0'],
    ['read_skill_file', { slug: 'code-review', path: 'logo.png', offset: 1.5 }, 'argument "offset" must be a whole number, got a number with a fraction'],
    ['read_skill_file', { slug: 'code-review' }, 'missing required argument: path (string)'],
    ['get_skill', {}, 'missing required argument: slug (string)'],
    ['get_skill', { slug: '' }, 'argument "slug" must have at least 1 character'],
    ['get_skill', { slug: 'Code Review' }, 'skill not found: this agent has no skill with this slug; its slugs are: code-review'],
  ])('%s with %j says what is wrong', async (tool, args, error) => {
    await made();
    const { isError, payload } = await harness.call(tool, { agentId: AGENT, ...args });
    expect([isError, payload]).toEqual([true, { error }]);
  }); // prettier-ignore

  test('a manifest with damaged files says so', async () => {
    harness.seedSkill('acme-box', 'greeter', 'bad', {
      spec: { files: [{ path: 'a', bytes: 3, encoding: 'utf8' }], archive: 'AAAA' },
    });
    const { payload } = await harness.call('read_skill_file', { agentId: AGENT, slug: 'bad', path: 'a' });
    expect(payload['error']).toContain('the files of this skill are damaged');
    expect((await harness.call('get_skill', { agentId: AGENT, slug: 'bad' })).isError).toBe(false);
  });
});

describe('delete_skill', () => {
  test('needs confirm, and then deletes exactly the object that was seen', async () => {
    await made();
    const uid = harness.api.peek(AgentSkills, OBJECT)?.metadata.uid;
    const asked = await harness.call('delete_skill', { agentId: AGENT, slug: 'code-review' });
    expect(asked.payload).toEqual({
      error:
        'delete_skill cannot be undone. Ask the account owner; once they have agreed, call again with confirm: true.',
    });
    expect(harness.requests()).toEqual([]);
    const { payload } = await harness.call('delete_skill', { agentId: AGENT, slug: 'code-review', confirm: true });
    expect(payload).toEqual({ deleted: 'code-review' });
    expect(harness.api.writes).toMatchObject([{ verb: 'delete', body: { uid } }]);
    expect(harness.barriers).toEqual([{ kind: 'AgentSkill', gone: { key: OBJECT, uid } }]);
    expect((await harness.call('get_skill', { agentId: AGENT, slug: 'code-review' })).isError).toBe(true);
  });
});

test.each([
  ['upsert_skill', { slug: 'notes', body: 'x' }],
  ['delete_skill', { slug: 'notes', confirm: true }],
])('%s is refused for a skill under GitOps', async (tool, args) => {
  harness.seedSkill('acme-box', 'greeter', 'notes', {
    metadata: { annotations: { 'boxwright.dev/managed-by': 'gitops' } },
  });
  harness.api.clearRecords();
  const { payload } = await harness.call(tool, { agentId: AGENT, ...args });
  expect(payload).toEqual({ error: 'managed by GitOps: change it in its source' });
  expect(harness.api.writes).toEqual([]);
});

test('a conflict that does not end is a readable error', async () => {
  await made();
  harness.api.failNext({ verb: 'replace', error: apiError(409, 'Conflict'), times: 5 });
  const { payload } = await upsert({ slug: 'code-review', body: 'x' });
  expect(payload).toEqual({ error: 'somebody else changed the object at the same time: try again' });
});
