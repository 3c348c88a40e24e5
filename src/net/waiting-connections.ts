/**
 * Connections of a server on which no call is in work: new ones, ones that send their headers slowly, ones that are kept
 * open. They cost memory, and anybody who reaches the port can open any number. When there are too many, one goes: of the
 * address that has most, the one that has waited longest. A connection with a call in work never goes.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { BODY_BASE_BYTES, BodyBudget, type BodyShare } from './body-budget.js';

/** Of one server: far more than proxies and runs keep open. */
export const MAX_WAITING_CONNECTIONS = 4096;

interface Connection {
  socket: Socket;
  inWork: number;
  /** Set while it waits. */
  share?: BodyShare | undefined;
}

/** To be called before the server listens. */
export function limitWaitingConnections(server: Server | TlsServer, maximum = MAX_WAITING_CONNECTIONS): void {
  // One of them counts like a body of which nothing has come.
  const waiting = new BodyBudget(maximum * BODY_BASE_BYTES);
  /** By address and port: with TLS the socket of a call is another object than that of the connection. */
  const open = new Map<string, Connection>();
  const wait = (connection: Connection) => {
    const { socket } = connection;
    connection.share = waiting.open(socket.remoteAddress ?? '', () => socket.destroy());
  };
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    const connection: Connection = { socket, inWork: 0 };
    open.set(key, connection);
    socket.once('close', () => {
      connection.share?.release();
      if (open.get(key) === connection) open.delete(key);
    });
    wait(connection);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = open.get(keyOf(socket));
    if (connection === undefined) return;
    connection.inWork += 1;
    connection.share?.release();
    response.once('close', () => {
      connection.inWork -= 1;
      if (connection.inWork === 0 && !connection.socket.destroyed) wait(connection);
    });
  });
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
