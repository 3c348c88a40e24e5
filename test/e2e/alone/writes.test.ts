/** What a run costs the API server, by its own count of requests: everything that the cluster does at that time is in it. */
import { jest } from '@jest/globals';
import { eventually, getObject, kubectlOk } from '../support/install.js';
import { finishedRun, toolOk } from '../support/mcp.js';
import { createTenant } from '../support/tenant.js';
import type { Tenant } from '../support/tenant.js';

jest.setTimeout(900_000);

interface OwnedJob {
  spec: { ttlSecondsAfterFinished?: number };
}

describe('the writes of a run', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-writes');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.removed();
  });

  test('a short run costs exactly the writes that are promised', async () => {
    const { url } = await toolOk<{ url: string }>(tenant.apiKey, 'upsert_trigger', {
      agentId: tenant.agentId('worker'),
      name: 'Counted',
      body: '/say Counted.',
    });
    await quiet();
    const before = await requestCounts();

    const { runId } = (await (await fetch(url, { method: 'POST' })).json()) as { runId: string };
    await finishedRun(tenant.apiKey, tenant.agentId('worker'), runId);
    await eventually('the time to live is on the Job', async () => {
      const job = await getObject<OwnedJob>('job', runId, tenant.namespace);
      return job?.spec.ttlSecondsAfterFinished === 600;
    });
    const after = await requestCounts();

    const grown = [...after].flatMap(([key, value]) =>
      value > (before.get(key) ?? 0) ? [[key, value - (before.get(key) ?? 0)]] : [],
    );
    expect(Object.fromEntries(grown)).toEqual({
      'agentruns POST': 1,
      'agentruns/status PATCH': 2,
      // get_run reads the object once a call; the tests' own kubectl reads are GETs as well, so reads are not counted here.
      'jobs POST': 1,
      'jobs PATCH': 1,
      'agentrunchunks POST': 1,
    });
  });
});

/** Waits until the runs before are over for the API server too: the last write of a run is the time to live of its Job. */
async function quiet(): Promise<void> {
  await eventually('every Job of a run has its time to live', async () => {
    const jobs = await kubectlOk(['get', 'jobs', '-A', '-l', 'boxwright.dev/run', '-o', 'json']);
    const { items } = JSON.parse(jobs) as { items: OwnedJob[] };
    return items.every(({ spec }) => spec.ttlSecondsAfterFinished !== undefined);
  });
}

/** Writes on the kinds of a run, from the API server's own counter: `resource[/subresource] VERB` -> count. */
async function requestCounts(): Promise<Map<string, number>> {
  const text = await kubectlOk(['get', '--raw', '/metrics']);
  const counts = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (!line.startsWith('apiserver_request_total{')) continue;
    const label = (name: string) => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? '';
    const resource = label('resource');
    const verb = label('verb');
    if (
      !['agentruns', 'agentrunchunks', 'agentrunfileparts', 'jobs'].includes(resource) ||
      !['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE'].includes(verb)
    )
      continue;
    const subresource = label('subresource');
    // Kubernetes itself writes jobs/status, and deletes Jobs of earlier runs when their time to live is over.
    if (resource === 'jobs' && (subresource === 'status' || verb === 'DELETE')) continue;
    const key = `${resource}${subresource === '' ? '' : `/${subresource}`} ${verb}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1)));
  }
  return counts;
}
