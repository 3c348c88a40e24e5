import { readMessage } from './message.js';

test('a call is sent on as it was checked, with its arguments in their order', () => {
  const body = { jsonrpc: '2.0', id: 0, method: 'tools/call', params: { name: 'add', arguments: { b: 1, a: [2] } } };
  expect(readMessage(body)).toEqual({
    json: JSON.stringify(body),
    method: 'tools/call',
    id: 0,
    call: { tool: 'add', input: { b: 1, a: [2] } },
  });
});

test.each([
  ['a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }, undefined],
  ['an answer to the server', { jsonrpc: '2.0', id: 7, result: {} }, undefined],
  ['a question', { jsonrpc: '2.0', id: 'x', method: 'tools/list', params: { cursor: 'c' } }, 'x'],
])('%s passes', (_name, body, id) => {
  expect(readMessage(body)).toMatchObject({ json: JSON.stringify(body), id });
});

test.each([
  [
    'a batch',
    [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } }],
    'this is no JSON-RPC message of MCP',
  ],
  ['something else', { hello: 1 }, 'this is no JSON-RPC message of MCP'],
  [
    'another method',
    { jsonrpc: '2.0', id: 1, method: 'resources/read' },
    'the gateway passes no resources/read to MCP servers',
  ],
  [
    'a call that nobody waits for',
    { jsonrpc: '2.0', method: 'tools/call', params: { name: 'x' } },
    'tools/call needs an id',
  ],
  ['a call of nothing', { jsonrpc: '2.0', id: 1, method: 'tools/call' }, 'tools/call needs params.name'],
])('%s does not', (_name, body, message) => {
  expect(() => readMessage(body)).toThrow(message);
});
