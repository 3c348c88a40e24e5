/** Starts the process that the first argument names, and ends with its exit code. */

import { PRODUCT_REVISION, PRODUCT_VERSION } from './config/version.js';

export type ProcessMain = (env: NodeJS.ProcessEnv) => Promise<number>;

/** Never returns. `--version` says which build this is. A name that this image does not have is an error that lists those that it has. */
export async function startProcess(processes: Readonly<Record<string, ProcessMain>>): Promise<never> {
  const [name = ''] = process.argv.slice(2);
  if (name === '--version') {
    process.stdout.write(`boxwright ${PRODUCT_VERSION} (${PRODUCT_REVISION})\n`);
    process.exit(0);
  }
  const start = Object.hasOwn(processes, name) ? processes[name] : undefined;
  if (start === undefined) {
    process.stderr.write(`usage: boxwright <process>, one of: ${Object.keys(processes).join(', ')}\n`);
    process.exit(2);
  }
  process.exit(await start(process.env));
}
