/**
 * Which web pages may call the MCP endpoint. A browser names the origin of the page with every POST, and no page can change
 * it, so this stops DNS rebinding. The Host header is not looked at: proxies rewrite it.
 */

/** True for the origin of the public URL and for those of the list. */
export function allowedOrigins(publicUrl: string, listed: readonly string[]): (origin: string) => boolean {
  const allowed = new Set([new URL(publicUrl).origin, ...listed.map((origin) => origin.toLowerCase())]);
  return (origin) => allowed.has(origin.toLowerCase());
}
