/** What a custom MCP server of an agent may look like, whoever adds it: set_mcp_servers or install_mcp. Pure. */
import { hostOf } from '../api/credentials.js';
import { UserError } from '../api/user-error.js';
import type { McpServerSpec } from '../api/v1alpha1/mcp-server.js';

/** A server as the tool takes it. */
export interface McpServerInput {
  name: string;
  transport: McpServerSpec['transport'];
  url?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  command?: string | undefined;
  args?: readonly string[] | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  enabled: boolean;
}

/**
 * What is stored: only the fields of the transport. Throws a {@link UserError}, which names the argument below `at`, when the
 * server cannot work as it is or would hold a secret.
 */
export function serverSpecOf(server: McpServerInput, at: string): McpServerSpec {
  const { name, transport, enabled } = server;
  if (transport === 'http') {
    refuseFields(at, 'stdio', { command: server.command, args: server.args, env: server.env });
    const headers = toList(server.headers);
    for (const header of headers) checkHeader(`${at}.headers`, header);
    const url = checkUrl(`${at}.url`, server.url);
    return { name, transport, url, ...(headers.length === 0 ? {} : { headers }), enabled };
  }
  refuseFields(at, 'http', { url: server.url, headers: server.headers });
  if (server.command === undefined) {
    throw new UserError(`missing required argument: ${at}.command (string) is needed for transport stdio`);
  }
  const env = toList(server.env);
  for (const variable of env) checkVariable(`${at}.env`, variable);
  const args = [...(server.args ?? [])];
  for (const text of [...args, server.command]) checkReferences(`${at}.args`, text);
  return {
    name,
    transport,
    command: server.command,
    ...(args.length === 0 ? {} : { args }),
    ...(env.length === 0 ? {} : { env }),
    enabled,
  };
}

/** Fields of the other transport would silently do nothing; empty ones are what some clients send for "none". */
function refuseFields(at: string, transport: string, fields: Record<string, string | object | undefined>): void {
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)) continue;
    throw new UserError(`argument "${at}.${field}" is for transport ${transport} only`);
  }
}

function toList(record: Readonly<Record<string, string>> | undefined): { name: string; value: string }[] {
  return Object.entries(record ?? {}).map(([name, value]) => ({ name, value }));
}

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_|~-]{1,128}$/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Headers that carry credentials: their value must not stand in the agent. */
const SECRET_HEADER = /authorization|cookie|key|token/i;
const REFERENCE = /\$\{[A-Za-z_][A-Za-z0-9_]{0,63}\}/g;

function checkHeader(at: string, { name, value }: { name: string; value: string }): void {
  if (!HEADER_NAME.test(name)) throw new UserError(`argument "${at}" has a name that is no header name`);
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) {
    throw new UserError(`argument "${at}.${name}" must not hold control characters or line breaks`);
  }
  checkReferences(`${at}.${name}`, value);
  if (SECRET_HEADER.test(name) && value.search(REFERENCE) === -1) {
    throw new UserError(
      `argument "${at}.${name}" must hold a reference such as \${NAME}, not the credential itself: NAME is a key of the Secret <agent>-secrets`,
    );
  }
}

function checkVariable(at: string, { name, value }: { name: string; value: string }): void {
  if (!VARIABLE_NAME.test(name)) throw new UserError(`argument "${at}" has a name that is no variable name`);
  checkReferences(`${at}.${name}`, value);
}

function checkReferences(at: string, text: string): void {
  if (!text.replace(REFERENCE, '').includes('${')) return;
  throw new UserError(`argument "${at}": a reference is \${NAME}, where NAME has letters, digits and _`);
}

/**
 * Plain http is for hosts that an operator of the Box trusts with it; the gateway refuses all others. Throws a {@link UserError},
 * which names the argument below `at`.
 */
export function expectTrusted(
  box: { name: string; plainHosts: readonly string[] },
  url: string | undefined,
  at: string,
): void {
  if (url === undefined || !url.startsWith('http://')) return;
  const { host } = new URL(url.replace(REFERENCE, 'x'));
  if (box.plainHosts.includes(host)) return;
  throw new UserError(
    `argument "${at}.url" must be an address that begins with https://: plain http is possible for hosts that stand with http: true in spec.egress.trustedHosts of Box ${box.name}, and ${host} is none`,
  );
}

function checkUrl(at: string, url: string | undefined): string {
  if (url === undefined) throw new UserError(`missing required argument: ${at} (string) is needed for transport http`);
  checkReferences(at, url);
  const plain = url.replace(REFERENCE, 'x');
  if (!/^https?:\/\//.test(plain) || /\s/.test(plain) || hostOf(plain) === undefined) {
    throw new UserError(`argument "${at}" must be an address that begins with https://`);
  }
  if (hostOf(url) === undefined) throw new UserError(`argument "${at}" must not hold a reference in its host`);
  const { username, password } = new URL(plain);
  if (username !== '' || password !== '') {
    throw new UserError(`argument "${at}" must not hold a user name or password: use a header with a reference`);
  }
  return url;
}

/** Those of `spec.egress.trustedHosts` of a Box that may be reached with plain http. */
export function plainHostsOf(trusted: readonly { host: string; http: boolean }[] = []): string[] {
  return trusted.flatMap(({ host, http }) => (http ? [host] : []));
}
