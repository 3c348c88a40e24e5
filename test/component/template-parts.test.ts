/** What a crash between the writes of a template leaves behind, and how the controller sweeps it. */
import { AgentTemplateParts, AgentTemplates } from '../../src/api/v1alpha1/agent-template.js';
import { createTemplatePartsController } from '../../src/controllers/template-parts/controller.js';
import { KubeConnectionError } from '../../src/kube/errors.js';
import { createLogger } from '../../src/observability/logger.js';
import { McpHarness } from '../builders/mcp-harness.js';
import { apiError } from '../builders/recording-api.js';

const HOUR_MS = 3_600_000;
const TEMPLATE = { namespace: 'bw-ws-acme', name: 'team' };
const lostAnswer = () => new KubeConnectionError('the connection was cut', 'network');

let harness: McpHarness;
beforeEach(async () => {
  harness = new McpHarness();
  harness.controllerSays({ active: true });
  harness.seedAgent('acme-box', 'cleo');
  await call('create_template', { name: 'Team', description: 'Two.', agentIds: ['acme-box.greeter', 'acme-box.cleo'] });
});

const call = async (tool: string, args: object) => (await harness.call(tool, args)).payload;
const parts = () => harness.api.all(AgentTemplateParts).map(({ metadata }) => metadata.name);
const draft = () => harness.api.peek(AgentTemplates, 'bw-ws-acme/team')?.spec.draft.content;
const removeAgent = async () => {
  const { agents } = (await call('get_template', { templateId: 'acme.team' })) as {
    agents: { templateAgentId: string }[];
  };
  return call('remove_template_agent', {
    templateId: 'acme.team',
    templateAgentId: agents[0]?.templateAgentId,
    confirm: true,
  });
};

async function sweep(): Promise<unknown> {
  harness.api.clearRecords();
  const { api, clock } = harness;
  const log = createLogger('controller', 'silent', { write: () => undefined });
  return createTemplatePartsController({ api, clock, log }).reconcile('installation', new AbortController().signal);
}

test('parts of a patch that never arrived go after an hour, and not before', async () => {
  const kept = parts();
  harness.api.failNext({ verb: 'patch', resource: 'agenttemplates', error: lostAnswer(), times: 9 });
  await removeAgent();
  expect(parts()).toHaveLength(2);
  await harness.clock.advance(HOUR_MS - 1000);
  expect(await sweep()).toEqual({ requeueAfterMs: HOUR_MS });
  expect(harness.requests()).toEqual(['list agenttemplateparts']);
  await harness.clock.advance(1000);
  const orphan = harness.api.all(AgentTemplateParts).find(({ metadata }) => !kept.includes(metadata.name));
  expect(await sweep()).toEqual({ requeueAfterMs: HOUR_MS });
  expect(harness.api.writes).toEqual([
    {
      verb: 'delete',
      resource: 'agenttemplateparts',
      key: `bw-ws-acme/${orphan?.metadata.name}`,
      body: { uid: orphan?.metadata.uid, propagationPolicy: 'Background' },
    },
  ]);
  expect(parts()).toEqual(kept);
});

test('parts that a patch left behind whose answer got lost go as well; the new content stays', async () => {
  const [before] = parts();
  harness.api.failNext({ verb: 'patch', resource: 'agenttemplates', error: lostAnswer(), afterWrite: true });
  await removeAgent();
  expect(parts()).toEqual([before, `team.${draft()}.0`]);
  await harness.clock.advance(HOUR_MS);
  await sweep();
  expect(parts()).toEqual([`team.${draft()}.0`]);
  expect(await call('get_template', { templateId: 'acme.team' })).toMatchObject({ agents: [{}] });
});

test.each([
  [500, 'InternalError'],
  [503, 'ServiceUnavailable'],
  [504, 'Timeout'],
])('an answer of %d may stand for a patch that was stored: its content is kept', async (status, reason) => {
  const error = apiError(status, reason);
  harness.api.failNext({ verb: 'patch', resource: 'agenttemplates', error, afterWrite: true });
  await removeAgent();
  expect(await call('get_template', { templateId: 'acme.team' })).toMatchObject({ agents: [{}] });
});

test('a replaced content stays until every API pod has seen the new one: others may still read it', async () => {
  const [before] = parts();
  let during: string[] = [];
  harness.services.templates.barrier.passed = () => {
    during = parts();
    return Promise.resolve(true);
  };
  await removeAgent();
  expect(during).toEqual([before, `team.${draft()}.0`]);
  expect(parts()).toEqual([`team.${draft()}.0`]);
});

test('nothing is left of a content whose patch was refused', async () => {
  const kept = parts();
  harness.api.failNext({ verb: 'patch', resource: 'agenttemplates', error: apiError(403, 'Forbidden') });
  await removeAgent();
  expect(parts()).toEqual(kept);
});

test('published versions keep their parts, and nothing is written when there is nothing to remove', async () => {
  await call('publish_template', { templateId: 'acme.team' });
  await removeAgent();
  expect(parts()).toHaveLength(2);
  await harness.clock.advance(HOUR_MS);
  expect(await sweep()).toEqual({ requeueAfterMs: HOUR_MS });
  expect(harness.requests()).toEqual(['list agenttemplateparts', 'list agenttemplates']);
  expect(parts()).toHaveLength(2);
});

test('parts without their template, and parts of another naming, are left alone', async () => {
  const part = harness.api.all(AgentTemplateParts)[0];
  for (const name of ['gone.x.0', 'team', 'team.x', 'team.x.0.1']) {
    harness.api.seed(AgentTemplateParts, {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentTemplatePart',
      metadata: { namespace: TEMPLATE.namespace, name },
      spec: { template: 'team', content: 'x', part: 0, bytes: 1, data: part?.spec.data ?? '' },
    });
  }
  await harness.clock.advance(HOUR_MS);
  await sweep();
  expect(harness.api.writes).toEqual([]);
});
