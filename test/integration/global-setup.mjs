// One API server for all integration test files of a Jest run (see test/builders/api-server.ts). One that is there
// already is used instead: BOXWRIGHT_TEST_KUBECONFIG=path npm run jest -- --selectProjects integration
import { spawnApiServer } from '../builders/spawn-api-server.mjs';

export default async function globalSetup() {
  if (process.env.BOXWRIGHT_TEST_KUBECONFIG) return;
  const server = await spawnApiServer();
  process.env.BOXWRIGHT_TEST_KUBECONFIG = server.kubeconfig;
  globalThis.stopTestApiServer = server.stop;
}
