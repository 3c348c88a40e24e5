/** Who gets which URL of the archive from the chart. */
import { renderChart } from '../builders/chart.js';

interface Deployment {
  kind: string;
  metadata: { name: string };
  spec: {
    template: {
      spec: { containers: { env: { name: string; valueFrom?: { secretKeyRef?: { name: string; key: string } } }[] }[] };
    };
  };
}

/** Deployment -> `secret/key` of its URL, for those that have one. */
async function urls(...values: string[]): Promise<Record<string, string>> {
  const manifests = await renderChart<Deployment>(values);
  const found: Record<string, string> = {};
  for (const { kind, metadata, spec } of manifests) {
    if (kind !== 'Deployment') continue;
    const env = spec.template.spec.containers.flatMap((container) => container.env);
    const ref = env.find(({ name }) => name === 'BOXWRIGHT_ARCHIVE_URL')?.valueFrom?.secretKeyRef;
    if (ref !== undefined) found[metadata.name] = `${ref.name}/${ref.key}`;
  }
  return found;
}

test('nobody gets one without a Secret', async () => {
  expect(await urls()).toEqual({});
});

test('the controller writes; API and gateway get the key for reading, which may be the same', async () => {
  expect(await urls('archive.postgres.secretName=pg')).toEqual({
    'boxwright-api': 'pg/url',
    'boxwright-controller': 'pg/url',
    'boxwright-gateway': 'pg/url',
  });
  expect(await urls('archive.postgres.secretName=pg', 'archive.postgres.readKey=readUrl')).toEqual({
    'boxwright-api': 'pg/readUrl',
    'boxwright-controller': 'pg/url',
    'boxwright-gateway': 'pg/readUrl',
  });
});
