/** A session that is only in a real PostgreSQL goes on: the gateway reads it with the rights of a user who may only select. */
import { Registry } from 'prom-client';
import { PostgresArchive } from '../../src/archive/postgres-archive.js';
import { createArchiveMetrics } from '../../src/observability/metrics.js';
import { openArchiveReader } from '../../src/processes/archive-reader.js';
import { systemClock } from '../../src/runtime/clock.js';
import { makeChunk, makeEntry, makeFinishedRun } from '../builders/archive-entries.js';
import { BOX, GatewayWorld } from '../builders/gateway-world.js';
import { recordingLog } from '../builders/log.js';
import { startPostgres } from '../builders/postgres-server.js';
import type { PostgresServer } from '../builders/postgres-server.js';
import { assistantMessage, userMessage } from '../builders/run-events.js';

const signal = new AbortController().signal;

describe('a session in PostgreSQL', () => {
  let server: PostgresServer;
  let writer: PostgresArchive;
  let reader: PostgresArchive | undefined;

  beforeAll(async () => {
    server = await startPostgres();
    const clock = systemClock;
    const { log } = recordingLog();
    const metrics = createArchiveMetrics(new Registry());
    writer = PostgresArchive.open({ url: server.url, clock, log, metrics, connections: 2, makesTables: true });
    await writer.prepare(clock, signal);
    await server.query('create role reader login');
    await server.query('grant select on all tables in schema public to reader');
    const url = server.url.replace('boxwright:not-a-secret', 'reader:not-a-secret');
    reader = openArchiveReader(url, { clock, log, registry: new Registry() });
  }, 300_000);

  afterAll(async () => {
    await Promise.all([writer.close(), reader?.close()]);
    await server.remove();
  });

  it('is given to the next run, and only named while PostgreSQL is away', async () => {
    const claim = {
      podUid: 'uid-pod',
      podName: 'helper-1-a',
      at: '2026-05-01T09:00:01.000Z',
      gatewayPod: 'g',
      gatewayUid: 'uid-g',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    };
    const run = makeFinishedRun('helper-1', {
      spec: { agent: 'helper', agentUid: 'uid-agent' },
      status: { claim, transcript: { state: 'full', chunks: 1, bytes: 100 } },
    });
    const chunks = [await makeChunk(run, 0, [userMessage(1, 'hello'), assistantMessage(2, 'Hello!')])];
    await writer.put(makeEntry(run, { workspace: 'main', box: BOX, chunks }), signal);

    const world = new GatewayWorld(reader === undefined ? {} : { archive: reader });
    const gateway = world.startGateway();
    const next = (name: string) => world.addRun(name, { sessionId: 's-helper-1', message: 'and then?' });
    const known = await world.claim(gateway, next('helper-2'));
    expect([known.status, known.json['history']]).toEqual([
      200,
      [
        { role: 'user', text: 'hello' },
        { role: 'assistant', text: 'Hello!' },
      ],
    ]);

    await server.kill();
    const away = await world.claim(gateway, next('helper-3'));
    expect(away.status).toBe(200);
    expect(JSON.stringify(away.json['history'])).toContain('the archive cannot be read at the moment');
    await server.start();
  });
});
