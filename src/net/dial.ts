/**
 * TCP connections to hosts that an agent or a user named. The name is resolved here and the very address that passed the
 * rule is connected to, so that a name which answers differently the next time (DNS rebinding) gains nothing.
 */
import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { Socket } from 'node:net';
import type { AddressRule } from './public-address.js';

/** One address of a host is tried for this long before the next one. */
const CONNECT_MS = 5_000;
/** Addresses of one host that are tried. */
const MAX_ADDRESSES = 4;

/** The host has no address that the rule allows. The message names the host, never what it resolves to. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
  constructor(host: string) {
    super(`${host} is not an address of the public internet`);
  }
}

/** Addresses of a host name. Rejects with the code of the resolver, for example ENOTFOUND. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface Dialer {
  isAllowed: AddressRule;
  resolve: Resolve;
}

export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true, order: 'ipv4first' });
  return found.map(({ address }) => address);
};

export interface DialTarget {
  /** A name or an address; an IPv6 address without brackets. */
  host: string;
  port: number;
}

/** Where requests for an http or https address are connected to. */
export function targetOf({ hostname, port, protocol }: Record<'hostname' | 'port' | 'protocol', string>): DialTarget {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/**
 * A connected socket. Rejects with {@link AddressRefusedError}, with the error of the resolver or of the last connection,
 * or with the reason of the signal.
 */
export async function dial({ host, port }: DialTarget, dialer: Dialer, signal: AbortSignal): Promise<Socket> {
  const addresses = isIP(host) === 0 ? await dialer.resolve(host) : [host];
  signal.throwIfAborted();
  const allowed = addresses.filter((address) => dialer.isAllowed(address)).slice(0, MAX_ADDRESSES);
  let failure: unknown = new AddressRefusedError(host);
  for (const address of allowed) {
    try {
      return await connectTo(address, port, signal);
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
  }
  throw failure;
}

function connectTo(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: CONNECT_MS });
    const give = (end: () => void) => {
      signal.removeEventListener('abort', onAbort);
      socket.removeAllListeners();
      end();
    };
    const fail = (error: Error) =>
      give(() => {
        socket.on('error', () => undefined);
        socket.destroy();
        reject(error);
      });
    const onAbort = () => fail(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', fail);
    socket.once('timeout', () => fail(Object.assign(new Error('the connection timed out'), { code: 'ETIMEDOUT' })));
    socket.once('connect', () => give(() => resolve(socket.setTimeout(0))));
  });
}
