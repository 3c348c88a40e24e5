/**
 * Who may speak for a run: tokens of others, forged, expired and invented ones against the gateway of a live install, and
 * what replayed and late reports of the right one do.
 */
import { jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { toolEvent } from '../../builders/run-events.js';
import { boundToken, callPath, linkFor, runToken } from '../support/gateway.js';
import type { GatewayLink } from '../support/gateway.js';
import { eventually, kubectl, kubectlOk } from '../support/install.js';
import { finishedRun } from '../support/mcp.js';
import { createRun, ended, readRun, requestCancel, stepped } from '../support/runs.js';
import type { RunObject } from '../support/runs.js';
import { createTenant } from '../support/tenant.js';
import type { Tenant } from '../support/tenant.js';

jest.setTimeout(900_000);

const REVIEWS = 'boxwright_gateway_token_reviews_total';
/** May mint any token, which is what a node cannot do. */
const OMNIPOTENT = ['--as=e2e', '--as-group=system:masters', '--as-group=system:nodes'];

describe('tokens of runs', () => {
  let tenant: Tenant;
  let victim: RunObject;
  let token: string;
  let link: GatewayLink;

  beforeAll(async () => {
    tenant = await createTenant('e2e-tokens', { box: { resources: { memory: '64Mi' } } });
    await tenant.agent('worker');
    victim = await working('victim');
    token = await runToken(tenant.namespace, victim);
    link = await linkFor(victim);
  });

  afterAll(async () => {
    await link.close();
    await tenant.removed();
  });

  /** A run whose pod is in a tool call that lasts. */
  async function working(name: string): Promise<RunObject> {
    await createRun(
      tenant,
      'worker',
      '/tool shell {"command":"sleep 590","timeoutSeconds":600}\n/say I was left alone.',
      name,
    );
    return stepped(tenant, name);
  }

  const path = (call: Parameters<typeof callPath>[2], run = victim) =>
    callPath(tenant.namespace, run.metadata.name, call);
  const heartbeat = (run: RunObject) => ({ epoch: run.status?.claim?.epoch ?? 0, events: [] });

  test('only the node of the pod gets one: not an administrator, not another node', async () => {
    const refused = async (who: string[], message: string) => {
      const result = await kubectl([...who, ...boundToken(tenant.namespace, victim)]);
      expect({ who, ok: result.ok, stderr: result.stderr }).toEqual({
        who,
        ok: false,
        stderr: expect.stringContaining(message),
      });
    };
    await refused([], 'tokens of run pods are issued to nodes only');
    await refused(['--as=eddy', '--as-group=system:masters'], 'tokens of run pods are issued to nodes only');
    await refused(['--as=system:node:elsewhere', '--as-group=system:nodes'], 'elsewhere');
    expect((await link.post(path('events'), token, heartbeat(victim))).status).toBe(200);
  });

  test('a token of another run is refused for every call, and nothing of the run changes', async () => {
    const other = await working('other');
    const otherToken = await runToken(tenant.namespace, other);
    const outcome = { reason: 'Completed', message: '', output: 'Forged.' };
    // From here on only its end changes it.
    const before = await eventually('the report of the victim stands in its status', async () => {
      const status = (await readRun(tenant, 'victim'))?.status;
      return (status?.transcript?.chunks ?? 0) > 0 ? status : undefined;
    });

    const claim = { protocol: 1, podUid: victim.status?.claim?.podUid };
    const answers = [
      await link.post(path('claim'), otherToken, claim),
      await link.post(path('events'), otherToken, heartbeat(victim)),
      await link.post(path('finish'), otherToken, { ...heartbeat(victim), outcome }),
      await link.post(path('tool'), otherToken, { epoch: 1, call: 1, tool: 'memory_save', input: { text: 'x' } }),
    ];

    for (const { status, json } of answers) {
      expect({ status, json }).toEqual({ status: 403, json: { error: 'the token belongs to another run' } });
    }
    expect((await readRun(tenant, 'victim'))?.status).toEqual(before);
    await requestCancel(tenant, 'other');
  });

  test.each([
    ['for another audience', () => [...OMNIPOTENT, ...boundToken(tenant.namespace, victim, 'vault')]],
    [
      'for the Kubernetes API',
      () => [...OMNIPOTENT, ...boundToken(tenant.namespace, victim, 'https://kubernetes.default.svc.cluster.local')],
    ],
    [
      'bound to no pod',
      () => [...OMNIPOTENT, 'create', 'token', 'boxwright-runner', '-n', tenant.namespace, '--audience=boxwright-run'],
    ],
    [
      'of another service account',
      () => [...OMNIPOTENT, 'create', 'token', 'default', '-n', tenant.namespace, '--audience=boxwright-run'],
    ],
  ])('a genuine token %s is refused without asking the API server', async (_name, mint) => {
    const genuine = (await kubectlOk(mint())).trim();
    const before = await link.metric(REVIEWS, 'result="rejected"');
    expect((await link.post(path('events'), genuine, heartbeat(victim))).status).toBe(401);
    expect(await link.metric(REVIEWS, 'result="rejected"')).toBe(before);
  });

  test('an expired token is refused without asking the API server', async () => {
    const before = await link.metric(REVIEWS, 'result="rejected"');
    const answer = await link.post(path('events'), changed(token, { exp: 1 }), heartbeat(victim));
    expect(answer).toMatchObject({ status: 401, json: { error: 'the token has expired' } });
    expect(await link.metric(REVIEWS, 'result="rejected"')).toBe(before);
  });

  test('10,000 random tokens cause no TokenReview, and the run is served as before', async () => {
    const before = await link.metric(REVIEWS, 'result="rejected"');
    const body = heartbeat(victim);
    const statuses = new Set<number>();
    let left = 10_000;
    const flood = async () => {
      while (left > 0) {
        left -= 1;
        // Every other one looks right and names a pod that is not there.
        const pod = { name: `pod-${left}`, uid: randomBytes(8).toString('hex') };
        const invented = left % 2 === 0 ? randomBytes(60).toString('base64url') : changed(token, {}, pod);
        statuses.add((await link.post(path('events'), invented, body)).status);
      }
    };
    await Promise.all(Array.from({ length: 8 }, flood));

    expect([...statuses]).toEqual([401]);
    expect(await link.metric(REVIEWS, 'result="rejected"')).toBe(before);
    expect((await link.post(path('events'), token, body)).status).toBe(200);
  });

  test('forged tokens of a live pod are reviewed three times at most, and do not lock the genuine one out', async () => {
    const before = await link.metric(REVIEWS, 'result="rejected"');
    const exp = Math.floor(Date.now() / 1000) + 500;
    const statuses: number[] = [];
    for (let index = 0; index < 10; index++) {
      statuses.push((await link.post(path('events'), changed(token, { exp: exp + index }), heartbeat(victim))).status);
    }

    expect(statuses).toEqual([401, 401, 401, 429, 429, 429, 429, 429, 429, 429]);
    expect(await link.metric(REVIEWS, 'result="rejected"')).toBe(before + 3);
    expect((await link.post(path('events'), token, heartbeat(victim))).status).toBe(200);
  });

  test('what the right pod repeats changes nothing, what contradicts is refused, and after the end comes 410', async () => {
    const { epoch = 0, podUid } = victim.status?.claim ?? {};
    const claim = { protocol: 1, podUid };
    const first = await link.post(path('claim'), token, claim);
    const again = await link.post(path('claim'), token, claim);
    expect(first.status).toBe(200);
    expect(again.json).toEqual(first.json);
    expect(again.json).toMatchObject({ epoch, run: { name: 'victim' } });

    // The runner has told what it was asked and which call it makes, and says nothing more until its tool call ends.
    await eventually('the runner has reported', async () => {
      const { json } = await link.post(path('events'), token, heartbeat(victim));
      return json['ack'] === 2;
    });
    const report = { epoch, events: [toolEvent(3)] };
    expect(await link.post(path('events'), token, report)).toMatchObject({ status: 200, json: { ack: 3 } });
    expect(await link.post(path('events'), token, report)).toMatchObject({ status: 200, json: { ack: 3 } });
    const other = { epoch, events: [{ ...toolEvent(3), tool: 'something_else' }] };
    expect((await link.post(path('events'), token, other)).status).toBe(409);

    const outcome = { reason: 'Completed', message: '', output: 'Said once.' };
    const finish = { epoch, events: [], outcome };
    expect(await link.post(path('finish'), token, finish)).toMatchObject({ status: 200, json: { phase: 'done' } });
    expect(await link.post(path('finish'), token, finish)).toMatchObject({ status: 200, json: { phase: 'done' } });
    const forged = { ...finish, outcome: { ...outcome, reason: 'ModelError', output: 'Said twice.' } };
    expect(await link.post(path('finish'), token, forged)).toMatchObject({ status: 200, json: { phase: 'done' } });
    expect((await link.post(path('events'), token, { epoch, events: [toolEvent(4)] })).status).toBe(410);
    expect((await link.post('/gateway/boxwright/v1/chat/completions', token, CHAT)).status).toBe(410);

    const run = await ended(tenant, 'victim');
    expect(run.status).toMatchObject({ phase: 'done', reason: 'Completed', output: 'Said once.' });
    const record = await finishedRun(tenant.apiKey, tenant.agentId('worker'), 'victim');
    expect(record.toolCalls).toHaveLength(1);
  });
});

const CHAT = { model: 'scripted', messages: [{ role: 'user', content: '/say late' }] };

/** A token with other claims under the old signature. */
function changed(token: string, claims: object, pod?: { name: string; uid: string }): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const old = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { 'kubernetes.io': object };
  const bound = pod === undefined ? old['kubernetes.io'] : { ...old['kubernetes.io'], pod };
  const next = JSON.stringify({ ...old, ...claims, 'kubernetes.io': bound });
  return [header, Buffer.from(next).toString('base64url'), signature].join('.');
}
