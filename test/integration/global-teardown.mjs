// Ends the API server that global-setup.mjs started.
export default async function globalTeardown() {
  await globalThis.stopTestApiServer?.();
}
