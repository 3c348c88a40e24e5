/** What `initialize` negotiates (spec 4.1, 9). */

/** Supported versions, newest first; the newest is the answer to every other one. */
export const PROTOCOL_VERSIONS = ['2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

/** The client's version when it is supported, else the latest supported. */
export function negotiateVersion(requested: unknown): string {
  const known: readonly unknown[] = PROTOCOL_VERSIONS;
  return known.includes(requested) ? (requested as string) : PROTOCOL_VERSIONS[0];
}

/** Result of `initialize`: only the capability tools, and no state is kept. */
export function initializeResult(params: unknown, version: string) {
  const requested = typeof params === 'object' && params !== null ? (params as Record<string, unknown>) : {};
  return {
    protocolVersion: negotiateVersion(requested['protocolVersion']),
    capabilities: { tools: {} },
    serverInfo: { name: 'boxwright', version },
  };
}
