/**
 * Which web pages may call the MCP endpoint. A browser names the origin of the page with every POST, and no page can change
 * it, so this stops DNS rebinding; src/mcp/hosts.ts is the second wall.
 */

/** Origins of web pages: of http and https, and of pages that a browser does not trust with their own (`null`). */
const WEB_ORIGIN = /^(?:https?:|null$|$)/i;

/**
 * True for the origin of the public URL, for those of the list, and for schemes of desktop apps such as `vscode-file`, which no
 * web page can have.
 */
export function allowedOrigins(publicUrl: string, listed: readonly string[]): (origin: string) => boolean {
  const allowed = new Set([new URL(publicUrl).origin, ...listed.map((origin) => origin.toLowerCase())]);
  return (origin) => !WEB_ORIGIN.test(origin) || allowed.has(origin.toLowerCase());
}
