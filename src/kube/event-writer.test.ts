import { RecordingApi, apiError } from '../../test/builders/recording-api.js';
import type { ObjectEvent } from '../runtime/event-recorder.js';
import { KubeApiError } from './errors.js';
import { createEventWriter } from './event-writer.js';

const signal = new AbortController().signal;
const EVENT: ObjectEvent = {
  subject: { apiVersion: 'example.com/v1', kind: 'Thing', name: 'one', namespace: 'things', uid: 'uid-1' },
  type: 'Warning',
  reason: 'Broken',
  note: 'It broke.',
  action: 'Used',
  at: '2026-01-01T00:00:00Z',
};

function setUp() {
  const api = new RecordingApi();
  return { api, writer: createEventWriter(api, { controller: 'example.com/controller', instance: 'pod-0' }) };
}

test('an event is an object beside the one it is about, and says what events.k8s.io/v1 asks for', async () => {
  const { api, writer } = setUp();
  await writer.create(EVENT, undefined, signal);
  expect(api.writes).toEqual([
    {
      verb: 'create',
      resource: 'events',
      key: expect.stringMatching(/^things\/one\.[0-9a-f]{16}$/),
      body: {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { namespace: 'things', name: expect.any(String) },
        eventTime: '2026-01-01T00:00:00.000000Z',
        reportingController: 'example.com/controller',
        reportingInstance: 'pod-0',
        regarding: EVENT.subject,
        type: 'Warning',
        reason: 'Broken',
        note: 'It broke.',
        action: 'Used',
      },
    },
  ]);
});

test('an event of an object without a namespace stands in default', async () => {
  const { api, writer } = setUp();
  const { namespace: _none, ...subject } = EVENT.subject;
  await writer.create({ ...EVENT, subject }, undefined, signal);
  expect(api.writes[0]?.key).toMatch(/^default\/one\./);
});

test('a repetition changes the count and the last time of the same object', async () => {
  const { api, writer } = setUp();
  await writer.create(EVENT, undefined, signal);
  await writer.repeat(EVENT, { count: 3, lastAt: '2026-01-01T00:05:00.500Z' }, signal);
  expect(api.writes[1]).toEqual({
    verb: 'patch',
    resource: 'events',
    key: api.writes[0]?.key,
    body: { series: { count: 3, lastObservedTime: '2026-01-01T00:05:00.500000Z' } },
  });
});

test('who tells the same of the same time again changes nothing, and another time is another event', async () => {
  const { api, writer } = setUp();
  await writer.create(EVENT, undefined, signal);
  await createEventWriter(api, { controller: 'example.com/controller', instance: 'pod-1' }).create(
    EVENT,
    undefined,
    signal,
  );
  await writer.create({ ...EVENT, at: '2026-01-01T00:00:01Z' }, undefined, signal);
  const [first, again, other] = api.writes.map(({ key }) => key);
  expect([first === again, first === other]).toEqual([true, false]);
});

test('nothing is said about a namespace that is being deleted, and other refusals are errors', async () => {
  const { api, writer } = setUp();
  const details = { causes: [{ reason: 'NamespaceTerminating' }] };
  const error = new KubeApiError({ status: 403, reason: 'Forbidden', message: 'being terminated', details });
  api.failNext({ verb: 'create', error });
  await writer.create(EVENT, undefined, signal);
  api.failNext({ verb: 'create', error: apiError(403, 'Forbidden') });
  await expect(writer.create(EVENT, undefined, signal)).rejects.toThrow('Forbidden');
});

test('a long name stays a valid one', async () => {
  const { api, writer } = setUp();
  const name = `${'a'.repeat(198)}--${'b'.repeat(50)}`;
  await writer.create({ ...EVENT, subject: { ...EVENT.subject, name } }, undefined, signal);
  expect(api.writes[0]?.key).toMatch(/^things\/a{198}\.[0-9a-f]{16}$/);
});
