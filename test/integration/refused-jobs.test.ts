/**
 * Jobs that a real API server does not take: the run says why and waits, and starts by itself when the cause is gone. Two
 * Boxes have an admission policy that refuses, the third a webhook that does not answer.
 */
import { isTrue } from '../../src/api/conditions.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Jobs } from '../../src/kube/core-types.js';
import type { ObjectRef } from '../../src/kube/types.js';
import { eventually } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { findTools } from '../builders/kubectl.js';
import type { CommandResult } from '../builders/kubectl.js';
import { createObject, objectWhen, readObject } from '../builders/objects.js';
import { startSingleController } from '../builders/single-controller.js';
import type { SingleController } from '../builders/single-controller.js';

const RELEASE = 'boxwright-refused-jobs';
const WORKSPACE = 'refused';
/** Each Box has what refuses its Jobs. */
const BOXES = ['policy', 'default-policy', 'webhook'] as const;

/** A policy that names no reason answers 422, which is the code of an object that breaks its schema too. */
const POLICIES = [policyOf('policy', { reason: 'Forbidden' }), policyOf('default-policy', {})].flat();
const WEBHOOK = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'away' },
  webhooks: [
    {
      name: 'away.example.com',
      // Port 1 of loopback: nobody listens there.
      clientConfig: { url: 'https://127.0.0.1:1/' },
      rules: [{ apiGroups: ['batch'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['jobs'] }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'bw-webhook' } },
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
    },
  ],
};

describe('a Job that the API server does not take', () => {
  let server: TestApiServer;
  let controller: SingleController;
  const errors: string[] = [];
  let kubectl: (args: readonly string[], input?: string) => Promise<CommandResult>;

  beforeAll(async () => {
    controller = await startSingleController({ releaseNamespace: RELEASE, errors });
    server = controller.server;
    const tools = await findTools();
    kubectl = (args, input) => tools.kubectl(server.kubeconfig, args, input);
    await create(Workspaces, { name: WORKSPACE }, { slots: BOXES.length });
    for (const name of BOXES) {
      const egress = { requireEnforcement: false };
      await create(Boxes, { name }, { workspace: WORKSPACE, engine: 'scripted', egress });
      await waitFor(Boxes, { name }, (box) => isTrue(box.status?.conditions, 'Ready'));
      const namespace = `bw-${name}`;
      await create(Agents, { name: 'ada', namespace }, { name: 'ada' });
      await waitFor(Agents, { name: 'ada', namespace }, (agent) => agent.status?.active === true);
    }
    const manifests = [...POLICIES, WEBHOOK].map((object) => JSON.stringify(object)).join('\n---\n');
    expect(await kubectl(['apply', '-f', '-'], manifests)).toMatchObject({ ok: true });
    // They are enforced a moment after they were stored.
    for (const name of BOXES) await eventually(async () => !(await takesJobs(name)), `bw-${name} refuses Jobs`);
  }, 1_200_000);

  afterAll(() => controller.stop());

  const create = (type: ResourceType, metadata: KubeObject['metadata'], spec?: object) =>
    createObject(server.api, type, metadata, spec);
  const waitFor = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, check: (object: T) => boolean) =>
    objectWhen(server.api, type, ref, check, errors);

  async function takesJobs(box: string): Promise<boolean> {
    return (await kubectl(['create', 'job', 'probe', '--image=x', '-n', `bw-${box}`, '--dry-run=server'])).ok;
  }

  it.each([
    ['policy', 'JobRefused', 'ask the platform team for a licence'],
    ['default-policy', 'JobRefused', 'ask the platform team for a licence'],
    ['webhook', 'JobNotCreated', 'failed calling webhook "away.example.com"'],
  ])('%s: its run waits as %s with the words of the API server', async (box, reason, words) => {
    const ref = { namespace: `bw-${box}`, name: 'held' };
    await create(AgentRuns, ref, { agent: 'ada', message: 'hello' });
    const run = await waitFor(AgentRuns, ref, ({ status }) => status?.reason === reason);
    expect(run.status?.message).toContain(words);
    expect(run.status?.phase).toBe('running');
    expect(await readObject(server.api, Jobs, ref)).toBeUndefined();
  });

  it('starts the runs when policies and webhook are gone', async () => {
    expect(await kubectl(['delete', 'validatingadmissionpolicybinding', '--all'])).toMatchObject({ ok: true });
    expect(await kubectl(['delete', 'validatingwebhookconfiguration', 'away'])).toMatchObject({ ok: true });
    for (const box of BOXES) {
      await waitFor(Jobs, { namespace: `bw-${box}`, name: 'held' }, () => true);
    }
  });
});

/** It takes no Job in the namespace of the Box. */
function policyOf(box: string, validation: { reason?: string }): object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const metadata = { name: box };
  const resourceRules = [{ apiGroups: ['batch'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['jobs'] }];
  const validations = [{ expression: 'false', message: 'ask the platform team for a licence', ...validation }];
  const matchResources = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': `bw-${box}` } } };
  return [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: { matchConstraints: { resourceRules }, validations },
    },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: box, validationActions: ['Deny'], matchResources },
    },
  ];
}
