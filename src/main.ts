/**
 * One binary, one process per name: `boxwright api | gateway | controller | runner | tools | network-probe |
 * release-finalizers`. Each loads only its own code. Nothing else happens here.
 */

const PROCESSES: Record<string, (env: NodeJS.ProcessEnv) => Promise<number>> = {
  api: async (env) => (await import('./processes/api.js')).runApi(env),
  gateway: async (env) => (await import('./processes/gateway.js')).runGateway(env),
  controller: async (env) => (await import('./processes/controller.js')).runController(env),
  runner: async (env) => (await import('./runner/main.js')).runRunner(env),
  tools: async (env) => (await import('./runner/tools/main.js')).runTools(env),
  'network-probe': async (env) => (await import('./processes/network-probe.js')).runNetworkProbe(env),
  'release-finalizers': async (env) => (await import('./processes/release-finalizers.js')).runReleaseFinalizers(env),
};

const [name = ''] = process.argv.slice(2);
const start = PROCESSES[name];
if (start === undefined) {
  process.stderr.write(`usage: boxwright <process>, one of: ${Object.keys(PROCESSES).join(', ')}\n`);
  process.exit(2);
}
process.exit(await start(process.env));
