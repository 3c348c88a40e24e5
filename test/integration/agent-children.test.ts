/** Skills and schedules through the use-cases of the tools, on a real API server with the real write barrier. */
import { randomBytes } from 'node:crypto';
import { API_VERSION } from '../../src/api/define-resource.js';
import { AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../src/api/v1alpha1/agent-skill.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { createInformer } from '../../src/kube/informer.js';
import type { Informer } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { ChildDeps } from '../../src/services/agents/agent-children.js';
import { createApiCaches } from '../../src/services/caches.js';
import type { Caller } from '../../src/services/keys/key-check.js';
import { deleteSchedule, listSchedules, upsertSchedule } from '../../src/services/schedules/schedules.js';
import { deleteSkill, getSkill, listSkills, readSkillFile, upsertSkill } from '../../src/services/skills/skills.js';
import { createBarrierSeal } from '../../src/services/barrier-seal.js';
import { createWriteBarrier } from '../../src/services/write-barrier.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

const KIB = 1024;
const CALLER: Caller = { workspace: 'acme', keyPrefix: 'bw_test', readOnly: false };

let server: TestApiServer;
let namespace: string;
let agent: string;
let deps: ChildDeps;
let informers: Informer<unknown>[];

beforeAll(async () => {
  server = await startApiServer();
  await server.applyCrds();
  namespace = await server.createNamespace('bw-kids');
  const box = namespace.slice(3);
  agent = `${box}.greeter`;
  await server.api.create(Boxes, {
    apiVersion: API_VERSION,
    kind: 'Box',
    metadata: { name: box },
    spec: BoxSpec.parse({ workspace: 'acme' }),
  });
  await server.api.create(Agents, {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata: { name: 'greeter', namespace },
    spec: AgentSpec.parse({ name: 'Greeter' }),
  });
  const log = createLogger('test', 'silent', { write: () => undefined });
  const caches = createApiCaches((options) => createInformer(server.transport, options, { clock: systemClock, log }));
  const byKind = new Map<string, Informer<unknown>>(Object.entries(caches));
  informers = [...byKind.values()];
  for (const informer of informers) informer.start();
  await Promise.all(informers.map((informer) => informer.synced));
  const barrier = createWriteBarrier({
    informers: byKind,
    peers: () => [],
    seal: createBarrierSeal({ keyring: undefined, ensure: () => Promise.resolve() }),
    post: () => Promise.reject(new Error('there are no peers')),
    clock: systemClock,
  });
  deps = {
    caches,
    api: server.api,
    clock: systemClock,
    barrier,
    fileLinks: { of: () => [] },
    randomHex: (bytes) => randomBytes(bytes).toString('hex'),
  };
});

afterAll(async () => {
  await Promise.all(informers.map((informer) => informer.stop()));
  await server.stop();
});

/** A file of a skill, page by page as the tool gives it. */
async function readAll(slug: string, path: string): Promise<Buffer> {
  const parts: string[] = [];
  let encoding: BufferEncoding = 'utf8';
  for (let offset: number | null = 0; offset !== null;) {
    const page: Awaited<ReturnType<typeof readSkillFile>> = await readSkillFile(deps, CALLER, agent, {
      slug,
      path,
      offset,
    });
    parts.push(page.content);
    encoding = page.encoding;
    offset = page.nextOffset;
  }
  return Buffer.from(parts.join(''), encoding);
}

test('a skill of exactly 1 MiB that cannot be compressed is stored and read back', async () => {
  const body = 'b'.repeat(KIB);
  const contents = [256, 256, 256, 255].map((kib) => randomBytes(kib * KIB));
  const files = contents.map((content, n) => ({
    path: `data/${n}.bin`,
    content: content.toString('base64'),
    encoding: 'base64' as const,
  }));
  await upsertSkill(deps, CALLER, agent, { name: 'Large', description: 'A large one.', body, files });
  for (const [n, content] of contents.entries())
    expect((await readAll('large', `data/${n}.bin`)).equals(content)).toBe(true);
  expect((await getSkill(deps, CALLER, agent, 'large')).body).toBe(body);
  const { skills } = await listSkills(deps, CALLER, agent);
  expect(skills[0]?.files.map(({ bytes }) => bytes)).toEqual(contents.map(({ length }) => length));
  await expect(
    upsertSkill(deps, CALLER, agent, { slug: 'large', files: [{ path: 'one', content: 'x', encoding: 'utf8' }] }),
  ).rejects.toThrow('the skill would have 1048577 bytes');
});

test('of writers at the same time none loses a file', async () => {
  await upsertSkill(deps, CALLER, agent, { name: 'Shared', description: 'Of many.', body: 'Together.' });
  const paths = ['a', 'b', 'c', 'd'];
  await Promise.all(
    paths.map((path) =>
      upsertSkill(deps, CALLER, agent, { slug: 'shared', files: [{ path, content: path, encoding: 'utf8' }] }),
    ),
  );
  expect((await getSkill(deps, CALLER, agent, 'shared')).files.map(({ path }) => path)).toEqual(paths);
});

test('an answer comes when the caches have the write, of deletions too', async () => {
  const skill = await upsertSkill(deps, CALLER, agent, { name: 'Seen', description: 'At once.', body: 'Now.' });
  const slugs = async () => (await listSkills(deps, CALLER, agent)).skills.map(({ slug }) => slug);
  expect(await slugs()).toContain(skill.slug);
  await deleteSkill(deps, CALLER, agent, 'seen');
  expect(await slugs()).not.toContain('seen');
  await expect(server.api.get(AgentSkills, { namespace, name: 'greeter.seen' })).rejects.toThrow('not found');
});

test('a new API pod reads more skills than one page', async () => {
  const names = Array.from({ length: 25 }, (_, n) => `page ${n}`);
  for (const name of names) await upsertSkill(deps, CALLER, agent, { name, description: 'One of many.', body: name });
  const log = createLogger('test', 'silent', { write: () => undefined });
  const skills = createApiCaches((options) =>
    createInformer(server.transport, options, { clock: systemClock, log }),
  ).AgentSkill;
  skills.start();
  await skills.synced;
  const own = [...skills.values()].filter((skill) => skill.namespace === namespace);
  expect(own.map(({ displayName }) => displayName)).toEqual(expect.arrayContaining(names));
  await skills.stop();
});

test('a schedule changes between cron and date under the rules of its CRD', async () => {
  const make = { name: 'Turns', body: 'Go.', cron: '0 9 * * *', timezone: 'Europe/Berlin' };
  await upsertSchedule(deps, CALLER, agent, make);
  const once = await upsertSchedule(deps, CALLER, agent, { slug: 'turns', runAt: '2099-01-01T09:00' });
  expect(once).toMatchObject({ cron: null, runAt: '2099-01-01T08:00:00.000Z', nextRunAt: '2099-01-01T08:00:00.000Z' });
  const again = await upsertSchedule(deps, CALLER, agent, { slug: 'turns', cron: '0 10 * * *' });
  expect(again).toMatchObject({ cron: '0 10 * * *', runAt: null });
  const stored = await server.api.get(AgentSchedules, { namespace, name: 'greeter.turns' });
  expect(stored.spec).toMatchObject({ cron: '0 10 * * *', timezone: 'Europe/Berlin', enabled: true });
  expect(stored.spec).not.toHaveProperty('runAt');
  await deleteSchedule(deps, CALLER, agent, 'turns');
  expect(await listSchedules(deps, CALLER, agent)).toEqual({ schedules: [] });
});
