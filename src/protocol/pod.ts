/** What the Job template and the processes in a run pod agree on: environment, mounts, users. */

/** Environment of container `runner`. `BOXWRIGHT_POD_UID` comes from the downward API. */
export const RUNNER_ENV = {
  namespace: 'BOXWRIGHT_RUN_NAMESPACE',
  run: 'BOXWRIGHT_RUN',
  podUid: 'BOXWRIGHT_POD_UID',
  /** https://<ClusterIP of the gateway Service>:8443 (no DNS needed). */
  gatewayUrl: 'BOXWRIGHT_GATEWAY_URL',
  /** DNS name that the gateway's certificate must carry. */
  gatewayServerName: 'BOXWRIGHT_GATEWAY_SERVER_NAME',
  /** PEM bundle of our CA. */
  gatewayCa: 'BOXWRIGHT_GATEWAY_CA',
  /** JSON (src/protocol/surroundings.ts). Absent in Jobs of older controllers. */
  surroundings: 'BOXWRIGHT_SURROUNDINGS',
} as const;

/** Only in `runner`: the projected token (file name `token`), 0440 through fsGroup. */
export const TOKEN_DIR = '/var/run/boxwright/token';
/** Only in `runner`: its own journal, emptyDir. */
export const JOURNAL_DIR = '/var/run/boxwright/journal';
/** In both: emptyDir; read-only in `runner`. The socket is `tools.sock`. */
export const SOCKET_DIR = '/var/run/boxwright/tools';
export const TOOLS_SOCKET = `${SOCKET_DIR}/tools.sock`;
/** Only in `tools`: the agent's files. */
export const WORKSPACE_DIR = '/workspace';
/**
 * Only in `tools`: HOME of what the agent runs, emptyDir. Shells, git, npm and others take settings from there, so it must
 * not be the workspace, in which later runs find what an earlier one wrote.
 */
export const HOME_DIR = '/home/agent';

export const RUNNER_UID = 65532;
export const TOOLS_UID = 65533;
/** Group of both: shares the socket, reads the token. */
export const POD_GID = 65532;

export const RUNNER_CONTAINER = 'runner';
export const TOOLS_CONTAINER = 'tools';

/** Ports of the control plane. */
export const API_PORT = 8080;
export const GATEWAY_PORT = 8443;
/** Health, metrics and (api only) the write barrier, on every control-plane pod. */
export const INTERNAL_PORT = 8081;

/** In API pods: `token` for gateway pods, and `ca.crt` to check their certificates against. */
export const GATEWAY_ACCESS_DIR = '/var/run/boxwright/gateway';

/** In every tools image: what the tool `grep` searches with, and agents may as well. */
export const RIPGREP = '/usr/local/bin/rg';

/** In the tools image with a browser: Debian's package, and the npm package that drives it. */
export const BROWSER_EXECUTABLE = '/usr/bin/chromium-headless-shell';
export const BROWSER_DRIVER = '/app/node_modules/playwright-core/package.json';
