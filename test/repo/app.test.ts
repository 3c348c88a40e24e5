/** The web application as it is built: small, and nothing of it is inline or from elsewhere. */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildApp } from '../../hack/build-app.mjs';

/** What a person waits for at the first visit. */
const MAX_FIRST_LOAD_BYTES = 250 * 1024;

describe('the web application', () => {
  let dir: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'app-'));
    await buildApp(dir);
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  test('its first load has at most 250 KB, compressed', () => {
    const files = ['index.html', ...readdirSync(join(dir, 'assets')).map((name) => join('assets', name))];
    const bytes = files.map((file) => gzipSync(readFileSync(join(dir, file))).length);
    expect(bytes.length).toBeGreaterThan(3);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES);
  });

  test('its page names only files of its own, whose names carry their hash, and has nothing inline', () => {
    const page = readFileSync(join(dir, 'index.html'), 'utf8');
    const named = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path = '']) => path);
    expect(named).toHaveLength(4);
    expect(named.filter((path) => path !== 'BASE_PATH' && !/^assets\/\w+-[0-9A-Z]{8}\.\w+$/.test(path))).toEqual([]);
    expect(page).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=/);
  });
});
