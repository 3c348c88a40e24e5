/**
 * The control plane (image `boxwright`): `boxwright api | gateway | controller | release-finalizers | smoke-test`. Each process loads only
 * its own code. The programs of run pods are src/runner-main.ts and src/tools-main.ts.
 */
import { startProcess } from './start-process.js';

await startProcess({
  api: async (env) => (await import('./processes/api.js')).runApi(env),
  gateway: async (env) => (await import('./processes/gateway.js')).runGateway(env),
  controller: async (env) => (await import('./processes/controller.js')).runController(env),
  'smoke-test': async (env) => (await import('./processes/smoke-test.js')).runSmokeTest(env),
  'release-finalizers': async (env) => (await import('./processes/release-finalizers.js')).runReleaseFinalizers(env),
});
