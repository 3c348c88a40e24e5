import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '../../test/builders/fake-clock.js';
import type { ProbeTarget, ProbeTargetName } from '../protocol/network-probe.js';
import type { Clock } from '../runtime/clock.js';
import { canConnect, probe, probeTargets, runNetworkProbe } from './network-probe.js';

const at = (name: ProbeTargetName, port = 1): ProbeTarget => ({ name, host: '127.0.0.1', port });
const TARGETS = [at('gateway'), at('api'), at('kubernetes')];

/** A network that changes from round to round; the last round stays. Counts the rounds. */
function network(...rounds: ProbeTargetName[][]) {
  const seen = { rounds: 0 };
  let tries = 0;
  return {
    seen,
    connector: ({ name }: ProbeTarget) => {
      seen.rounds = Math.floor(tries++ / TARGETS.length) + 1;
      return Promise.resolve((rounds[seen.rounds - 1] ?? rounds.at(-1))?.includes(name) === true);
    },
  };
}

const reported = (...reachable: ProbeTargetName[]) => ({
  targets: TARGETS.map(({ name }) => ({ name, reachable: reachable.includes(name) })),
});

describe('the rounds of a probe', () => {
  test('one is enough when the gateway answers and nothing else does', async () => {
    const { connector, seen } = network(['gateway']);
    const clock = new FakeClock();
    expect(await probe(TARGETS, clock, connector)).toEqual(reported('gateway'));
    expect(seen.rounds).toBe(1);
    expect(clock.pending).toBe(0);
  });

  test('policies that take effect a moment after the start of the pod, and a gateway that still starts, are waited for', async () => {
    const { connector, seen } = network(['api', 'kubernetes'], ['kubernetes'], ['gateway']);
    const clock = new FakeClock();
    const result = probe(TARGETS, clock, connector);
    await clock.advance(4_000);
    expect(await result).toEqual(reported('gateway'));
    expect(seen.rounds).toBe(3);
  });

  test.each<[string, ProbeTargetName[]]>([
    ['a network without rules', ['gateway', 'api', 'kubernetes']],
    ['an open way to the API server alone', ['gateway', 'kubernetes']],
    ['a gateway that never answers', []],
  ])('%s is reported after 45 seconds', async (_name, open) => {
    const { connector, seen } = network(open);
    const clock = new FakeClock();
    const result = probe(TARGETS, clock, connector);
    await clock.advance(43_999);
    const rounds = seen.rounds;
    expect(clock.pending).toBe(1);
    await clock.advance(2_001);
    expect(await result).toEqual(reported(...open));
    expect(seen.rounds).toBe(rounds + 2);
  });
});

describe('a connection', () => {
  let server: Server;
  let open: number;
  let closed: number;

  const listen = (one: Server) =>
    new Promise<number>((resolve) => {
      one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port));
    });
  const close = (one: Server) =>
    new Promise<void>((resolve) => {
      one.close(() => resolve());
    });

  beforeAll(async () => {
    server = createServer((socket) => socket.on('error', () => undefined).end());
    open = await listen(server);
    const other = createServer();
    closed = await listen(other);
    await close(other);
  });

  afterAll(() => close(server));

  test('that is accepted counts as reachable', async () => {
    const clock = new FakeClock();
    expect(await canConnect(at('gateway', open), clock)).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test('that is refused does not', async () => {
    expect(await canConnect(at('gateway', closed), new FakeClock())).toBe(false);
  });

  test('that gets no answer does not, after three seconds', async () => {
    const clock = new FakeClock();
    const tried = canConnect(at('gateway', open), clock);
    await clock.advance(3_000);
    expect(await tried).toBe(false);
  });

  describe('the process', () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'boxwright-probe-'));
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    const env = (kubernetesPort: number) => ({
      BOXWRIGHT_PROBE_TARGETS: JSON.stringify([at('gateway', open), at('api', closed)]),
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(kubernetesPort),
    });
    /** Every look at it is a minute later, and nothing times out. */
    const hasty = (): Clock => {
      let ms = 0;
      return { now: () => ms, monotonic: () => (ms += 60_000), after: () => () => undefined };
    };

    test('ends with 0 when the network is as the policies say', async () => {
      const terminationLog = join(folder, 'enforced');
      const lines: string[] = [];
      const print = (line: string) => void lines.push(line);
      expect(await runNetworkProbe(env(closed), { clock: hasty(), terminationLog, print })).toBe(0);
      const report =
        '{"targets":[{"name":"gateway","reachable":true},{"name":"api","reachable":false},{"name":"kubernetes","reachable":false}]}';
      expect(readFileSync(terminationLog, 'utf8')).toBe(report);
      expect(lines).toEqual([`${report}\n`]);
    });

    test('ends with 0 as well when it is not, and reports it', async () => {
      const terminationLog = join(folder, 'open');
      expect(await runNetworkProbe(env(open), { clock: hasty(), terminationLog, print: () => undefined })).toBe(0);
      expect(readFileSync(terminationLog, 'utf8')).toBe(
        '{"targets":[{"name":"gateway","reachable":true},{"name":"api","reachable":false},{"name":"kubernetes","reachable":true}]}',
      );
    });
  });
});

test('the address of the API server comes from Kubernetes itself', () => {
  const env = { BOXWRIGHT_PROBE_TARGETS: '[{"name":"gateway","host":"fd00::7","port":8443}]' };
  expect(probeTargets({ ...env, KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' })).toEqual([
    { name: 'gateway', host: 'fd00::7', port: 8443 },
    { name: 'kubernetes', host: '10.96.0.1', port: 443 },
  ]);
  expect(() => probeTargets(env)).toThrow(
    'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not name the Kubernetes API server',
  );
});

test.each([
  ['nothing', undefined],
  ['no JSON', 'gateway:8443'],
  ['a target of no name that is known', '[{"name":"moon","host":"10.0.0.1","port":1}]'],
])('targets: %s is refused', (_name, text) => {
  expect(() => probeTargets({ BOXWRIGHT_PROBE_TARGETS: text })).toThrow('BOXWRIGHT_PROBE_TARGETS');
});
