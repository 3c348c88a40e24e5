import { KubeApiError } from '../kube/errors.js';
import { createLogger, redact } from './logger.js';

const KEY = 'bw_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg';
const TOKEN = 'kQ3vN8yT2mZ0aB4cD6eF8gH1iJ3kL5nO7pQ9rS1tU3w';
const URL = `https://agents.example.com/api/t/team.cleo/deploy/${TOKEN}`;
const JWT = `eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJib3h3cmlnaHQtcnVuIn0.${TOKEN}`;
const PEM = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBkg4\n-----END EC PRIVATE KEY-----';
const SECRETS = [KEY, TOKEN, JWT, 'MHcCAQEEIBkg4'];

function logged(write: (logger: ReturnType<typeof createLogger>) => void, level = 'debug'): string[] {
  const lines: string[] = [];
  write(createLogger('api', level, { write: (line) => void lines.push(line) }));
  return lines;
}

function expectClean(lines: string[]): void {
  expect(lines).toHaveLength(1);
  for (const secret of SECRETS) expect(lines[0]).not.toContain(secret);
  expect(() => void JSON.parse(lines[0] ?? '')).not.toThrow();
}

describe('a line of the log', () => {
  it('is one JSON object with level, time, component, fields and message', () => {
    const [line] = logged((logger) => logger.info({ run: 'cleo-1' }, 'run started'));
    expect(JSON.parse(line ?? '')).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
      component: 'api',
      run: 'cleo-1',
      msg: 'run started',
    });
    expect(line?.endsWith('\n')).toBe(true);
  });

  it('is not written below the level', () => {
    expect(logged((logger) => logger.debug('x'), 'info')).toEqual([]);
  });
});

describe('a secret never reaches the log', () => {
  const text = `key ${KEY} url ${URL}?a=1 Authorization: Bearer ${TOKEN} jwt ${JWT} pem ${PEM}`;

  it.each<[string, (logger: ReturnType<typeof createLogger>) => void]>([
    ['in the message', (logger) => logger.info(text)],
    ['in a field', (logger) => logger.info({ text }, 'x')],
    ['deep in a field', (logger) => logger.info({ a: [{ b: { c: text } }] }, 'x')],
    ['as the name of a field', (logger) => logger.info({ [text]: 1 }, 'x')],
    ['in the message of an error', (logger) => logger.error({ err: new Error(text) }, 'x')],
    ['in the cause of an error', (logger) => logger.error({ err: new Error('a', { cause: new Error(text) }) }, 'x')],
    ['in the stack of an error', (logger) => logger.error({ err: withStack(text) }, 'x')],
    ['in a property of an error', (logger) => logger.error({ err: Object.assign(new Error('a'), { url: text }) }, 'x')],
    ['in an error that stands under another name', (logger) => logger.error({ failure: { message: text } }, 'x')],
    ['in a child logger', (logger) => logger.child({ text }).info('x')],
    ['in headers', (logger) => logger.info({ headers: { authorization: `Bearer ${TOKEN}`, 'x-api-key': KEY } }, 'x')],
  ])('%s', (_name, write) => expectClean(logged(write)));
});

it('what the API server quotes of a refused object does not reach the log', () => {
  const value = 'Invalid value: "a payload"';
  const error = new KubeApiError({
    status: 422,
    reason: 'Invalid',
    message: `AgentTrigger "a.b" is invalid: spec.body: ${value}: too long`,
    details: { name: 'a.b', kind: 'AgentTrigger', causes: [{ field: 'spec.body', message: `${value}: too long` }] },
  });
  const [line = ''] = logged((logger) => logger.error({ err: error }, 'tool failed'));
  expect(line).not.toContain('a payload');
  expect(JSON.parse(line)).toMatchObject({
    err: {
      type: 'KubeApiError',
      status: 422,
      message: '422 Invalid: AgentTrigger "a.b" is invalid: spec.body: Invalid value: …: too long',
      stack: expect.stringContaining('logger.test.ts') as string,
    },
  });
});

function withStack(text: string): Error {
  const error = new Error('a');
  error.stack = `Error: a\n    at handler (${text})\n    at next`;
  return error;
}

describe('redact', () => {
  it.each([
    ['an API key', `x ${KEY} y`, 'x bw_[redacted] y'],
    ['a trigger URL', `GET ${URL} 404`, 'GET https://agents.example.com/api/t/[redacted] 404'],
    ['a path', `/api/t/team.cleo/deploy/${TOKEN}`, '/api/t/[redacted]'],
    ['a path with unknown parts behind it', `/api/t/a/b/${TOKEN}/more%20${TOKEN}?x=${TOKEN}`, '/api/t/[redacted]'],
    ['a URL inside a URL', encodeURIComponent(URL), 'https%3A%2F%2Fagents.example.com%2Fapi%2Ft%2F[redacted]'],
    ['a URL with escaped slashes', URL.replaceAll('/', '\\/'), 'https:\\/\\/agents.example.com\\/api\\/t\\/[redacted]'],
    ['a bearer token', `Bearer ${TOKEN}`, 'Bearer [redacted]'],
    ['a bearer token in any case', `authorization: BEARER ${TOKEN}`, 'authorization: BEARER [redacted]'],
    ['a service account token', `token=${JWT}!`, 'token=[redacted token]!'],
    ['a private key', PEM, '[redacted key]'],
    ['a private key in JSON', JSON.stringify(PEM), '"[redacted key]"'],
    ['nothing else', 'bw_short /api/tools run cleo-01j eyJ', 'bw_short /api/tools run cleo-01j eyJ'],
    [
      'the pattern of the route, which stays readable',
      '/api/t/:agent_id/:slug/:token',
      '/api/t/:agent_id/:slug/:token',
    ],
  ])('%s', (_name, text, expected) => expect(redact(text)).toBe(expected));
});
