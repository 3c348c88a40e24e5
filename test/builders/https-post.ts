/** A POST over TLS the way a runner does it: any address, the certificate must carry the given name. */
import { request } from 'node:https';
import type { Agent } from 'node:https';

export interface HttpsPost {
  port: number;
  path: string;
  serverName: string;
  ca: string;
  token?: string;
  /** A string is sent as it is. */
  body?: unknown;
  /** Connections to use again; each call opens one of its own when absent. */
  agent?: Agent;
}

export interface HttpsReply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Empty when the answer is no JSON. */
  json: Record<string, unknown>;
  text: string;
  /** SHA-256 fingerprint of the certificate that the server showed. */
  fingerprint: string;
}

/** Rejects when the connection or its certificate is refused. */
export function httpsPost(options: HttpsPost): Promise<HttpsReply> {
  return new Promise((resolve, reject) => {
    const { port, path, serverName, ca, token, body, agent = false } = options;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const outgoing = request(
      { host: '127.0.0.1', port, path, method: 'POST', ca, servername: serverName, agent, headers },
      (incoming) => {
        const socket = incoming.socket as unknown as { getPeerCertificate(): { fingerprint256: string } };
        const fingerprint = socket.getPeerCertificate().fingerprint256;
        const parts: Buffer[] = [];
        incoming.on('data', (part: Buffer) => parts.push(part));
        incoming.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8');
          const isJson = incoming.headers['content-type'] === 'application/json';
          const json = isJson ? (JSON.parse(text) as Record<string, unknown>) : {};
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, json, text, fingerprint });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
  });
}
