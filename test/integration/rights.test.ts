/**
 * The rights that the chart gives each process, compared with the calls in the code that the process loads: none is missing, and
 * none is granted that nothing uses. Calls are read from the sources; caches are asked what they watch.
 */
import { readFileSync } from 'node:fs';
import { build } from 'esbuild';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';
import type { ResourceType } from '../../src/api/meta.js';
import { WORKLOAD_TYPES } from '../../src/controllers/common/workloads.js';
import { createGatewayCaches } from '../../src/gateway/caches.js';
import * as core from '../../src/kube/core-types.js';
import type { InformerFactory } from '../../src/kube/types.js';
import { createControllerCaches } from '../../src/processes/controller-parts.js';
import { apiWebhookKeysInformer } from '../../src/projections/webhook-keys.js';
import { API_PODS, peerPodInformer } from '../../src/projections/pod.js';
import { createApiCaches } from '../../src/services/caches.js';
import { renderChart } from '../builders/chart.js';

const isType = (value: unknown): value is ResourceType =>
  typeof value === 'object' && value !== null && 'plural' in value && 'kind' in value;
const PLURALS: Record<string, string> = { Box: 'Boxes', AgentMemory: 'AgentMemories' };
const EVENTS: ResourceType = {
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
};
/** By the name under which code imports them, as AgentRuns. */
const TYPES = new Map([
  ...Object.entries(core).filter((entry): entry is [string, ResourceType] => isType(entry[1])),
  ...ALL_KINDS.map((kind): [string, ResourceType] => [PLURALS[kind.kind] ?? `${kind.kind}s`, kind]),
]);
const named = (...names: string[]) =>
  names.map((name) => {
    const type = TYPES.get(name);
    if (type === undefined) throw new Error(`no kind ${name}`);
    return type;
  });

const CHILDREN = named('AgentTriggers', 'AgentSchedules', 'AgentRuns', 'AgentSkills', 'AgentMemories');
/** Where code names a kind by a variable: `file variable` -> what it stands for. Empty: its callers are counted. */
const GENERIC: Record<string, readonly ResourceType[]> = {
  'src/services/kube-call.ts source.type': named(
    'Agents',
    'AgentRuns',
    'AgentTriggers',
    'AgentSchedules',
    'AgentSkills',
  ),
  // Reads within the limits of a call: those of readers that are counted.
  'src/services/kube-call.ts type': [],
  'src/services/agents/agent-children.ts type': [],
  'src/services/templates/installation.ts type': named('Agents', 'AgentTriggers', 'AgentSchedules', 'AgentSkills'),
  'src/kube/cached-reads.ts this.type': named('Secrets', 'ConfigMaps'),
  'src/gateway/auth/run-authenticator.ts type': named('AgentRuns', 'Jobs', 'Pods'),
  'src/kube/status-diff.ts target.type': [],
  'src/kube/leader-only-writes.ts type': [],
  'src/kube/event-writer.ts RegardingEvents': [EVENTS],
  'src/controllers/agent-run/live-uid.ts type': named('Agents', 'Nodes', 'Pods'),
  'src/controllers/common/finalizer.ts type': [],
  'src/controllers/common/status-patch.ts change.type': [],
  'src/controllers/common/delete-objects.ts type': [],
  'src/controllers/agent/controller.ts type': CHILDREN,
  'src/controllers/common/ensure-object.ts type': named(
    'NetworkPolicies',
    'ResourceQuotas',
    'LimitRanges',
    'ServiceAccounts',
    'RoleBindings',
  ),
  'src/controllers/common/workloads.ts type': WORKLOAD_TYPES,
  'src/controllers/box/finalize.ts type': [...CHILDREN, ...named('Agents', 'AgentEvals')],
  'src/controllers/roll-up/roll-up.ts owner.type': named('Agents', 'AgentTriggers', 'Boxes', 'Workspaces'),
  'src/controllers/roll-up/controller.ts type': named('Agents', 'AgentTriggers', 'Boxes', 'Workspaces'),
};

/** Calls in sources that a process loads for something else. */
const NOT_CALLED: Record<string, readonly string[]> = {
  // Transcripts and files are read there, written by the gateway, and removed by the controller.
  api: [
    'create agentrunchunks.boxwright.dev',
    'create agentrunfileparts.boxwright.dev',
    'delete agentrunfileparts.boxwright.dev',
  ],
  gateway: ['delete agentrunfileparts.boxwright.dev'],
  controller: ['create agentrunchunks.boxwright.dev', 'create agentrunfileparts.boxwright.dev'],
};

/** Granted for what is no call. */
const NO_CALL: Record<string, readonly string[]> = {
  api: [],
  // For the pods of an older version while an upgrade rolls out.
  gateway: ['update agentruns/status.boxwright.dev'],
  controller: [
    // Jobs block the deletion of their run; the admission plugin OwnerReferencesPermissionEnforcement asks for this.
    'update agentruns/finalizers.boxwright.dev',
    'bind clusterroles.rbac.authorization.k8s.io',
  ],
};

const VERBS: Record<string, string> = { replace: 'update' };
const right = ({ group, plural }: ResourceType, verb: string, subresource = '') =>
  `${verb} ${plural}${subresource === '' ? '' : `/${subresource}`}${group === '' ? '' : `.${group}`}`;

/** The sources of ours that a process loads. */
async function sourcesOf(process: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [`src/processes/${process}.ts`],
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    metafile: true,
    write: false,
    outdir: 'dist',
  });
  const [output] = Object.values(metafile.outputs);
  return Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) =>
    path.startsWith('src/') && bytesInOutput > 0 ? [path] : [],
  );
}

/** Calls of the Kubernetes client in one source, as `[verb, what stands for the kind, subresource]`. */
function callsIn(text: string): [string, string, string][] {
  const direct = [
    ...text.matchAll(/\b(?:api|options\.api)\.(get|list|create|replace|patch|delete)\(\s*([\w.#]+)\b/g),
  ].map(({ 1: verb = '', 2: kind = '', index }): [string, string, string] => {
    const call = text.slice(index, text.indexOf(';', index));
    return [VERBS[verb] ?? verb, kind, call.includes("subresource: 'status'") ? 'status' : ''];
  });
  const helped = [
    ...[...text.matchAll(/\b(?:ensure|release)Finalizer\([\w.]+, (\w+),/g)].map(([, kind = '']) => ['patch', kind, '']),
    ...[...text.matchAll(/\b(create|delete)Child\(deps, (\w+),/g)].map(([, verb = '', kind = '']) => [verb, kind, '']),
    ...[...text.matchAll(/\bdeleteObjects\([\w.]+, (\w+),/g)].map(([, kind = '']) => ['delete', kind, '']),
    ...[...text.matchAll(/\b(?:patchStatus|sendStatusDiff)\([^{]*\{ type: ([\w.]+),/g)].map(([, kind = '']) => [
      'patch',
      kind,
      'status',
    ]),
  ] as [string, string, string][];
  return [...direct, ...helped];
}

function used(file: string): { rights: string[]; unknown: string[] } {
  const rights: string[] = [];
  const unknown: string[] = [];
  for (const [verb, kind, subresource] of callsIn(readFileSync(file, 'utf8'))) {
    const types = TYPES.has(kind) ? named(kind) : GENERIC[`${file} ${kind}`];
    if (types === undefined) unknown.push(`${verb} ${file} ${kind} ${subresource}`);
    for (const type of types ?? []) rights.push(right(type, verb, subresource));
  }
  return { rights, unknown };
}
/** What a process watches: a full list, and what changes. */
function watched(process: string): ResourceType[] {
  const types: ResourceType[] = [];
  const open = ((of: { type: ResourceType }) => {
    types.push(of.type);
    return {};
  }) as unknown as InformerFactory;
  if (process === 'gateway') createGatewayCaches(open, { releaseNamespace: 'x', gatewaySelector: 'y' });
  else if (process === 'controller') createControllerCaches(open, 'x');
  else {
    createApiCaches(open);
    types.push(peerPodInformer('x', API_PODS).type, apiWebhookKeysInformer.type);
  }
  return types;
}

interface Role {
  kind: string;
  metadata: { name: string };
  rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

/** What the chart and the bindings of the controller grant a process, without names of objects. */
async function granted(process: string): Promise<string[]> {
  const bound = { api: [], gateway: ['boxwright-box-credentials'], controller: ['boxwright-workspace-secrets'] }[
    process
  ];
  const names = new Set([`boxwright-${process}`, ...(bound ?? [])]);
  const roles = (await renderChart<Role>([])).filter(
    ({ kind, metadata }) => ['Role', 'ClusterRole'].includes(kind) && names.has(metadata.name),
  );
  const rules = roles.flatMap((role) => role.rules);
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) => apiGroups.map((group) => `${verb} ${resource}${group === '' ? '' : `.${group}`}`)),
    ),
  );
}

test.each(['api', 'gateway', 'controller'])('%s may do what its code does, and nothing else', async (process) => {
  const found = (await sourcesOf(process)).map(used);
  expect(found.flatMap(({ unknown }) => unknown)).toEqual([]);
  const needed = new Set([
    ...found.flatMap(({ rights }) => rights),
    ...watched(process).flatMap((type) => [right(type, 'list'), right(type, 'watch')]),
    ...(NO_CALL[process] ?? []),
  ]);
  for (const call of NOT_CALLED[process] ?? []) expect(needed.delete(call)).toBe(true);
  const has = new Set(await granted(process));
  expect([...needed].filter((one) => !has.has(one)).toSorted()).toEqual([]);
  expect([...has].filter((one) => !needed.has(one)).toSorted()).toEqual([]);
});
