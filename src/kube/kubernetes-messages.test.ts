/**
 * The texts are copied from the sources of Kubernetes 1.31.14, 1.32.10, 1.33.6 and 1.34.3, with names filled in: the modules
 * k8s.io/apiserver (pkg/admission, pkg/endpoints/handlers/responsewriters), k8s.io/apimachinery (pkg/api/errors) and
 * k8s.io/kubernetes (pkg/scheduler/framework/plugins), at the place that is named with each. For a new version compare them.
 */
import {
  saysDeniedByAdmission,
  saysInternalError,
  saysNoRoom,
  saysNotReadyOrNoRight,
  saysQuotaExceeded,
  saysQuotaNotCounted,
  saysVolumeInTheWay,
} from './kubernetes-messages.js';

const OF_ANSWERS = {
  saysDeniedByAdmission,
  saysInternalError,
  saysNotReadyOrNoRight,
  saysQuotaExceeded,
  saysQuotaNotCounted,
};
const OF_THE_SCHEDULER = { saysNoRoom, saysVolumeInTheWay };

type Question = keyof typeof OF_ANSWERS | keyof typeof OF_THE_SCHEDULER;

const ALL = ['1.31', '1.32', '1.33', '1.34'];

interface Sample {
  /** File of the sources. */
  at: string;
  versions: readonly string[];
  text: string;
  /** The one question that it answers with yes. */
  says: Question | undefined;
}

const SAMPLES: readonly Sample[] = [
  {
    at: 'webhook/errors/statuserror.go',
    versions: ALL,
    text: 'admission webhook "policy.example.com" denied the request: no image of this registry',
    says: 'saysDeniedByAdmission',
  },
  {
    at: 'webhook/errors/statuserror.go',
    versions: ALL,
    text: 'admission webhook "policy.example.com" denied the request without explanation',
    says: 'saysDeniedByAdmission',
  },
  {
    at: 'policy/validating/dispatcher.go',
    versions: ALL,
    text: "jobs.batch \"ada-1\" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'all' denied request: too large",
    says: 'saysDeniedByAdmission',
  },
  {
    at: 'policy/validating/dispatcher.go',
    versions: ALL,
    text: 'jobs.batch "ada-1" is forbidden: ValidatingAdmissionPolicy \'limits\' denied request: too large',
    says: 'saysDeniedByAdmission',
  },
  {
    at: 'policy/generic/policy_dispatcher.go',
    versions: ['1.32', '1.33', '1.34'],
    text: "policy 'defaults' with binding 'all' denied request: failed to evaluate",
    says: 'saysDeniedByAdmission',
  },
  {
    at: 'plugin/resourcequota/controller.go',
    versions: ALL,
    text: 'jobs.batch "ada-1" is forbidden: exceeded quota: boxwright-quota, requested: count/jobs.batch=1, used: count/jobs.batch=50, limited: count/jobs.batch=50',
    says: 'saysQuotaExceeded',
  },
  {
    at: 'plugin/resourcequota/controller.go, as an event of the Job controller',
    versions: ALL,
    text: 'Error creating: pods "ada-1-x7k2p" is forbidden: exceeded quota: boxwright-quota, requested: pods=1, used: pods=50, limited: pods=50',
    says: 'saysQuotaExceeded',
  },
  {
    at: 'plugin/resourcequota/controller.go',
    versions: ALL,
    text: 'persistentvolumeclaims "ada-workspace" is forbidden: status unknown for quota: boxwright-quota, resources: persistentvolumeclaims',
    says: 'saysQuotaNotCounted',
  },
  {
    at: 'responsewriters/errors.go',
    versions: ALL,
    text: 'jobs.batch is forbidden: User "system:serviceaccount:boxwright-system:boxwright-controller" cannot create resource "jobs" in API group "batch" in the namespace "bw-dev"',
    says: 'saysNotReadyOrNoRight',
  },
  {
    at: 'plugin/namespace/lifecycle/admission.go',
    versions: ALL,
    text: 'jobs.batch "ada-1" is forbidden: not yet ready to handle request',
    says: 'saysNotReadyOrNoRight',
  },
  {
    at: 'api/errors/errors.go around webhook/errors.go',
    versions: ALL,
    text: 'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post "https://policy.example.svc:443/?timeout=10s": context deadline exceeded',
    says: 'saysInternalError',
  },
  {
    at: 'volumebinding/binder.go',
    versions: ['1.31', '1.32'],
    text: '0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had volume node affinity conflict.',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/binder.go',
    versions: ['1.33', '1.34'],
    text: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match PersistentVolume's node affinity.",
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/binder.go',
    versions: ALL,
    text: "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.",
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/volume_binding.go',
    versions: ALL,
    text: '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/volume_binding.go',
    versions: ALL,
    text: '0/3 nodes are available: persistentvolumeclaim "ada-workspace" is being deleted.',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/volume_binding.go',
    versions: ALL,
    text: '0/3 nodes are available: persistentvolumeclaim "ada-workspace" bound to non-existent persistentvolume "pv-1".',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/binder.go',
    versions: ALL,
    text: '0/3 nodes are available: 1 Insufficient cpu, 2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumebinding/binder.go',
    versions: ALL,
    text: '0/3 nodes are available: 3 node(s) did not have enough free storage.',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'volumezone/volume_zone.go',
    versions: ALL,
    text: '0/3 nodes are available: 1 Insufficient memory, 2 node(s) had no available volume zone.',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'nodevolumelimits/csi.go',
    versions: ALL,
    text: '0/3 nodes are available: 3 node(s) exceed max volume count.',
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'interpodaffinity/filtering.go',
    versions: ALL,
    text: "0/3 nodes are available: 1 Insufficient memory, 2 node(s) didn't match pod affinity rules.",
    says: 'saysVolumeInTheWay',
  },
  {
    at: 'noderesources/fit.go',
    versions: ALL,
    text: '0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.',
    says: 'saysNoRoom',
  },
  {
    at: 'noderesources/fit.go',
    versions: ALL,
    text: '0/3 nodes are available: 1 Insufficient memory, 2 Too many pods, 1 node(s) were unschedulable.',
    says: 'saysNoRoom',
  },
  {
    at: 'noderesources/fit.go',
    versions: ALL,
    text: '0/3 nodes are available: 3 Insufficient nvidia.com/gpu.',
    says: undefined,
  },
  {
    at: 'noderesources/fit.go and nodeaffinity/node_affinity.go',
    versions: ALL,
    text: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.",
    says: undefined,
  },
  {
    at: 'nodeaffinity/node_affinity.go',
    versions: ALL,
    text: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
    says: undefined,
  },
  {
    at: 'interpodaffinity/filtering.go',
    versions: ALL,
    text: "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
    says: undefined,
  },
  {
    at: 'plugin/namespace/lifecycle/admission.go',
    versions: ALL,
    text: 'jobs.batch "ada-1" is forbidden: unable to create new content in namespace bw-dev because it is being terminated',
    says: undefined,
  },
];

const ROWS = SAMPLES.flatMap(({ versions, ...sample }) => versions.map((version) => ({ version, ...sample })));

test.each(ROWS)('$version $at: $text', ({ text, says }) => {
  const asked = text.startsWith('0/3 nodes') ? OF_THE_SCHEDULER : OF_ANSWERS;
  const yes = Object.entries(asked).flatMap(([name, question]) => (question(text) ? [name] : []));
  expect(yes).toEqual(says === undefined ? [] : [says]);
});

test.each(ALL)('%s has a sample for every question', (version) => {
  const asked = ROWS.filter((row) => row.version === version).map(({ says }) => says);
  expect(asked).toEqual(expect.arrayContaining(Object.keys({ ...OF_ANSWERS, ...OF_THE_SCHEDULER })));
});
