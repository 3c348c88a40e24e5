/**
 * By which names the MCP endpoint may be called. A page that had its own name point to us (DNS rebinding) has that name in the
 * Host header, whatever it does. Ports do not count, because proxies and port-forwards change them. An address is no name, so
 * nobody can have it point elsewhere.
 */
import { isIP } from 'node:net';

/** `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`. */
const HOST = /^(?:\[([0-9a-f:.]{2,45})\]|([^\s:[\]/?#@]{1,255}))(?::\d{0,5})?$/;

export interface KnownNames {
  publicUrl: string;
  /** The Service of the API in its namespace. */
  service: { name: string; namespace: string };
  /** Further names, of the administrator. */
  listed: readonly string[];
}

/** True for the name of the public URL, names of the Service, `localhost`, those of the list, and every IP address. */
export function allowedHosts({ publicUrl, service, listed }: KnownNames): (host: string) => boolean {
  const inNamespace = `${service.name}.${service.namespace}`;
  const allowed = new Set(
    [
      new URL(publicUrl).hostname,
      'localhost',
      service.name,
      inNamespace,
      `${inNamespace}.svc`,
      `${inNamespace}.svc.cluster.local`,
      ...listed,
    ].map((name) => withoutDot(name.toLowerCase())),
  );
  return (host) => {
    const [, ipv6, name = ''] = HOST.exec(host.toLowerCase()) ?? [];
    if (ipv6 !== undefined) return isIP(ipv6) === 6;
    return isIP(name) === 4 || allowed.has(withoutDot(name));
  };
}

/** A name may end with the dot of the root. */
function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
