/** A POST over TLS the way a runner does it: any address, the certificate must carry the given name. */
import { request } from 'node:https';

export interface HttpsPost {
  port: number;
  path: string;
  serverName: string;
  ca: string;
  token?: string;
  body?: unknown;
}

export interface HttpsReply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  json: Record<string, unknown>;
  /** SHA-256 fingerprint of the certificate that the server showed. */
  fingerprint: string;
}

/** Rejects when the connection or its certificate is refused. Each call opens a connection of its own. */
export function httpsPost(options: HttpsPost): Promise<HttpsReply> {
  return new Promise((resolve, reject) => {
    const { port, path, serverName, ca, token, body } = options;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const outgoing = request(
      { host: '127.0.0.1', port, path, method: 'POST', ca, servername: serverName, agent: false, headers },
      (incoming) => {
        const socket = incoming.socket as unknown as { getPeerCertificate(): { fingerprint256: string } };
        const fingerprint = socket.getPeerCertificate().fingerprint256;
        const parts: Buffer[] = [];
        incoming.on('data', (part: Buffer) => parts.push(part));
        incoming.on('end', () => {
          const json = JSON.parse(Buffer.concat(parts).toString('utf8')) as Record<string, unknown>;
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, json, fingerprint });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(JSON.stringify(body ?? {}));
  });
}
