/** Every sample of examples/ is taken by a real API server as it is. */
import { readFileSync, readdirSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { Namespaces, Secrets } from '../../src/kube/core-types.js';
import { isAlreadyExists } from '../../src/kube/errors.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

const samples = readdirSync('examples')
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) =>
    parseAllDocuments(readFileSync(`examples/${file}`, 'utf8')).map(
      (document) => [file, document.toJS() as KubeObject] as const,
    ),
  )
  .map(([file, object]) => [`${object.kind} of ${file}`, object] as const);

let server: TestApiServer;
const made: [ResourceType, KubeObject][] = [];

beforeAll(async () => {
  server = await startApiServer();
  await server.applyCrds();
});

afterAll(async () => {
  for (const [type, { metadata }] of made) {
    const { name, namespace } = metadata;
    await server.api.delete(type, namespace === undefined ? { name } : { name, namespace });
  }
  await server.stop();
});

async function ensureNamespace(name: string): Promise<void> {
  try {
    await server.api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** The spec; a Secret has none. */
function specOf(object: KubeObject & { spec?: object }): object {
  return object.spec ?? {};
}

test.each(samples)('%s', async (_name, sample) => {
  const type = [...ALL_KINDS, Secrets].find(({ kind }) => kind === sample.kind);
  if (type === undefined) throw new Error(`${sample.kind} is no kind of ours`);
  if (sample.metadata.namespace !== undefined) await ensureNamespace(sample.metadata.namespace);
  const created = await server.api.create(type, sample);
  made.push([type, created]);
  // What the API server does not know it drops: a sample with a misspelt field would not come back whole.
  expect(specOf(created)).toMatchObject(specOf(sample));
});
