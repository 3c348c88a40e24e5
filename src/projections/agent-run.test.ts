import { projectApiRun, projectControllerRun, projectGatewayRun } from './agent-run.js';
import { makeRun } from '../../test/builders/run-objects.js';

const TEXTS = { message: 'the message', sessionTitle: 'the title' };
const INPUT = { encoding: 'gzip', bytes: 9, sha256: 'aa', data: 'the data' } as const;
const PENDING = { kind: 'question', text: 'the question', callId: 'c1' } as const;
const DONE = { phase: 'done', output: 'the output', pending: PENDING } as const;

test('the controller caches no text of a run, but that a question is open', () => {
  const projected = projectControllerRun(makeRun('r', { spec: { ...TEXTS, input: INPUT }, status: DONE }));
  expect(JSON.stringify(projected)).not.toMatch(/the (message|title|data|question|output)/);
  expect(projected).toMatchObject({ inputDataBytes: 'the data'.length, waitsForAnswer: true });
});

test('the gateway caches a live run without its compressed input, and with its size', () => {
  const run = makeRun('r', { spec: { ...TEXTS, input: INPUT }, status: { phase: 'running' } });
  const projected = projectGatewayRun(run);
  expect(JSON.stringify(projected)).not.toContain('the data');
  expect(projected.spec.message).toBe('the message');
  expect(projected.liveInputBytes).toBeGreaterThan(0);
});

test('the gateway caches of an ended run what sessions and late calls ask for', () => {
  const projected = projectGatewayRun(makeRun('r', { spec: { ...TEXTS, sessionId: 's-1' }, status: DONE }));
  expect(JSON.stringify(projected)).not.toMatch(/the (message|title|output)/);
  expect(projected).toMatchObject({ spec: { sessionId: 's-1' }, status: { phase: 'done', pending: PENDING } });
});

test('the tools are shown the title of a session, never the message or the output', () => {
  const projected = projectApiRun(makeRun('r', { spec: TEXTS, status: DONE }));
  expect(JSON.stringify(projected)).not.toMatch(/the (message|output)/);
  expect(projected).toMatchObject({ title: 'the title', terminal: true, queuedReason: undefined, pending: PENDING });
});
