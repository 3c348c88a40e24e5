/** HTTP by hand: what a test sends and receives is exactly what stands on the wire. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** All bytes but the Date, which differs from answer to answer. */
  bytes: string;
}

/** Opens a connection; the test writes what it wants. */
export function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Everything until the server closes. A reset behind the answer does not matter; one instead of it shows up as text. */
export function readToEnd(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.removeAllListeners('error');
    socket.setEncoding('latin1').on('data', (part: string) => (text += part));
    socket.on('error', (error) => (text += String(error)));
    socket.on('close', () => resolve(text));
  });
}

/** Sends a head and a body, and only then reads. The head gets Host and Connection: close. */
export async function send(port: number, head: string, body: string | Buffer = ''): Promise<RawAnswer> {
  const socket = await open(port);
  const [line, ...fields] = head.split('\n');
  socket.write([line, 'Host: agents.example.com', 'Connection: close', ...fields, '', ''].join('\r\n'));
  await new Promise<void>((resolve, reject) => {
    socket.write(body, (error) => (error ? reject(error) : resolve()));
  });
  return parse(await readToEnd(socket));
}

export function parse(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const [line = '', ...fields] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    }),
  );
  return {
    status: Number(line.split(' ')[1]),
    headers,
    body: text.slice(end + 4),
    bytes: text.replace(/\r\nDate: [^\r]*/, ''),
  };
}

/** A body in chunks of 64 KiB, as senders do that do not know its length. */
export function chunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += 65_536) {
    const part = body.subarray(at, at + 65_536);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
