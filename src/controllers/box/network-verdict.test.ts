import type { Box, NetworkProbe } from '../../api/v1alpha1/box.js';
import { BoxSpec } from '../../api/v1alpha1/box.js';
import type { Pod } from '../../kube/core-types.js';
import {
  conditionOf,
  keepsEarlierVerdict,
  networkNotReady,
  planProbe,
  probing,
  requiresEnforcement,
  verdictOf,
} from './network-verdict.js';
import type { ProbeState, Verdict } from './network-verdict.js';
import type { ProbeJob } from '../../projections/job.js';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const MINUTE = 60_000;
const DAY = 86_400_000;

const job = (changes: Partial<ProbeJob> = {}): ProbeJob => ({
  uid: 'uid-job',
  namespace: 'bw-dev',
  owner: 'uid-box-dev',
  digest: 'now',
  createdAt: NOW - MINUTE,
  deleting: false,
  ended: false,
  ...changes,
});
const probed = (result: NetworkProbe['result'], agoMs: number, changes: Partial<NetworkProbe> = {}): NetworkProbe => ({
  digest: 'now',
  jobUid: 'uid-job',
  probedAt: new Date(NOW - agoMs).toISOString(),
  result,
  ...changes,
});
const plan = (state: Partial<ProbeState>) =>
  planProbe({ now: NOW, digest: 'now', isRequired: true, latest: undefined, job: undefined, ...state });

describe('the next thing to do about the probe', () => {
  test.each<[string, Partial<ProbeState>, ReturnType<typeof plan>]>([
    ['a new Box: a Job is made', {}, { do: 'create' }],
    ['the Job works: wait, but not for ever', { job: job() }, { do: 'wait', ms: 4 * MINUTE }],
    ['it has ended: its report is read', { job: job({ ended: true }) }, { do: 'read', job: job({ ended: true }) }],
    [
      'it never ends: it counts as failed after five minutes',
      { job: job({ createdAt: NOW - 5 * MINUTE }) },
      { do: 'read', job: job({ createdAt: NOW - 5 * MINUTE }) },
    ],
    ['it goes away: wait until it is gone', { job: job({ deleting: true }) }, { do: 'wait', ms: 5 * MINUTE }],
    [
      'it probes policies that are no longer there: it goes, read or not',
      { job: job({ digest: 'before' }), latest: probed('Enforced', MINUTE) },
      { do: 'delete', job: job({ digest: 'before' }) },
    ],
    [
      'its report was read: the Job has done its work and goes',
      { job: job({ ended: true }), latest: probed('NetworkNotEnforced', 0) },
      { do: 'delete', job: job({ ended: true }) },
    ],
    [
      'it gave no report: the Job stays for whoever asks why',
      { job: job({ ended: true }), latest: probed('ProbeFailed', MINUTE) },
      { do: 'wait', ms: 4 * MINUTE },
    ],
    [
      'and makes room when it is time to try again',
      { job: job({ ended: true }), latest: probed('ProbeFailed', 5 * MINUTE) },
      { do: 'delete', job: job({ ended: true }) },
    ],
    ['a good verdict stands for a day', { latest: probed('Enforced', MINUTE) }, { do: 'wait', ms: DAY - MINUTE }],
    ['the day is over', { latest: probed('Enforced', DAY) }, { do: 'create' }],
    ['policies or targets changed', { latest: probed('Enforced', MINUTE, { digest: 'before' }) }, { do: 'create' }],
    [
      'a verdict that keeps runs waiting is looked at again after five minutes',
      { latest: probed('NetworkNotEnforced', MINUTE) },
      { do: 'wait', ms: 4 * MINUTE },
    ],
    [
      'the same one where runs do not wait for it stands for a day',
      { latest: probed('NetworkNotEnforced', MINUTE), isRequired: false },
      { do: 'wait', ms: DAY - MINUTE },
    ],
    [
      'the gateway was not reached: again after five minutes, required or not',
      { latest: probed('GatewayUnreachable', 5 * MINUTE), isRequired: false },
      { do: 'create' },
    ],
    ['the probe failed: again after five minutes', { latest: probed('ProbeFailed', 5 * MINUTE) }, { do: 'create' }],
  ])('%s', (_name, state, expected) => {
    expect(plan(state)).toEqual(expected);
  });
});

function pod(message: string | undefined, exitCode = 0): Pod {
  const terminated = { exitCode, ...(message === undefined ? {} : { message }) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: {},
    status: { containerStatuses: [{ name: 'network-probe', state: { terminated } }] },
  };
}

const report = (...reachable: string[]) =>
  pod(
    JSON.stringify({
      targets: ['gateway', 'api', 'kubernetes'].map((name) => ({ name, reachable: reachable.includes(name) })),
    }),
  );

const TO_DO =
  'Install a CNI plugin that enforces NetworkPolicy, and list public ranges of the cluster in clusterCidrs of the chart; or set spec.egress.requireEnforcement: false, which lets the code of agents reach whatever the network lets pass.';
const NO_END =
  'the pod of the probe did not end within 180 s (kubectl -n bw-dev describe job boxwright-network-probe); it is tried again';

describe('the condition NetworkEnforced', () => {
  test.each<[string, Pod | undefined, ReturnType<typeof conditionOf>]>([
    [
      'is True when only the gateway was reached',
      report('gateway'),
      {
        type: 'NetworkEnforced',
        status: 'True',
        reason: 'Enforced',
        message:
          'a pod of this Box reached the gateway, and neither the API pods of Boxwright nor the Kubernetes API server.',
      },
    ],
    [
      'is False when nothing is filtered, and says what to do',
      report('gateway', 'api', 'kubernetes'),
      {
        type: 'NetworkEnforced',
        status: 'False',
        reason: 'NetworkNotEnforced',
        message: `a pod of this Box reached the API pods of Boxwright and the Kubernetes API server, although the network policies forbid it. ${TO_DO}`,
      },
    ],
    [
      'is False when the API pods alone were reached',
      report('gateway', 'api'),
      {
        type: 'NetworkEnforced',
        status: 'False',
        reason: 'NetworkNotEnforced',
        message: `a pod of this Box reached the API pods of Boxwright, although the network policies forbid it. ${TO_DO}`,
      },
    ],
    [
      'is False when the API server alone was reached, which may be on the same node; it names an unreachable gateway as well',
      report('kubernetes'),
      {
        type: 'NetworkEnforced',
        status: 'False',
        reason: 'NetworkNotEnforced',
        message: `a pod of this Box reached the Kubernetes API server, although the network policies forbid it; some networks do not filter what goes to the own node of a pod. ${TO_DO} The gateway could not be reached either: runs would end with ClaimTimeout.`,
      },
    ],
    [
      'is Unknown when nothing at all was reached: a dead network proves nothing',
      report(),
      {
        type: 'NetworkEnforced',
        status: 'Unknown',
        reason: 'GatewayUnreachable',
        message:
          'a pod of this Box could not reach the gateway: runs would end with ClaimTimeout. Check the gateway pods and whether the CNI plugin supports the policies of the Box; the probe is repeated every 5 minutes. Nothing that is forbidden was reachable.',
      },
    ],
    [
      'is Unknown when there is no pod',
      undefined,
      { type: 'NetworkEnforced', status: 'Unknown', reason: 'ProbeFailed', message: NO_END },
    ],
    [
      'is Unknown when the pod has not ended',
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {}, status: { phase: 'Pending' } },
      { type: 'NetworkEnforced', status: 'Unknown', reason: 'ProbeFailed', message: NO_END },
    ],
    [
      'is Unknown after a crash, and shows its last words',
      pod('Error: out of sockets\n', 1),
      {
        type: 'NetworkEnforced',
        status: 'Unknown',
        reason: 'ProbeFailed',
        message:
          'the probe ended with exit code 1 and without a report (kubectl -n bw-dev describe job boxwright-network-probe); it is tried again: Error: out of sockets',
      },
    ],
    [
      'is Unknown after a report of another form',
      pod('{"targets":[]}'),
      {
        type: 'NetworkEnforced',
        status: 'Unknown',
        reason: 'ProbeFailed',
        message:
          'the probe ended with exit code 0 and without a report (kubectl -n bw-dev describe job boxwright-network-probe); it is tried again: {"targets":[]}',
      },
    ],
    [
      'is Unknown after a kill without a word',
      pod(undefined, 137),
      {
        type: 'NetworkEnforced',
        status: 'Unknown',
        reason: 'ProbeFailed',
        message:
          'the probe ended with exit code 137 and without a report (kubectl -n bw-dev describe job boxwright-network-probe); it is tried again',
      },
    ],
  ])('%s', (_name, ended, expected) => {
    expect(conditionOf(verdictOf(ended, 'bw-dev'))).toEqual(expected);
  });
});

function box(egress: object, condition?: ReturnType<typeof conditionOf>, latest?: NetworkProbe): Box {
  return {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'Box',
    metadata: { name: 'dev' },
    spec: BoxSpec.parse({ workspace: 'acme', egress }),
    status: {
      ...(condition === undefined
        ? {}
        : { conditions: [{ ...condition, lastTransitionTime: '2026-03-01T00:00:00Z' }] }),
      ...(latest === undefined ? {} : { networkProbe: latest }),
    },
  };
}

const verdict = (result: Verdict['result']): Verdict => ({ result, message: `said ${result}` });

describe('whether runs wait for the network', () => {
  test.each<[string, Box, ReturnType<typeof networkNotReady>]>([
    ['a Box that says nothing needs a verdict', box({}), { reason: 'NetworkProbing', message: '' }],
    [
      'while the probe works the message is its own',
      box({}, probing('a pod tries')),
      { reason: 'NetworkProbing', message: 'a pod tries' },
    ],
    ['a good verdict lets them start', box({}, conditionOf(verdict('Enforced'))), undefined],
    [
      'a bad one keeps them, with its words',
      box({}, conditionOf(verdict('NetworkNotEnforced'))),
      { reason: 'NetworkNotEnforced', message: 'said NetworkNotEnforced' },
    ],
    [
      'an unreachable gateway keeps them as well: they would only time out',
      box({}, conditionOf(verdict('GatewayUnreachable'))),
      { reason: 'GatewayUnreachable', message: 'said GatewayUnreachable' },
    ],
    [
      'a Box that does not require it is ready whatever the verdict',
      box({ requireEnforcement: false }, conditionOf(verdict('NetworkNotEnforced'))),
      undefined,
    ],
  ])('%s', (_name, subject, expected) => {
    expect(networkNotReady(subject)).toEqual(expected);
  });
});

describe('an earlier verdict', () => {
  test.each<[string, Verdict['result'], NetworkProbe | undefined, Verdict['result'] | undefined, boolean]>([
    ['stands when the next probe of the same policies fails', 'ProbeFailed', probed('Enforced', DAY), 'Enforced', true],
    ['stands also when it was a bad one', 'ProbeFailed', probed('Enforced', DAY), 'NetworkNotEnforced', true],
    ['falls with the next word of a probe', 'NetworkNotEnforced', probed('Enforced', DAY), 'Enforced', false],
    [
      'falls when it was about other policies',
      'ProbeFailed',
      probed('Enforced', DAY, { digest: 'before' }),
      'Enforced',
      false,
    ],
    ['does not stand when it was none', 'ProbeFailed', probed('ProbeFailed', DAY), 'GatewayUnreachable', false],
    ['does not stand when there is none', 'ProbeFailed', undefined, undefined, false],
  ])('%s', (_name, next, latest, earlier, expected) => {
    const condition = earlier === undefined ? undefined : conditionOf(verdict(earlier));
    expect(keepsEarlierVerdict(box({}, condition, latest), 'now', verdict(next))).toBe(expected);
  });
});

test.each([
  ['true', { requireEnforcement: true }, true],
  ['false', { requireEnforcement: false }, false],
  ['absent in an object that is older than the field', {}, true],
])('spec.egress.requireEnforcement: %s', (_name, egress, expected) => {
  expect(requiresEnforcement({ spec: { egress } })).toBe(expected);
});
