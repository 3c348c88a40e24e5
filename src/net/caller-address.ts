/** Where a request came from: the address of its connection, or what proxies of ours say about it. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';

export type CallerAddress = (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string;

/** The ranges are those of proxies, whose `X-Forwarded-For` is believed; nobody else's is. */
export function callerAddressBehind(proxies: readonly string[]): CallerAddress {
  const trusted = new BlockList();
  for (const cidr of proxies) {
    const [network = '', prefix] = cidr.split('/');
    trusted.addSubnet(network, Number(prefix), isIPv6(network) ? 'ipv6' : 'ipv4');
  }
  const isProxy = (address: string) => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  return ({ headers, socket }) => {
    let address = plain(socket.remoteAddress ?? '');
    const forwarded = headers['x-forwarded-for'];
    // Each proxy adds the address that it saw at the end: what a caller wrote stands in front.
    const hops = (Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '')).split(',');
    while (hops.length > 0 && isIP(address) !== 0 && isProxy(address)) {
      const before = plain((hops.pop() ?? '').trim());
      if (isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
}

/** An IPv4 address on a socket of both families comes as ::ffff:1.2.3.4. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}
