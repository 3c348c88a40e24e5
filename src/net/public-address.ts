/**
 * Which addresses belong to the public internet: the one rule of everything that connects to an address that an agent or a
 * user chose, and of the network policies of Boxes. Pure.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/**
 * Not public: private, carrier, link-local (metadata services), loopback, documentation, benchmark, multicast, reserved; and
 * Azure's 168.63.129.16, which looks public and is the platform service of every virtual machine there (learn.microsoft.com,
 * "What is IP address 168.63.129.16?").
 */
export const SPECIAL_IPV4: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/**
 * The same for IPv6, with the ranges that carry IPv4 addresses inside (a way round the list above). Mapped addresses
 * (::ffff:0:0/96) never travel, and network plugins stumble over them in a policy: the rule below refuses them by itself.
 */
export const SPECIAL_IPV6: readonly string[] = [
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

/**
 * Nobody's server even where private addresses are allowed: this machine, its link, groups, and the platform services of
 * clouds that hand out metadata and credentials (link-local but for Alibaba's, Azure's and Oracle's, and the IPv6 ones of
 * AWS, Google Cloud and Scaleway).
 */
const NEVER_IPV4: readonly string[] = [
  '0.0.0.0/8',
  '100.100.100.200/32',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '192.0.0.192/32',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
const NEVER_IPV6: readonly string[] = [
  '::/96',
  // The same behind NAT64.
  '64:ff9b::100.100.100.200/128',
  '64:ff9b::168.63.129.16/128',
  '64:ff9b::169.254.0.0/112',
  '64:ff9b::192.0.0.192/128',
  'fd00:42::42/128',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fe80::/10',
  'ff00::/8',
];

/** All that is handed out for the internet (RFC 4291); the list above names the exceptions inside it too. */
const GLOBAL_UNICAST_IPV6 = '2000::/3';

/** True for an address that may be connected to. What is no address in its usual spelling is refused. */
export type AddressRule = (address: string) => boolean;

/** Public addresses but for `alsoRefused` (CIDRs, for example the ranges of a cluster). Throws for one that is not a CIDR. */
export function publicAddresses(alsoRefused: readonly string[] = []): AddressRule {
  const refused4 = listOf([...SPECIAL_IPV4, ...alsoRefused.filter((cidr) => !cidr.includes(':'))], 'ipv4');
  const refused6 = listOf([...SPECIAL_IPV6, ...alsoRefused.filter((cidr) => cidr.includes(':'))], 'ipv6');
  const global6 = listOf([GLOBAL_UNICAST_IPV6], 'ipv6');
  return (address) => {
    if (isIPv4(address)) return !refused4.check(address, 'ipv4');
    // An address with a zone (fe80::1%eth0) is of one link.
    if (!isIPv6(address) || address.includes('%')) return false;
    return global6.check(address, 'ipv6') && !refused6.check(address, 'ipv6');
  };
}

/**
 * Public and private addresses, those of the cluster too: for hosts that an operator named (`egress.trustedHosts` of a
 * Box). This machine, its link and metadata services stay refused, whatever the name of such a host resolves to.
 */
export function operatorAddresses(): AddressRule {
  // One list for both: it finds an IPv4 range in a mapped address too.
  const never = listOf(NEVER_IPV6, 'ipv6', listOf(NEVER_IPV4, 'ipv4'));
  return (address) => {
    if (isIPv4(address)) return !never.check(address, 'ipv4');
    return isIPv6(address) && !address.includes('%') && !never.check(address, 'ipv6');
  };
}

function listOf(cidrs: readonly string[], family: 'ipv4' | 'ipv6', list = new BlockList()): BlockList {
  for (const cidr of cidrs) {
    const [address = '', prefix = ''] = cidr.split('/');
    if (!/^\d{1,3}$/.test(prefix)) throw new Error(`${cidr} is not a CIDR such as 10.0.0.0/8`);
    list.addSubnet(address, Number(prefix), family);
  }
  return list;
}
