/**
 * A real PostgreSQL server for tests: own data folder, a free loopback port, nothing shared with a server of the machine.
 * It refuses to run as root, so root starts it as the user `postgres` of Debian's package.
 */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from './free-port.js';

const INSTALLED = '/usr/lib/postgresql';
const START_MS = 120_000;

export interface PostgresServer {
  /** Of the database `boxwright`; stays the same over a restart. */
  url: string;
  /** Starts the stopped server again, with its data. */
  start(): Promise<void>;
  /** Stops it at once, as a crash would: connections break. */
  kill(): Promise<void>;
  /** One statement, as a person with psql. */
  query<R extends object>(sql: string, values?: unknown[]): Promise<R[]>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

export async function startPostgres(): Promise<PostgresServer> {
  const bin = findBinaries();
  const user = serverUser();
  const folder = mkdtempSync(join(tmpdir(), 'boxwright-postgres-'));
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const locale = ['--encoding=UTF8', '--locale=C.UTF-8'];
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'boxwright', '--auth=trust', '--no-sync', ...locale], {
    ...user,
    cwd: folder,
    stdio: 'pipe',
  });
  const port = await freePort();
  const url = (database: string) => `postgresql://boxwright:not-a-secret@127.0.0.1:${port}/${database}`;
  let server: ChildProcess | undefined;
  const onExit = () => server?.kill('SIGKILL');
  process.on('exit', onExit);

  async function start(): Promise<void> {
    const settings = ['fsync=off', 'max_connections=40', 'log_min_messages=fatal'].flatMap((one) => ['-c', one]);
    const address = ['-h', '127.0.0.1', '-p', String(port), '-k', folder];
    server = spawn(join(bin, 'postgres'), ['-D', data, ...address, ...settings], {
      ...user,
      cwd: folder,
      stdio: 'ignore',
    });
    await untilReady(url('postgres'));
  }

  async function kill(): Promise<void> {
    if (server === undefined) return;
    const ended = once(server, 'exit');
    // Immediate shutdown: no goodbye to clients; recovery at the next start.
    server.kill('SIGQUIT');
    await ended;
    server = undefined;
  }

  await start();
  await run(url('postgres'), 'create database boxwright', []);
  return {
    url: url('boxwright'),
    start,
    kill,
    query: (sql, values = []) => run(url('boxwright'), sql, values),
    remove: async () => {
      await kill();
      process.off('exit', onExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Programs of the newest installed version. */
function findBinaries(): string {
  const version = newestVersion();
  if (version === undefined) {
    throw new Error('this test needs a PostgreSQL server: install it, on Debian with apt-get install postgresql');
  }
  return join(INSTALLED, version, 'bin');
}

function newestVersion(): string | undefined {
  if (!existsSync(INSTALLED)) return undefined;
  const versions = readdirSync(INSTALLED).filter((name) => existsSync(join(INSTALLED, name, 'bin', 'postgres')));
  return versions.sort((a, b) => Number(b) - Number(a))[0];
}

function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function untilReady(url: string): Promise<void> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    try {
      await run(url, 'select 1', []);
      return;
    } catch (error) {
      if (Date.now() > deadline) throw new Error('the PostgreSQL server did not start', { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function run<R extends object>(url: string, sql: string, values: unknown[]): Promise<R[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 30_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<R>(sql, values)).rows;
  } finally {
    await client.end();
  }
}
