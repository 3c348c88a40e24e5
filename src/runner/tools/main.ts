/**
 * `boxwright tools`: the container in which an agent's commands and file operations happen. It holds no token and no
 * secret; whatever runs here is the agent's.
 */
import { dirname, join } from 'node:path';
import { systemResolve } from '../../net/dial.js';
import { publicAddresses } from '../../net/public-address.js';
import { BROWSER_EXECUTABLE, HOME_DIR, RIPGREP, TOOLS_SOCKET, WORKSPACE_DIR } from '../../protocol/pod.js';
import type { Clock } from '../../runtime/clock.js';
import { systemClock } from '../../runtime/clock.js';
import { createRunnerLog, errorKind } from '../log.js';
import type { RunnerLog } from '../log.js';
import { createBrowser } from './browser/browser.js';
import type { Browser } from './browser/browser.js';
import { hasBrowser } from './browser/has-browser.js';
import { createToolExecutor, toolsWith } from './executor.js';
import { createProgramRunner } from './mcp-program.js';
import { killGroup, readProcessGroups, superviseProcesses } from './process-supervisor.js';
import { pruneRunLogs } from './run-logs.js';
import { listenForCalls } from './server.js';
import { createShell } from './shell.js';
import type { WebAccess } from './web/fetch.js';
import { createPageReader } from './web/page-reader.js';

export interface ToolsDeps {
  clock: Clock;
  writeLog: (line: string) => void;
  /** Fires when the container is told to stop. */
  terminate: AbortSignal;
  paths: { socket: string; workspace: string; home: string };
  /** The program of `grep`. */
  ripgrep: string;
  web: WebAccess;
  /** Absent where the image has none. */
  browser?: Browser | undefined;
}

/** The real things of a run pod. */
export function systemToolsDeps(): ToolsDeps {
  const terminate = new AbortController();
  process.once('SIGTERM', () => terminate.abort());
  const dialer = { isAllowed: publicAddresses(), resolve: systemResolve };
  return {
    clock: systemClock,
    writeLog: (line) => process.stdout.write(line),
    terminate: terminate.signal,
    paths: { socket: TOOLS_SOCKET, workspace: WORKSPACE_DIR, home: HOME_DIR },
    ripgrep: RIPGREP,
    web: {
      dialer,
      // hack/build-options.mjs puts it beside the main file.
      readPage: createPageReader({
        worker: join(dirname(process.argv[1] ?? ''), 'page-worker.mjs'),
        clock: systemClock,
      }),
    },
    ...(hasBrowser() ? { browser: createBrowser({ executable: BROWSER_EXECUTABLE, home: HOME_DIR, dialer }) } : {}),
  };
}

/** Serves calls until told to stop; resolves with the exit code. Never rejects. The environment is not used. */
export async function runTools(_env: NodeJS.ProcessEnv, deps: ToolsDeps = systemToolsDeps()): Promise<number> {
  const log = createRunnerLog('tools', deps.clock, deps.writeLog);
  try {
    const { workspace, home } = deps.paths;
    const shell = createShell({ home, clock: deps.clock });
    const execute = createToolExecutor({ ...deps, workspace, home, shell });
    const runServer = createProgramRunner({ workspace, home, clock: deps.clock, log });
    const server = await listenForCalls({
      socketPath: deps.paths.socket,
      offered: toolsWith(deps),
      execute,
      runServer,
      clock: deps.clock,
      log,
    });
    log.info({}, 'tools are ready');
    forgetOldLogs(workspace, log);
    await superviseProcesses({
      clock: deps.clock,
      log,
      readGroups: readProcessGroups,
      kill: killGroup,
      signal: deps.terminate,
    });
    await server.close();
    await shell.background.close();
    await deps.browser?.close();
    return 0;
  } catch (error) {
    log.error({ failure: errorKind(error) }, 'tools cannot serve');
    return 1;
  }
}

/** Beside the calls: a volume with many files must not delay the run. */
function forgetOldLogs(workspace: string, log: RunnerLog): void {
  pruneRunLogs(workspace).then(
    (runs) => {
      if (runs.length > 0) log.info({ runs: runs.length }, 'outputs of old runs were removed');
    },
    (error: unknown) => log.warn({ failure: errorKind(error) }, 'outputs of old runs could not be removed'),
  );
}
