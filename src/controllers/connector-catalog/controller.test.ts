import { RecordingApi } from '../../../test/builders/recording-api.js';
import { Connectors } from '../../api/v1alpha1/connector.js';
import type { Connector } from '../../api/v1alpha1/connector.js';
import { SHIPPED_CONNECTORS } from '../../connectors/catalog.js';
import { createConnectorCatalogController, desiredConnector } from './controller.js';

const signal = new AbortController().signal;
const [FIRST, SECOND] = SHIPPED_CONNECTORS;

function setup() {
  const api = new RecordingApi();
  const connectors = api.informer<Connector, Connector>({ type: Connectors, project: (connector) => connector });
  const part = createConnectorCatalogController({ api, caches: { connectors } });
  const enqueued: string[] = [];
  return { api, part, enqueued, start: () => part.watch((key) => enqueued.push(key)) };
}

function shipped(connector = FIRST): Connector {
  if (connector === undefined) throw new Error('the catalogue is empty');
  return desiredConnector(connector);
}

test('asks for every shipped entry at the start, and for one that changes', () => {
  const { api, enqueued, start } = setup();
  start();
  expect(enqueued).toEqual(SHIPPED_CONNECTORS.map(({ slug }) => slug));
  enqueued.length = 0;
  api.seed(Connectors, shipped(SECOND));
  api.seed(Connectors, { ...shipped(), metadata: { name: 'a-persons-own' } });
  expect(enqueued).toEqual([SECOND?.slug]);
});

test('makes a missing entry, and then writes nothing more', async () => {
  const { api, part } = setup();
  const { name } = shipped().metadata;
  await part.reconcile(name, signal);
  await part.reconcile(name, signal);
  expect(api.writes.map(({ verb, key }) => `${verb} ${key}`)).toEqual([`create ${name}`]);
  expect(api.peek(Connectors, name)?.metadata.labels).toEqual({ 'app.kubernetes.io/managed-by': 'boxwright' });
});

test('repairs an entry of ours that was changed', async () => {
  const { api, part } = setup();
  const { metadata, spec } = shipped();
  api.seed(Connectors, { ...shipped(), spec: { ...spec, name: 'Changed' } });
  await part.reconcile(metadata.name, signal);
  expect(api.writes.map(({ verb }) => verb)).toEqual(['replace']);
  expect(api.peek(Connectors, metadata.name)?.spec).toEqual(spec);
});

test('leaves a person’s own entry of the same name alone', async () => {
  const { api, part } = setup();
  const { metadata, spec } = shipped();
  api.seed(Connectors, { ...shipped(), metadata: { name: metadata.name }, spec: { ...spec, name: 'Mine' } });
  await part.reconcile(metadata.name, signal);
  expect(api.writes).toEqual([]);
});

test('somebody who made the object at the same time wins for now', async () => {
  const { api, part } = setup();
  const { name } = shipped().metadata;
  const reconciled = part.reconcile(name, signal);
  api.seed(Connectors, { ...shipped(), metadata: { name } });
  await expect(reconciled).resolves.toBeUndefined();
});

test('other names are nobody’s business', async () => {
  const { api, part } = setup();
  await part.reconcile('a-persons-own', signal);
  expect(api.writes).toEqual([]);
});
