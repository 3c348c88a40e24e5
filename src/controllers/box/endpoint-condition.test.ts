import { FakeClock } from '../../../test/builders/fake-clock.js';
import { makeBox } from '../../../test/builders/run-objects.js';
import { findCondition } from '../../api/conditions.js';
import { endpointDigest } from '../../api/endpoint.js';
import type { Box, EndpointProbe } from '../../api/v1alpha1/box.js';
import { showEndpoint } from './endpoint-condition.js';

const NOW = '2026-01-01T00:00:00.000Z';
const ENDPOINT = { baseUrl: 'http://vllm:8000/v1', model: 'qwen3', secretRef: { name: 'models', key: 'API_KEY' } };

function probe(result: EndpointProbe['result'], endpoint = ENDPOINT): EndpointProbe {
  return { digest: endpointDigest(endpoint), keyVersion: '7', probedAt: NOW, result, message: `it is ${result}` };
}

function shown(endpoint: object | undefined, status: Box['status'] = {}): Box {
  const { engine: _engine, ...spec } = makeBox().spec;
  const box = { ...makeBox(), spec: { ...spec, ...(endpoint === undefined ? {} : { endpoint }) }, status } as Box;
  showEndpoint(box, new FakeClock());
  return box;
}

const condition = (box: Box) => findCondition(box.status?.conditions, 'EndpointReady');

test('says what the gateway found', () => {
  expect(condition(shown(ENDPOINT, { endpointProbe: probe('ToolCallsWork') }))).toMatchObject({
    status: 'True',
    reason: 'ToolCallsWork',
    message: 'it is ToolCallsWork',
  });
  expect(condition(shown(ENDPOINT, { endpointProbe: probe('NoToolCall') }))).toMatchObject({
    status: 'False',
    reason: 'NoToolCall',
    message: 'it is NoToolCall',
  });
});

test.each([
  ['nobody has looked', undefined],
  ['another model was tried', probe('ToolCallsWork', { ...ENDPOINT, model: 'other' })],
  ['another key was sent', probe('ToolCallsWork', { ...ENDPOINT, secretRef: { name: 'models', key: 'OLD' } })],
])('is unknown while %s', (_what, endpointProbe) => {
  const status = endpointProbe === undefined ? {} : { endpointProbe };
  expect(condition(shown(ENDPOINT, status))).toMatchObject({ status: 'Unknown', reason: 'EndpointProbing' });
});

test('prices and the context window are no reason to try again', () => {
  const priced = { ...ENDPOINT, prices: { inputUsd: '1', outputUsd: '2' }, contextWindow: 4096 };
  expect(condition(shown(priced, { endpointProbe: probe('ToolCallsWork') }))?.status).toBe('True');
});

test('goes with the endpoint, and what was found goes too; nothing else of the status does', () => {
  const before = shown(ENDPOINT, { endpointProbe: probe('NoToolCall'), running: 2 });
  const after = shown(undefined, before.status);
  expect(after.status).toEqual({ running: 2, conditions: [] });
  expect(shown(undefined, { running: 2 }).status).toEqual({ running: 2 });
});
