import { isRetrySoon, isUnavailable } from '../runtime/errors.js';
import {
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isInvalid,
  isNotFound,
  KubeApiError,
  KubeConnectionError,
  withoutValues,
} from './errors.js';

const predicates = { isAlreadyExists, isConflict, isForbidden, isGone, isInvalid, isNotFound };

function error(status: number, reason: string): KubeApiError {
  return new KubeApiError({ status, reason, message: 'a message' });
}

test.each([
  ['404 NotFound', error(404, 'NotFound'), ['isNotFound']],
  ['409 AlreadyExists', error(409, 'AlreadyExists'), ['isAlreadyExists']],
  ['409 Conflict', error(409, 'Conflict'), ['isConflict']],
  ['410 Expired', error(410, 'Expired'), ['isGone']],
  ['410 Gone', error(410, 'Gone'), ['isGone']],
  ['422 Invalid', error(422, 'Invalid'), ['isInvalid']],
  ['403 Forbidden', error(403, 'Forbidden'), ['isForbidden']],
  ['500 InternalError', error(500, 'InternalError'), []],
  ['no answer', new KubeConnectionError('x', 'network'), []],
  ['any other error', new Error('404'), []],
])('%s is recognised by its predicate and by no other', (_name, subject, expected) => {
  const matching = Object.entries(predicates)
    .filter(([, matches]) => matches(subject))
    .map(([name]) => name);

  expect(matching).toEqual(expected);
});

test.each([
  ['no answer', new KubeConnectionError('x', 'network'), true],
  ['no answer in time', new KubeConnectionError('x', 'timeout'), true],
  ['a call that we gave up', new KubeConnectionError('x', 'aborted'), false],
  ['500: etcd is unavailable', error(500, 'InternalError'), true],
  ['503', error(503, 'ServiceUnavailable'), true],
  ['429: it is there and has enough to do', error(429, 'TooManyRequests'), false],
  ['409', error(409, 'Conflict'), false],
])('%s: whether the engine is told that nobody answers', (_what, subject, expected) => {
  expect(isUnavailable(subject)).toBe(expected);
});

test('only a lost write asks the engine to retry soon', () => {
  expect(isRetrySoon(error(409, 'Conflict'))).toBe(true);
  expect(isRetrySoon(error(409, 'AlreadyExists'))).toBe(false);
  expect(isRetrySoon(error(500, 'InternalError'))).toBe(false);
});

test('the message says what was tried, and is cut', () => {
  const short = new KubeApiError({
    status: 404,
    reason: 'NotFound',
    message: 'agents "a" not found',
    operation: 'get agents',
  });
  const long = new KubeApiError({ status: 500, reason: 'InternalError', message: 'x'.repeat(5000) });

  expect(short.message).toBe('get agents: 404 NotFound: agents "a" not found');
  expect(long.message).toHaveLength(1024);
});

test.each([
  [
    'a quoted string',
    'AgentRun "r" is invalid: spec.message: Invalid value: "the \\"secret\\" text": must be short',
    'AgentRun "r" is invalid: spec.message: Invalid value: …: must be short',
  ],
  [
    'an object',
    'AgentRun "r" is invalid: spec: Invalid value: {"input":{"data":"payload"}}: spec cannot be changed',
    'AgentRun "r" is invalid: spec: Invalid value: …: spec cannot be changed',
  ],
  [
    'an unsupported value',
    'spec.methods[0]: Unsupported value: "bw_key": supported values: "GET", "POST"',
    'spec.methods[0]: Unsupported value: …: supported values: "GET", "POST"',
  ],
  [
    'a type name stays, it is no value',
    'spec.paused: Invalid value: "string": spec.paused in body must be of type boolean: "string"',
    'spec.paused: Invalid value: "string": spec.paused in body must be of type boolean: "string"',
  ],
])('values that the API server quotes are left out: %s', (_name, message, expected) => {
  expect(withoutValues(message)).toBe(expected);
});
