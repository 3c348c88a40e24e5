/** The schedule tools: list_schedules, upsert_schedule, run_schedule_now, delete_schedule. */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import { apiError } from '../builders/recording-api.js';
import { KEY, McpHarness } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
const OBJECT = 'bw-acme-box/greeter.morning-news';
const UPSERT = { agentId: AGENT, name: 'Morning news', body: 'Write the news.', cron: '0 9 * * 1-5' };
const RECORD = {
  slug: 'morning-news',
  name: 'Morning news',
  description: '',
  body: 'Write the news.',
  cron: '0 9 * * 1-5',
  runAt: null,
  timezone: 'UTC',
  enabled: true,
  lastRunAt: null,
  lastRunId: null,
  // It is Friday, 1 May 2026, 10:00.
  nextRunAt: '2026-05-04T09:00:00.000Z',
};

let harness: McpHarness;
beforeEach(() => {
  harness = new McpHarness();
});

const stored = () => harness.api.peek(AgentSchedules, OBJECT)?.spec;
const upsert = (args: object) => harness.call('upsert_schedule', { agentId: AGENT, ...args });
async function made(args: object = {}) {
  const answer = await upsert({ ...UPSERT, ...args });
  expect(answer.payload['error']).toBeUndefined();
  harness.api.clearRecords();
  return answer.payload;
}

async function refused(args: object, error: string) {
  const answer = await upsert(args);
  expect(answer.raw).toEqual({ content: [{ type: 'text', text: JSON.stringify({ error }) }], isError: true });
  expect(harness.api.writes).toEqual([]);
}

describe('upsert_schedule creates', () => {
  test('a schedule with one write, and answers with its next run', async () => {
    const { payload } = await upsert(UPSERT);
    expect(payload).toEqual(RECORD);
    expect(harness.requests()).toEqual(['create agentschedules']);
    expect(harness.api.peek(AgentSchedules, OBJECT)).toMatchObject({
      metadata: {
        labels: { 'boxwright.dev/agent': 'greeter' },
        annotations: { 'boxwright.dev/requested-by': KEY.slice(0, 11) },
      },
      spec: { agent: 'greeter', name: 'Morning news', cron: '0 9 * * 1-5', timezone: 'UTC', enabled: true },
    });
    expect(harness.barriers).toEqual([{ kind: 'AgentSchedule', resourceVersion: expect.stringMatching(/^\d+$/) }]);
  });

  test('a schedule in a zone', async () => {
    expect((await upsert({ ...UPSERT, timezone: 'Europe/Berlin' })).payload['nextRunAt']).toBe(
      '2026-05-04T07:00:00.000Z',
    );
  });

  test('a disabled one, which has no next run', async () => {
    expect((await upsert({ ...UPSERT, enabled: false })).payload).toEqual({
      ...RECORD,
      enabled: false,
      nextRunAt: null,
    });
  });

  test.each([
    ['in its zone', { runAt: '2026-05-02T09:00', timezone: 'Europe/Berlin' }, '2026-05-02T07:00:00.000Z'],
    ['in UTC by default', { runAt: '2026-05-02T09:00' }, '2026-05-02T09:00:00.000Z'],
    ['with an offset', { runAt: '2026-05-02T09:00:00-04:00', timezone: 'Asia/Tokyo' }, '2026-05-02T13:00:00.000Z'],
  ])('a one-off %s', async (_what, timing, expected) => {
    const { payload } = await upsert({ ...UPSERT, cron: null, ...timing });
    expect(payload).toMatchObject({ cron: null, runAt: expected, nextRunAt: expected });
    expect(stored()).toMatchObject({ runAt: expected });
    expect(stored()).not.toHaveProperty('cron');
  });

  test('under a slug of its own when nothing of the name is left', async () => {
    expect((await upsert({ ...UPSERT, name: '日本' })).payload).toMatchObject({
      slug: expect.stringMatching(/^schedule-[0-9a-f]{4}$/),
      name: '日本',
    });
  });

  test('nothing under a slug that is taken', async () => {
    await made();
    const { isError, payload } = await upsert({ ...UPSERT, name: 'morning NEWS!' });
    expect(isError).toBe(true);
    expect(payload).toEqual({
      error:
        'this agent already has a schedule with slug morning-news: pass slug "morning-news" to update it, or choose another name',
    });
    expect(stored()?.name).toBe('Morning news');
  });

  test.each([
    [{ body: 'b', cron: '* * * * *' }, 'missing required argument: name (string) is needed to create a schedule; to update one, pass its slug'],
    [{ name: 'a', cron: '* * * * *' }, 'missing required argument: body (string) is needed to create a schedule; to update one, pass its slug'],
    [{ name: 'a', body: 'b' }, 'missing required argument: cron (five fields, repeats) or runAt (a date, once) is needed to create a schedule'],
    [{ ...UPSERT, runAt: '2030-01-01T00:00Z' }, 'pass either cron (repeats) or runAt (once), not both'],
    [{ ...UPSERT, cron: '0 0 9 * * *' }, 'argument "cron" must have exactly five fields: minute, hour, day of month, month, day of week, for example "0 9 * * 1-5"'],
    [{ ...UPSERT, cron: '@daily' }, 'argument "cron" must have exactly five fields: minute, hour, day of month, month, day of week, for example "0 9 * * 1-5"'],
    [{ ...UPSERT, cron: '0 25 * * *' }, 'argument "cron" has a wrong hour (field 2): use 0-23, *, lists (1,3), ranges (1-5) and steps (*/10)'],
    [{ ...UPSERT, cron: '0 0 30 2 *' }, 'argument "cron" never comes: no date fits, such as February 30'],
    [{ ...UPSERT, timezone: '+02:00' }, 'argument "timezone" must be an IANA time zone, for example Europe/Berlin or UTC'],
    [{ name: 'a', body: 'b', runAt: 'tomorrow' }, 'argument "runAt" must be a date and time, for example 2030-01-31T09:00 (in timezone) or 2030-01-31T09:00:00Z'],
    [{ name: 'a', body: 'b', runAt: '2026-05-01T11:59', timezone: 'Europe/Berlin' }, 'argument "runAt" is in the past: it is 2026-05-01T10:00:00.000Z now; pass a later time'],
    [{ ...UPSERT, body: 'é'.repeat(32_769) }, 'argument "body" must have at most 65536 bytes'],
    [{ ...UPSERT, body: '' }, 'argument "body" must have at least 1 character'],
    [{ ...UPSERT, name: 'n'.repeat(129) }, 'argument "name" must have at most 128 characters'],
    [{ ...UPSERT, name: 5 }, 'argument "name" must be a string, got a number'],
    [{ ...UPSERT, cron: ['*'] }, 'argument "cron" must be a string, got an array'],
    [{ ...UPSERT, cron: '*'.repeat(129) }, 'argument "cron" must have at most 128 characters'],
    [{ name: 'a', body: 'b', runAt: 1_900_000_000 }, 'argument "runAt" must be a string, got a number'],
    [{ ...UPSERT, timezone: {} }, 'argument "timezone" must be a string, got an object'],
    [{ ...UPSERT, enabled: 'yes' }, 'argument "enabled" must be a boolean, got a string'],
    [{ ...UPSERT, description: 'd'.repeat(1025) }, 'argument "description" must have at most 1024 characters'],
    [{ ...UPSERT, slug: '' }, 'argument "slug" must have at least 1 character'],
  ])('nothing from %j', async (args, error) => {
    await refused(args, error);
  }); // prettier-ignore
});

describe('upsert_schedule updates', () => {
  test('only what is passed, with one write', async () => {
    await made();
    const { payload } = await upsert({ slug: 'morning-news', description: 'Daily.', name: 'Morning news' });
    expect(payload).toEqual({ ...RECORD, description: 'Daily.' });
    expect(harness.requests()).toEqual(['patch agentschedules']);
    expect(harness.api.writes[0]?.body).toMatchObject({ spec: { description: 'Daily.' } });
  });

  test('nothing that is as it was, with no write', async () => {
    await made();
    const { payload } = await upsert({ ...UPSERT, slug: 'morning-news', enabled: true, timezone: 'UTC' });
    expect(payload).toEqual(RECORD);
    expect(harness.requests()).toEqual([]);
  });

  test('a date clears the cron line, and a cron line the date', async () => {
    await made();
    const date = '2026-05-02T09:00:00.000Z';
    const once = await upsert({ slug: 'morning-news', runAt: '2026-05-02T09:00' });
    expect(once.payload).toEqual({ ...RECORD, cron: null, runAt: date, nextRunAt: date });
    expect(stored()).not.toHaveProperty('cron');
    const again = await upsert({ slug: 'morning-news', cron: '0 9 * * 1-5' });
    expect(again.payload).toEqual(RECORD);
    expect(stored()).not.toHaveProperty('runAt');
  });

  test('another zone moves a cron line and leaves a date at its moment', async () => {
    await made();
    expect((await upsert({ slug: 'morning-news', timezone: 'Asia/Tokyo' })).payload['nextRunAt']).toBe(
      '2026-05-04T00:00:00.000Z',
    );
    await upsert({ slug: 'morning-news', runAt: '2026-05-02T09:00' });
    const moved = await upsert({ slug: 'morning-news', timezone: 'UTC' });
    expect(moved.payload).toMatchObject({ runAt: '2026-05-02T00:00:00.000Z', timezone: 'UTC' });
  });

  test.each([
    ['another name', { name: 'Evening' }, 'cannot be renamed: delete and recreate the schedule'],
    ['a wrong cron line', { cron: 'x' }, 'argument "cron" must have exactly five fields: minute, hour, day of month, month, day of week, for example "0 9 * * 1-5"'],
    ['a zone that does not exist', { timezone: 'Mars' }, 'argument "timezone" must be an IANA time zone, for example Europe/Berlin or UTC'],
    ['a date that is over', { runAt: '2026-05-01T10:00Z' }, 'argument "runAt" is in the past: it is 2026-05-01T10:00:00.000Z now; pass a later time'],
  ])('nothing for %s', async (_what, args, error) => {
    await made();
    await refused({ slug: 'morning-news', ...args }, error);
  }); // prettier-ignore

  test('nothing for enabling a date that is over', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'once', {
      spec: { cron: undefined, runAt: '2026-04-30T09:00:00.000Z', enabled: false },
    });
    await refused(
      { slug: 'once', enabled: true },
      'argument "runAt" is in the past: it is 2026-05-01T10:00:00.000Z now; pass a later time',
    );
  });

  test('an unknown slug answers with the nearest ones', async () => {
    await made();
    await refused(
      { slug: 'morning-new', enabled: false },
      'schedule not found: this agent has no schedule with this slug; its slugs are: morning-news',
    );
    await refused(
      { slug: '../secrets', enabled: false },
      'schedule not found: this agent has no schedule with this slug; its slugs are: morning-news',
    );
  });
});

describe('list_schedules', () => {
  test('shows all of the agent’s own by slug, without a request', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'b', {
      status: { lastRunAt: '2026-04-30T09:00:00Z', lastRunId: 'greeter-1', lastTick: '2026-04-30T09:00:00Z' },
    });
    harness.seedSchedule('acme-box', 'greeter', 'a', {
      spec: { cron: undefined, runAt: '2026-06-01T09:00', timezone: 'Europe/Berlin' },
    });
    harness.seedSchedule('acme-box', 'other', 'c');
    harness.seedSchedule('acme-box', 'greeter', 'd', { metadata: { deletionTimestamp: '2026-05-01T09:00:00Z' } });
    harness.api.clearRecords();
    const { payload } = await harness.call('list_schedules', { agentId: AGENT });
    expect(payload).toEqual({
      schedules: [
        {
          slug: 'a', name: 'a', description: '', body: 'write the news', cron: null, runAt: '2026-06-01T07:00:00.000Z',
          timezone: 'Europe/Berlin', enabled: true, lastRunAt: null, lastRunId: null, nextRunAt: '2026-06-01T07:00:00.000Z',
        },
        {
          slug: 'b', name: 'b', description: '', body: 'write the news', cron: '0 9 * * *', runAt: null, timezone: 'UTC', enabled: true,
          lastRunAt: '2026-04-30T09:00:00.000Z', lastRunId: 'greeter-1', nextRunAt: '2026-05-02T09:00:00.000Z',
        },
      ],
    }); // prettier-ignore
    expect(harness.requests()).toEqual([]);
    const agent = await harness.call('get_agent', { agentId: AGENT });
    expect(agent.payload['schedules']).toEqual([
      { slug: 'a', name: 'a', cron: null, runAt: '2026-06-01T07:00:00.000Z', timezone: 'Europe/Berlin', enabled: true, nextRunAt: '2026-06-01T07:00:00.000Z' },
      { slug: 'b', name: 'b', cron: '0 9 * * *', runAt: null, timezone: 'UTC', enabled: true, nextRunAt: '2026-05-02T09:00:00.000Z' },
    ]); // prettier-ignore
  });

  test('shows a manifest that cannot be followed as it is, without a next run', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'bad', { spec: { cron: 'whenever' } });
    const { payload } = await harness.call('list_schedules', { agentId: AGENT });
    expect(payload['schedules']).toMatchObject([{ cron: 'whenever', nextRunAt: null }]);
  });
});

describe('run_schedule_now', () => {
  test('starts a run in a new session with one write, also when disabled, and leaves the schedule alone', async () => {
    const before = harness.seedSchedule('acme-box', 'greeter', 'daily', { spec: { enabled: false } });
    harness.api.clearRecords();
    const { payload } = await harness.call('run_schedule_now', { agentId: AGENT, slug: 'daily' });
    expect(payload).toEqual({
      runId: expect.stringMatching(/^greeter-[0-9a-z]{26}$/),
      sessionId: `s-${String(payload['runId'])}`,
    });
    expect(harness.requests()).toEqual(['create agentruns']);
    expect(harness.api.peek(AgentRuns, `bw-acme-box/${String(payload['runId'])}`)?.spec).toMatchObject({
      message: 'write the news',
      trigger: { origin: 'schedule', name: 'daily', uid: before.metadata.uid },
      sessionTitle: 'schedule: daily',
      actor: KEY.slice(0, 11),
    });
    expect(harness.api.peek(AgentSchedules, 'bw-acme-box/greeter.daily')).toEqual(before);
    expect(harness.barriers).toEqual([{ kind: 'AgentRun', resourceVersion: expect.stringMatching(/^\d+$/) }]);
    const runs = await harness.call('list_runs', { agentId: AGENT });
    expect(runs.payload['runs']).toMatchObject([{ runId: payload['runId'], trigger: 'schedule:daily' }]);
  });

  test('each call is a run of its own', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'daily');
    const first = await harness.call('run_schedule_now', { agentId: AGENT, slug: 'daily' });
    const second = await harness.call('run_schedule_now', { agentId: AGENT, slug: 'daily' });
    expect(first.payload['runId']).not.toBe(second.payload['runId']);
  });

  test('runs a schedule under GitOps too: it changes nothing of it', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'daily', {
      metadata: { annotations: { 'boxwright.dev/managed-by': 'gitops' } },
    });
    expect((await harness.call('run_schedule_now', { agentId: AGENT, slug: 'daily' })).isError).toBe(false);
  });

  test('is refused while the agent holds no slot', async () => {
    harness.seedAgent('acme-box', 'greeter', { status: { active: false, inactiveReason: 'all 1 slots are taken' } });
    harness.seedSchedule('acme-box', 'greeter', 'daily');
    const { payload } = await harness.call('run_schedule_now', { agentId: AGENT, slug: 'daily' });
    expect(payload).toEqual({ error: 'plan limit reached: the agent is inactive: all 1 slots are taken' });
    expect(harness.api.writes).toEqual([]);
  });

  test.each([
    [{ slug: 'nope' }, 'schedule not found: this agent has no schedule with this slug; it has none'],
    [{}, 'missing required argument: slug (string)'],
    [{ slug: 7 }, 'argument "slug" must be a string, got a number'],
  ])('with %j says what is wrong', async (args, error) => {
    const { isError, payload } = await harness.call('run_schedule_now', { agentId: AGENT, ...args });
    expect([isError, payload]).toEqual([true, { error }]);
    expect(harness.api.writes).toEqual([]);
  });
});

describe('delete_schedule', () => {
  const args = { agentId: AGENT, slug: 'daily' };

  test('needs confirm, and then deletes exactly the object that was seen', async () => {
    const { metadata } = harness.seedSchedule('acme-box', 'greeter', 'daily');
    harness.api.clearRecords();
    for (const confirm of [undefined, false, null, 'true', 1]) {
      const { isError, payload } = await harness.call('delete_schedule', { ...args, confirm });
      expect(isError).toBe(true);
      expect(payload['error']).toBe(
        'delete_schedule cannot be undone. Ask the account owner; once they have agreed, call again with confirm: true.',
      );
    }
    expect(harness.requests()).toEqual([]);
    const { payload } = await harness.call('delete_schedule', { ...args, confirm: true });
    expect(payload).toEqual({ deleted: 'daily' });
    expect(harness.api.writes).toMatchObject([{ verb: 'delete', body: { uid: metadata.uid } }]);
    expect(harness.barriers).toEqual([
      { kind: 'AgentSchedule', gone: { key: 'bw-acme-box/greeter.daily', uid: metadata.uid } },
    ]);
    expect((await harness.call('list_schedules', { agentId: AGENT })).payload).toEqual({ schedules: [] });
  });

  test('of one that was deleted by somebody else meanwhile is a success', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'daily');
    harness.api.failNext({ verb: 'delete', error: apiError(404, 'NotFound') });
    expect((await harness.call('delete_schedule', { ...args, confirm: true })).payload).toEqual({ deleted: 'daily' });
  });

  test('of one that was made again meanwhile is refused', async () => {
    harness.seedSchedule('acme-box', 'greeter', 'daily');
    harness.api.failNext({ verb: 'delete', error: apiError(409, 'Conflict') });
    expect((await harness.call('delete_schedule', { ...args, confirm: true })).payload).toEqual({
      error: 'it was deleted and made again meanwhile: look at it and try again',
    });
  });
});

test.each([
  ['upsert_schedule', { slug: 'daily', enabled: false }],
  ['delete_schedule', { slug: 'daily', confirm: true }],
])('%s is refused for a schedule under GitOps', async (tool, args) => {
  for (const metadata of [
    { annotations: { 'boxwright.dev/managed-by': 'gitops' } },
    { annotations: { 'argocd.argoproj.io/tracking-id': 'x' } },
    { labels: { 'kustomize.toolkit.fluxcd.io/name': 'x' } },
  ]) {
    harness.seedSchedule('acme-box', 'greeter', 'daily', { metadata });
    harness.api.clearRecords();
    const { payload } = await harness.call(tool, { agentId: AGENT, ...args });
    expect(payload).toEqual({ error: 'managed by GitOps: change it in its source' });
    expect(harness.api.writes).toEqual([]);
  }
});
