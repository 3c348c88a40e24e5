import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { Database } from './database.js';
import { ArchiveUnavailableError } from './types.js';

/** What a server of PostgreSQL says when it lets somebody in: AuthenticationOk, then ReadyForQuery. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const METRICS = { called: () => undefined, reachable: () => undefined, waiting: () => undefined };

test('a server that ends in the middle of a transaction fails the call, and not the process', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write(WELCOME);
      socket.once('data', () => socket.destroy());
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const database = new Database({
    url: `postgresql://user:password@127.0.0.1:${port}/database`,
    clock: new FakeClock(),
    log: recordingLog().log,
    metrics: METRICS,
    connections: 1,
    makesTables: false,
  });
  const call = { operation: 'list', readOnly: true, signal: new AbortController().signal };

  await expect(database.transaction(call, () => Promise.resolve())).rejects.toThrow(ArchiveUnavailableError);

  await database.close();
  server.close();
});
