/** The program `kubectl-boxwright`: kubectl finds it on PATH and runs it for `kubectl boxwright`. */
import { PRODUCT_VERSION } from '../config/version.js';
import { createToolClient } from './mcp-client.js';
import { runCli } from './program.js';

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  version: PRODUCT_VERSION,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  connect: createToolClient,
});
