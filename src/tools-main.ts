/** What runs with the code of an agent (image `boxwright-tools`): `boxwright tools`. */
import { startProcess } from './start-process.js';

await startProcess({
  tools: async (env) => (await import('./runner/tools/main.js')).runTools(env),
});
