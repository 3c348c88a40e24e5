/**
 * The fake vendors of test/builders/fake-provider.ts as the process of a pod, with a second port on which a test says how a
 * case is answered and reads what was asked: `POST /script` with {@link ProviderScript}, `GET /seen?name=&text=` gives
 * {@link SeenCase}. A case is known by the marker `[case:NAME]` in the message of the run. That port also plays a server that
 * redirects: `/redirect` leads to `/landed`, and `GET /paths` tells which of them were asked for.
 */
import { createServer } from 'node:http';
import { startFakeProvider } from '../../builders/fake-provider.js';
import { withRunIds } from './run-ids.js';
import type { FakeAnswer, FakeFault, SeenRequest } from '../../builders/fake-provider.js';

export const VENDOR_PORT = 8080;
export const CONTROL_PORT = 8081;

/**
 * `usage: 'all'` uses as much as the request allows: four bytes are a token, and its whole output limit is written. The text is said
 * `times` over.
 */
export type ScriptedAnswer =
  FakeFault | (Omit<FakeAnswer, 'usage'> & { usage?: FakeAnswer['usage'] | 'all'; times?: number });

export interface ProviderScript {
  name: string;
  /** One after another; the last one again and again. */
  answers: ScriptedAnswer[];
}

/** Requests of one case, oldest first. */
export interface SeenCase {
  requests: (Pick<SeenRequest, 'vendor' | 'method' | 'path' | 'headers' | 'streamed' | 'gone' | 'given'> & {
    /** Whether the text that was asked for stands in it. */
    holds: boolean;
  })[];
}

const paths: string[] = [];
const scripts = new Map<string, ScriptedAnswer[]>();
const cases = new Map<string, SeenRequest[]>();

function answerFor(seen: SeenRequest): FakeAnswer | FakeFault {
  const text = JSON.stringify(seen.body);
  const name = [...scripts.keys()].find((known) => text.includes(`[case:${known}]`)) ?? '';
  const before = cases.get(name) ?? [];
  cases.set(name, [...before, seen]);
  const answers = scripts.get(name) ?? [];
  const answer = answers[Math.min(before.length, answers.length - 1)] ?? { text: 'There is no such case.' };
  if ('fault' in answer) return answer;
  const { usage, times = 1, ...rest } = withRunIds(answer, text);
  const said = { ...rest, ...(rest.text === undefined ? {} : { text: rest.text.repeat(times) }) };
  if (usage !== 'all') return usage === undefined ? said : { ...said, usage };
  return { ...said, usage: { input: Math.ceil(Buffer.byteLength(text) / 4), output: Number(seen.body['max_tokens']) } };
}

function seenCase(name: string, text: string): SeenCase {
  const requests = (cases.get(name) ?? []).map(({ body, ...request }) => ({
    ...request,
    holds: JSON.stringify(body).includes(text),
  }));
  return { requests };
}

await startFakeProvider({
  key: process.env['VENDOR_KEY'] ?? '',
  answers: answerFor,
  listen: { host: '0.0.0.0', port: VENDOR_PORT },
});
createServer((incoming, outgoing) => {
  // The API server's proxy keeps connections for 90 s and does not repeat a POST: one that we had closed would fail a test.
  outgoing.setHeader('connection', 'close');
  const pieces: Buffer[] = [];
  incoming.on('data', (piece: Buffer) => pieces.push(piece));
  incoming.on('end', () => {
    const url = new URL(incoming.url ?? '', 'http://control');
    if (url.pathname === '/redirect' || url.pathname === '/landed') {
      paths.push(url.pathname);
      return outgoing.writeHead(307, { location: '/landed' }).end();
    }
    if (url.pathname === '/paths') {
      return outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(paths));
    }
    if (incoming.method === 'POST') {
      const script = JSON.parse(Buffer.concat(pieces).toString('utf8')) as ProviderScript;
      scripts.set(script.name, script.answers);
    }
    const seen = seenCase(url.searchParams.get('name') ?? '', url.searchParams.get('text') ?? '');
    return outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(seen));
  });
}).listen(CONTROL_PORT, '0.0.0.0');
