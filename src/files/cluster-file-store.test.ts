import { filePartName } from '../api/names.js';
import { AgentRunFileParts, MAX_FILE_PART_BYTES, MAX_FILE_PARTS } from '../api/v1alpha1/agent-run-file-part.js';
import type { RunFile } from '../api/v1alpha1/agent-run.js';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { apiError, RecordingApi } from '../../test/builders/recording-api.js';
import { ClusterFileStore, digestOfFile } from './cluster-file-store.js';
import { FilesFullError, type FilePlace } from './file-store.js';

const OWNER = { namespace: 'bw-lab', name: 'helper-1', uid: 'uid-1' };
const SMALL = Buffer.from('report');
const LARGE = Buffer.alloc(MAX_FILE_PART_BYTES + 3, 7);
const signal = new AbortController().signal;

function setUp() {
  const api = new RecordingApi({ clock: new FakeClock() });
  const names = () =>
    api
      .all(AgentRunFileParts)
      .map(({ metadata }) => metadata.name)
      .sort();
  return { api, names, store: new ClusterFileStore(api) };
}

function fileOf(content: Buffer, place: FilePlace): RunFile {
  return { name: 'a', mediaType: 'b', bytes: content.length, sha256: digestOfFile(content), ...place };
}

describe('files in the cluster', () => {
  test('a file is read as it was stored, in as few pieces as it needs, which belong to the run', async () => {
    const { api, store, names } = setUp();
    const large = await store.put(OWNER, LARGE, 0);
    const small = await store.put(OWNER, SMALL, 2);
    const empty = await store.put(OWNER, Buffer.alloc(0), 3);
    expect([large, small, empty]).toEqual([
      { part: 0, parts: 2 },
      { part: 2, parts: 1 },
      { part: 3, parts: 1 },
    ]);
    expect(names()).toEqual([0, 1, 2, 3].map((position) => filePartName('helper-1', position)));
    expect(api.all(AgentRunFileParts)[0]?.metadata.ownerReferences).toEqual([
      { apiVersion: 'boxwright.dev/v1alpha1', kind: 'AgentRun', name: 'helper-1', uid: 'uid-1', controller: true },
    ]);
    for (const [content, place] of [
      [LARGE, large],
      [SMALL, small],
      [Buffer.alloc(0), empty],
    ] as const) {
      expect((await store.read(OWNER, fileOf(content, place), signal))?.equals(content)).toBe(true);
    }
  });

  test('what is missing, of another run or not what was published is not given out', async () => {
    const { store } = setUp();
    const place = await store.put(OWNER, SMALL, 0);
    const file = fileOf(SMALL, place);
    await expect(store.read({ ...OWNER, uid: 'uid-2' }, file, signal)).resolves.toBeUndefined();
    await expect(store.read(OWNER, { ...file, part: 1 }, signal)).resolves.toBeUndefined();
    await expect(store.read(OWNER, { ...file, sha256: digestOfFile(LARGE) }, signal)).resolves.toBeUndefined();
  });

  // The process is lost at each write of a file: before it, or with its answer.
  test.each([
    [0, false],
    [0, true],
    [1, false],
    [1, true],
  ])('a process that is lost at write %i (written: %s) leaves nothing that stays', async (write, afterWrite) => {
    const { api, store, names } = setUp();
    const key = `${OWNER.namespace}/${filePartName(OWNER.name, write)}`;
    const lost = {
      verb: 'create',
      resource: 'agentrunfileparts',
      key,
      error: apiError(500, 'lost'),
      afterWrite,
    } as const;
    api.failNext(lost);
    await expect(store.put(OWNER, LARGE, 0)).rejects.toThrow('lost');

    // Repeated by another process, it is one file.
    const again = new ClusterFileStore(api);
    const place = await again.put(OWNER, LARGE, 0);
    expect(place).toEqual({ part: 0, parts: 2 });
    expect(names()).toHaveLength(2);

    // Not repeated, another file comes behind what is there, and all goes with the run.
    const other = setUp();
    other.api.failNext(lost);
    await expect(other.store.put(OWNER, LARGE, 0)).rejects.toThrow('lost');
    const left = other.names().length;
    await expect(other.store.put(OWNER, SMALL, 0)).resolves.toEqual({ part: left, parts: 1 });
    await other.store.remove(OWNER, signal);
    expect(other.names()).toEqual([]);
  });

  test.each([0, 1, 2])('a removal that is lost at write %i is ended by the next', async (write) => {
    const { api, store, names } = setUp();
    await store.put(OWNER, LARGE, 0);
    await store.put(OWNER, SMALL, 2);
    const key = `${OWNER.namespace}/${filePartName(OWNER.name, write)}`;
    api.failNext({ verb: 'delete', resource: 'agentrunfileparts', key, error: apiError(500, 'lost') });
    await expect(store.remove(OWNER, signal)).rejects.toThrow('lost');
    await store.remove(OWNER, signal);
    expect(names()).toEqual([]);
  });

  test('the pieces of a new run of the same name are left alone, and in nobody’s way for long', async () => {
    const { store, names } = setUp();
    await store.put({ ...OWNER, uid: 'uid-2' }, SMALL, 0);
    await store.remove(OWNER, signal);
    expect(names()).toHaveLength(1);
    await expect(store.put(OWNER, SMALL, 0)).rejects.toThrow('earlier run');
  });

  test('there is an end to what a run can store', async () => {
    const { store } = setUp();
    await expect(store.put(OWNER, SMALL, MAX_FILE_PARTS)).rejects.toThrow(FilesFullError);
  });
});
