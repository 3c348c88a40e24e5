import { callerAddressBehind } from './caller-address.js';

const addressOf = callerAddressBehind(['10.0.0.0/8', 'fd00::/8']);

test.each<[string, string | undefined, string | string[] | undefined, string]>([
  ['a connection without a proxy', '203.0.113.7', undefined, '203.0.113.7'],
  ['a header from somebody who is no proxy', '203.0.113.7', '198.51.100.1', '203.0.113.7'],
  ['a proxy', '10.1.1.1', '198.51.100.1', '198.51.100.1'],
  ['a proxy, and a header that the caller made up', '10.1.1.1', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
  ['two proxies', '::ffff:10.1.1.1', '1.1.1.1, 198.51.100.1, 10.2.2.2', '198.51.100.1'],
  ['two headers', 'fd00::1', ['1.1.1.1', '2001:db8::1'], '2001:db8::1'],
  ['a proxy without the header', '10.1.1.1', undefined, '10.1.1.1'],
  ['no address in the header', '10.1.1.1', 'unknown', '10.1.1.1'],
  ['a proxy that calls itself', '10.1.1.1', '10.2.2.2', '10.2.2.2'],
  ['a connection that is gone', undefined, '198.51.100.1', ''],
])('%s', (_name, remoteAddress, forwarded, expected) => {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded as string };
  expect(addressOf({ headers, socket: { remoteAddress } as never })).toBe(expected);
});
