import { randomBytes } from 'node:crypto';
import * as fc from '../../test/builders/properties.js';
import { packedFiles } from '../../test/builders/skill-files.js';
import { turnsDuring } from '../../test/builders/turns.js';
import {
  DamagedArchiveError,
  PAGE_CHARACTERS,
  decodeContent,
  encodingOf,
  packFiles,
  pageOf,
  unpackFiles,
} from './archive.js';
import { hasFrontMatter } from './skill-md.js';
import { folderAndFile, skillPathProblem } from './skill-path.js';

describe('the archive', () => {
  test('gives back what was packed, whatever it is', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string({ minLength: 1 }), fc.uint8Array({ maxLength: 300 })),
        async (contents) => {
          const files = new Map(Object.entries(contents).map(([path, bytes]) => [path, Buffer.from(bytes)]));
          const unpacked = unpackFiles(await packFiles(files));
          expect(Object.fromEntries(unpacked)).toEqual(Object.fromEntries(files));
        },
      ),
      { numRuns: 100 },
    );
  });

  test('of no file is no archive', async () => {
    expect(await packFiles(new Map())).toEqual({ files: [] });
    expect(unpackFiles({ files: [] }).size).toBe(0);
  });

  test('has an index in order of the paths, and equal files give equal archives', async () => {
    const [a, b] = [Buffer.from('text'), Buffer.from([0, 1, 2])];
    const stored = await packFiles(new Map([['z.txt', a], ['a/b.bin', b]])); // prettier-ignore
    expect(stored.files).toEqual([
      { path: 'a/b.bin', bytes: 3, encoding: 'base64' },
      { path: 'z.txt', bytes: 4, encoding: 'utf8' },
    ]);
    expect(await packFiles(new Map([['a/b.bin', b], ['z.txt', a]]))).toEqual(stored); // prettier-ignore
  });

  test('of 1 MiB that cannot be compressed fits into the field', async () => {
    const files = new Map(Array.from({ length: 4 }, (_, n) => [`${n}`, randomBytes(256 * 1024)]));
    expect((await packFiles(files)).archive?.length).toBeLessThanOrEqual(1_450_000);
  });

  test('is made while others are served', async () => {
    expect(await turnsDuring(() => packFiles(new Map([['a', Buffer.alloc(1000)]])))).toBeGreaterThan(0);
  });

  test.each([
    ['is not base64 of gzip', { files: [{ path: 'a', bytes: 1, encoding: 'utf8' as const }], archive: 'AAAA' }],
    ['is missing', { files: [{ path: 'a', bytes: 1, encoding: 'utf8' as const }] }],
    [
      'is shorter than its index',
      {
        ...packedFiles(new Map([['a', Buffer.from('x')]])),
        files: [{ path: 'a', bytes: 2, encoding: 'utf8' as const }],
      },
    ],
    ['inflates to more than a skill has', packedFiles(new Map([['a', Buffer.alloc(1024 * 1024 + 1)]]))],
  ])('that %s is damaged', (_what, stored) => {
    expect(() => unpackFiles(stored)).toThrow(DamagedArchiveError);
  });
});

describe('contents', () => {
  test.each([
    ['text', Buffer.from('grüße 😀'), 'utf8'],
    ['nothing', Buffer.alloc(0), 'utf8'],
    ['half a character', Buffer.from([0xc3]), 'base64'],
    ['a zero byte', Buffer.from('a\0b'), 'base64'],
    ['an image', Buffer.from([0x89, 0x50, 0x4e, 0x47]), 'base64'],
  ])('%s is %s', (_what, content, encoding) => {
    expect(encodingOf(content)).toBe(encoding);
  });

  test.each([
    ['QUJD', 'ABC'],
    ['QUI=', 'AB'],
    ['QU\nJD\n', 'ABC'],
    ['', ''],
  ])('%j is base64', (text, expected) => {
    expect(decodeContent(text, 'base64')?.toString()).toBe(expected);
  });

  test.each(['QUJ', 'Q*==', 'QUJD=', 'hello world!', 'QQ==QQ=='])('%j is not', (text) => {
    expect(decodeContent(text, 'base64')).toBeUndefined();
  });
});

describe('pages', () => {
  test('of a long text join to the text, without a broken character', () => {
    const text = `a${'😀'.repeat(120_000)}`;
    const pages: string[] = [];
    let offset: number | null = 0;
    while (offset !== null) {
      const page = pageOf(Buffer.from(text), 'utf8', offset);
      expect(page.totalChars).toBe(240_001);
      expect(page.content.length).toBeLessThanOrEqual(PAGE_CHARACTERS);
      expect(page.content.isWellFormed()).toBe(true);
      pages.push(page.content);
      offset = page.nextOffset;
    }
    expect(pages).toHaveLength(3);
    expect(pages.join('')).toBe(text);
  });

  test('of base64 can be decoded one by one', () => {
    const content = randomBytes(200_000);
    const first = pageOf(content, 'base64', 0);
    expect(first.nextOffset).toBe(100_000);
    const parts: Buffer[] = [];
    for (let offset: number | null = 0; offset !== null;) {
      const page: ReturnType<typeof pageOf> = pageOf(content, 'base64', offset);
      parts.push(Buffer.from(page.content, 'base64'));
      offset = page.nextOffset;
    }
    expect(Buffer.concat(parts).equals(content)).toBe(true);
  });

  test('exactly one page has no next one, and beyond the end is nothing', () => {
    const text = 'x'.repeat(PAGE_CHARACTERS);
    expect(pageOf(Buffer.from(text), 'utf8', 0)).toEqual({ content: text, nextOffset: null, totalChars: 100_000 });
    expect(pageOf(Buffer.from(text), 'utf8', 100_001)).toEqual({ content: '', nextOffset: null, totalChars: 100_000 });
  });
});

describe('SKILL.md', () => {
  test.each([
    ['---\nname: x\ndescription: y\n---\n# Body', true],
    ['---\r\ndescription: y\r\n---\r\n', true],
    ['---\nA rule, then text\n---\nmore', false],
    ['# Title\n---\nname: x\n---\n', false],
    ['', false],
  ])('%j: front matter of its own is %s', (body, expected) => {
    expect(hasFrontMatter(body)).toBe(expected);
  });
});

describe('paths', () => {
  test.each([
    'a',
    'scripts/check.sh',
    'a/b/c.txt',
    '.hidden',
    'ünïcode 😀.md',
    'sub/SKILL.md',
    '...',
    '__proto__',
    'ab:c',
  ])('%s can be used', (path) => {
    expect(skillPathProblem(path)).toBeUndefined();
  });

  test.each([
    ['', '1 to 256'],
    ['x'.repeat(257), '1 to 256'],
    ['/etc/passwd', 'relative'],
    ['C:/windows', 'relative'],
    ['../up', '".."'],
    ['a/../../b', '".."'],
    ['a/./b', '"."'],
    ['a//b', 'empty parts'],
    ['a/', 'empty parts'],
    ['a\\b', 'backslash'],
    ['a\0b', 'control'],
    ['a\nb', 'control'],
    ['\ud800', 'control'],
    ['SKILL.md', 'SKILL.md'],
    ['skill.MD', 'SKILL.md'],
  ])('%j cannot', (path, message) => {
    expect(skillPathProblem(path)).toContain(message);
  });

  test('a file cannot be the folder of another one', () => {
    expect(folderAndFile(['a/b/c', 'x', 'a/b'])).toBe('a/b');
    expect(folderAndFile(['a/b', 'a/c', 'ab'])).toBeUndefined();
  });
});
