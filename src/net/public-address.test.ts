import { assert, ipV4, property } from '../../test/builders/properties.js';
import { operatorAddresses, publicAddresses, SPECIAL_IPV4 } from './public-address.js';

const isPublic = publicAddresses();

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.1.2.3',
  '100.100.100.200',
  '168.63.129.16',
  '169.254.169.254',
  '169.254.170.2',
  '169.254.20.10',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.8',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '255.255.255.255',
])('%s is not public', (address) => {
  expect(isPublic(address)).toBe(false);
});

test.each([
  ['loopback', '::1'],
  ['unspecified', '::'],
  ['mapped loopback', '::ffff:127.0.0.1'],
  ['mapped metadata', '::ffff:a9fe:a9fe'],
  ['mapped, written out', '0:0:0:0:0:ffff:10.0.0.1'],
  ['a public address, mapped', '::ffff:8.8.8.8'],
  ['compatible', '::127.0.0.1'],
  ['NAT64 of the metadata service', '64:ff9b::169.254.169.254'],
  ['NAT64 of the platform service of Azure', '64:ff9b::168.63.129.16'],
  ['NAT64 of one network', '64:ff9b:1::1'],
  ['discard only', '100::1'],
  ['Teredo', '2001:0:7f00:1::1'],
  ['documentation', '2001:db8::1'],
  ['documentation, new', '3fff::1'],
  ['6to4 of 10.0.0.1', '2002:a00:1::1'],
  ['unique local', 'fd12:3456::1'],
  ['AWS metadata', 'fd00:ec2::254'],
  ['AWS credentials of pods', 'fd00:ec2::23'],
  ['Google Cloud metadata', 'fd20:ce::254'],
  ['Scaleway metadata', 'fd00:42::42'],
  ['link-local', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%eth0'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['nobody has it', '4000::1'],
])('%s (%s) is not public', (_name, address) => {
  expect(isPublic(address)).toBe(false);
});

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '100.63.255.255',
  '168.63.129.15',
  '168.63.129.17',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '2a00:1450:4001::200e',
])('%s is public', (address) => {
  expect(isPublic(address)).toBe(true);
});

test.each(['', 'localhost', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', '[::1]', '8.8.8.8 ', '1.1.1.1%eth0'])(
  'what is no address in its usual spelling is refused: %j',
  (text) => {
    expect(isPublic(text)).toBe(false);
  },
);

test('ranges of the cluster are refused besides', () => {
  const rule = publicAddresses(['34.118.224.0/20', '2600:1900::/28']);
  expect([rule('34.118.224.1'), rule('2600:1900::1'), rule('34.118.240.1')]).toEqual([false, false, true]);
  expect(() => publicAddresses(['10.0.0.0'])).toThrow('10.0.0.0 is not a CIDR such as 10.0.0.0/8');
});

test('every IPv4 address is judged as in its own arithmetic', () => {
  const numberOf = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const refused = (address: string) =>
    SPECIAL_IPV4.some((cidr) => {
      const [base = '', bits = ''] = cidr.split('/');
      const size = 2 ** (32 - Number(bits));
      return Math.floor(numberOf(address) / size) === Math.floor(numberOf(base) / size);
    });
  assert(property(ipV4(), (address) => isPublic(address) === !refused(address)));
});

describe('hosts that an operator named', () => {
  const rule = operatorAddresses();

  test.each([
    '10.96.0.20',
    '192.168.1.7',
    '100.64.0.9',
    '8.8.8.8',
    'fd12:3456::1',
    'fd00:ec3::1',
    '2606:4700::1111',
    '::ffff:10.0.0.7',
  ])('may be at %s', (address) => {
    expect(rule(address)).toBe(true);
  });

  test.each([
    '127.0.0.1',
    '0.0.0.0',
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '::ffff:168.63.129.16',
    '64:ff9b::169.254.169.254',
    '64:ff9b::168.63.129.16',
    '64:ff9b::100.100.100.200',
    '64:ff9b::192.0.0.192',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
    'fd00:42::42',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    'localhost',
  ])('are never at %s', (address) => {
    expect(rule(address)).toBe(false);
  });
});
