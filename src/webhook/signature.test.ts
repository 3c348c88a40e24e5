import type { IncomingHttpHeaders } from 'node:http';
import { SIGNATURE_SCHEMES, webhookKeysIn } from '../api/webhook-keys.js';
import type { SignatureScheme } from '../api/webhook-keys.js';
import { TOLERANCE_MS, verifySignature } from './signature.js';

interface Sample {
  scheme: SignatureScheme;
  key: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Seconds; undefined where the sender signs no time. */
  time?: number;
}

/** https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation */
const GITHUB: Sample = {
  scheme: 'github',
  key: "It's a Secret to Everybody",
  headers: { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
  body: 'Hello, World!',
};

/** https://docs.slack.dev/authentication/verifying-requests-from-slack */
const SLACK: Sample = {
  scheme: 'slack',
  key: '8f742231b10e8888abcd99yyyzzz85a5',
  headers: {
    'x-slack-request-timestamp': '1531420618',
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  },
  body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  time: 1531420618,
};

/** The example of the specification's libraries, https://github.com/standard-webhooks/standard-webhooks. */
const STANDARD: Sample = {
  scheme: 'standard-webhooks',
  key: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  headers: {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  },
  body: '{"test": 2432232314}',
  time: 1614265330,
};

/** Time and v0 are those of https://docs.stripe.com/webhooks/signature, which gives no key: v1 was made with OpenSSL. */
const STRIPE: Sample = {
  scheme: 'stripe',
  key: 'whsec_test_secret',
  headers: {
    'stripe-signature':
      't=1492774577,v1=654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39',
  },
  body: '{"id":"evt_1","object":"event"}',
  time: 1492774577,
};

const SAMPLES = [GITHUB, STRIPE, SLACK, STANDARD];
const TIMED = [STRIPE, SLACK, STANDARD];

function verdict({ scheme, key, headers, body, time = 0 }: Sample, offsetMs = 0) {
  const receivedAt = time * 1000 + offsetMs;
  return verifySignature(scheme, webhookKeysIn(key, scheme), { headers, body: Buffer.from(body), receivedAt });
}

/** The sample with every header changed. */
function withHeaders(sample: Sample, change: (value: string) => string): Sample {
  const headers = Object.entries(sample.headers).map(([name, value]) => [name, change(String(value))]);
  return { ...sample, headers: Object.fromEntries(headers) as IncomingHttpHeaders };
}

test('every scheme has a sample', () => {
  expect(SAMPLES.map(({ scheme }) => scheme)).toEqual([...SIGNATURE_SCHEMES]);
});

describe.each(SAMPLES)('$scheme', (sample) => {
  test('takes the example of its sender', () => expect(verdict(sample)).toBe('valid'));

  test.each([
    ['another body', { ...sample, body: `${sample.body} ` }],
    ['another key', { ...sample, key: 'whsec_b3RoZXI=' }],
  ])('finds %s wrong', (_name, changed) => expect(verdict(changed)).toBe('wrong'));

  test.each([
    ['no headers', { ...sample, headers: {} }],
    ['empty headers', withHeaders(sample, () => '')],
    ['signatures in upper case', withHeaders(sample, (value) => value.toUpperCase())],
    ['signatures that are cut', withHeaders(sample, (value) => value.slice(0, 20))],
  ])('finds no signature in %s', (_name, changed) => {
    expect(['missing', 'stale']).toContain(verdict(changed));
  });

  test('takes any of the keys, one a line, in any place', () => {
    expect(verdict({ ...sample, key: `whsec_b3RoZXI=\n${sample.key}\n` })).toBe('valid');
    expect(verdict({ ...sample, key: `${sample.key}\r\nwhsec_b3RoZXI=` })).toBe('valid');
  });

  test('takes nothing without a key', () => {
    const { scheme, headers } = sample;
    expect(verifySignature(scheme, [], { headers, body: Buffer.from(sample.body), receivedAt: 0 })).not.toBe('valid');
  });
});

describe.each(TIMED)('the time of $scheme', (sample) => {
  test('may differ by 5 minutes in both directions', () => {
    expect([TOLERANCE_MS, -TOLERANCE_MS].map((offset) => verdict(sample, offset))).toEqual(['valid', 'valid']);
    expect([TOLERANCE_MS + 1, -TOLERANCE_MS - 1].map((offset) => verdict(sample, offset))).toEqual(['stale', 'stale']);
  });

  test('is signed', () => {
    const later = withHeaders(sample, (value) => value.replace(String(sample.time), String((sample.time ?? 0) + 1)));
    expect(verdict(later)).toBe('wrong');
  });

  test.each(['', '-1', '1e9', 'NaN', '0x10', '99999999999999999999'])('is no %j', (time) => {
    const changed = withHeaders(sample, (value) => value.replace(String(sample.time), time));
    expect(['missing', 'stale']).toContain(verdict(changed));
  });
});

test.each([GITHUB, SLACK, STANDARD])('$scheme: a header that came twice is none', (sample) => {
  expect(verdict(withHeaders(sample, (value) => `${value}, ${value}`))).not.toBe('valid');
});

test('Stripe: one right v1 of several is enough, and v0 never counts', () => {
  const signed = (items: string) => verdict({ ...STRIPE, headers: { 'stripe-signature': items } });
  const right = /v1=([0-9a-f]+)/.exec(String(STRIPE.headers['stripe-signature']))?.[1] ?? '';
  expect(signed(`t=1492774577,v1=${'0'.repeat(64)},v1=${right}`)).toBe('valid');
  expect(signed(`t=1492774577,v0=${right}`)).toBe('missing');
  expect(signed(`t=1492774577,v1=${'0'.repeat(64)},v0=${right}`)).toBe('wrong');
  expect(signed(`v1=${right}`)).toBe('missing');
});

test('Standard Webhooks: one right v1 of several is enough, other versions do not count, and the id is signed', () => {
  const right = 'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const signed = (more: IncomingHttpHeaders) => verdict({ ...STANDARD, headers: { ...STANDARD.headers, ...more } });
  const other = `v1,${Buffer.alloc(32, 7).toString('base64')}`;
  expect(signed({ 'webhook-signature': `v1a,abc ${other} v1,${right}` })).toBe('valid');
  expect(signed({ 'webhook-signature': `v2,${right} ${right}` })).toBe('missing');
  expect(signed({ 'webhook-id': 'msg_other' })).toBe('wrong');
});

describe('keys of an entry', () => {
  test.each<[string, string | undefined, SignatureScheme, number]>([
    ['an entry that is not there', undefined, 'github', 0],
    ['an empty entry', '\n \n', 'github', 0],
    ['an entry that ends with a line break', 'a\n', 'github', 1],
    ['more than four keys', 'a\nb\nc\nd\ne', 'slack', 4],
    ['a text that is no list of keys', 'a'.repeat(4097), 'github', 0],
    ['a key that is no base64', 'whsec_not-base64!', 'standard-webhooks', 0],
    ['a key of Stripe that is no base64', 'whsec_not-base64!', 'stripe', 1],
    ['a good key beside a bad one', 'whsec_?\nwhsec_b3RoZXI=', 'standard-webhooks', 1],
    ['base64 without the prefix', 'b3RoZXI=', 'standard-webhooks', 1],
  ])('%s', (_name, entry, scheme, count) => expect(webhookKeysIn(entry, scheme)).toHaveLength(count));
});

test('the last of 250 signatures counts, with the last of 4 keys', () => {
  const right = /v1=[0-9a-f]+/.exec(String(STRIPE.headers['stripe-signature']))?.[0] ?? '';
  const items = [...Array<string>(249).fill(`v1=${'0'.repeat(64)}`), right].join(',');
  const headers = { 'stripe-signature': `t=1492774577,${items}` };
  expect(verdict({ ...STRIPE, key: `a\nb\nc\n${STRIPE.key}`, headers })).toBe('valid');
});
