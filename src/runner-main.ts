/** What runs beside the tools of an agent (image `boxwright-runner`): `boxwright runner | network-probe`. */
import { startProcess } from './start-process.js';

await startProcess({
  runner: async (env) => (await import('./runner/main.js')).runRunner(env),
  'network-probe': async (env) => (await import('./processes/network-probe.js')).runNetworkProbe(env),
});
