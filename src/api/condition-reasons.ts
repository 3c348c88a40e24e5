/**
 * Reasons of the conditions of all kinds but AgentRun (those are in src/run/reasons.ts): a closed list with cause and next
 * step. The message of a condition has the details; docs/reasons.md is generated from here.
 */

export interface ReasonInfo {
  /** What happened. */
  readonly cause: string;
  /** What a person does about it. */
  readonly nextStep: string;
}

/** The reasons of one condition. */
export interface ConditionReasons {
  /** The kinds that show it, as a heading of the docs. */
  readonly kinds: string;
  readonly condition: string;
  readonly reasons: Readonly<Record<string, ReasonInfo>>;
}

const NONE = 'None.';

export const CONDITION_REASONS = [
  {
    kinds: 'All kinds',
    condition: 'Ready',
    reasons: {
      Ready: { cause: 'It is as it should be.', nextStep: NONE },
      Deleting: {
        cause: 'It is being deleted; what belongs to it goes first, and every run is counted.',
        nextStep: 'None; the message says what it waits for.',
      },
    },
  },
  {
    kinds: 'Workspace and Box',
    condition: 'Ready',
    reasons: {
      NamespaceExists: {
        cause:
          'The namespace that it needs (`bw-<box>`, `bw-ws-<workspace>`) was there before and was not made for it, or is to be adopted and holds workloads.',
        nextStep:
          'Delete the namespace, or let it be adopted: kubectl annotate namespace NAME boxwright.dev/adopt=BOX. Remove the workloads that the message names.',
      },
      NamespaceTerminating: {
        cause: 'Its namespace is being deleted.',
        nextStep: 'None: it is made again after that. The audit log names who deleted it.',
      },
    },
  },
  {
    kinds: 'Box',
    condition: 'Ready',
    reasons: {
      WorkspaceNotFound: {
        cause: 'There is no Workspace of the name in spec.workspace.',
        nextStep: 'Create the Workspace, or create the Box anew with another one: spec.workspace cannot be changed.',
      },
      InvalidSpec: {
        cause: 'A field of the Box does not hold an amount of Kubernetes, such as 500m, 2 or 512Mi.',
        nextStep: 'Correct the fields that the message names.',
      },
    },
  },
  {
    kinds: 'Box',
    condition: 'NetworkEnforced',
    reasons: {
      Enforced: { cause: 'The probe reached the gateway and nothing that is forbidden.', nextStep: NONE },
      NetworkNotEnforced: {
        cause: 'The probe reached something that the network policies forbid; the message names it.',
        nextStep:
          'Install a CNI plugin that enforces NetworkPolicy, or accept the risk: spec.egress.requireEnforcement: false (docs/security.md).',
      },
      NetworkProbing: {
        cause: 'The present policies have not been probed yet.',
        nextStep: 'None, unless it lasts: the message says what the probe waits for.',
      },
      GatewayUnreachable: {
        cause: 'The probe reached nothing at all, which proves nothing; runs would end with ClaimTimeout.',
        nextStep: 'Check the gateway pods, and whether the CNI plugin supports the policies of the Box.',
      },
      ProbeFailed: {
        cause: 'The probe gave no report, for example because no node had room.',
        nextStep: 'Read the message; the probe is repeated every 5 minutes.',
      },
      ProbeNameTaken: {
        cause: 'A Job that is none of the Box has the name of the probe, boxwright-network-probe.',
        nextStep:
          'Delete it: kubectl delete job -n bw-BOX boxwright-network-probe; if it is that of a run, delete the AgentRun of this name. The probe starts half a minute later.',
      },
    },
  },
  {
    kinds: 'Box',
    condition: 'EndpointReady',
    reasons: {
      ToolCallsWork: { cause: 'The model of spec.endpoint called the tool of the probe.', nextStep: NONE },
      EndpointProbing: { cause: 'The present spec.endpoint has not been tried yet.', nextStep: NONE },
      KeyNotUsable: {
        cause: 'The Secret of spec.endpoint.secretRef or its key is missing, or it has no label.',
        nextStep: 'Create the Secret with the label boxwright.dev/credential=true (docs/models.md).',
      },
      EndpointUnavailable: {
        cause: 'The server gave no answer, none that is JSON, or said "not now".',
        nextStep: 'Check baseUrl and the server; it is tried again every 5 minutes.',
      },
      EndpointRefused: {
        cause: 'The server answered 401 or 403.',
        nextStep: 'Put a valid key into the Secret, or name one in spec.endpoint.secretRef.',
      },
      ModelNotFound: {
        cause: 'The server does not have the model, or lists none and the Box names none.',
        nextStep: 'Set spec.endpoint.model to one that the server has; check that baseUrl ends with its version.',
      },
      ToolCallsRefused: {
        cause: 'The server refuses a request that has a tool.',
        nextStep: 'Start it with tool calls: --enable-auto-tool-choice for vLLM, --jinja for llama-server.',
      },
      NoToolCall: {
        cause: 'The model answered in words instead of calling the tool.',
        nextStep: 'Choose a model that is trained for tool calls, and check the tool parser of the server.',
      },
    },
  },
  {
    kinds: 'Agent',
    condition: 'Ready',
    reasons: {
      BoxNotFound: {
        cause: 'Its namespace is not that of a Box.',
        nextStep: 'Create the agent in the namespace `bw-<box>` of a Box.',
      },
      Installing: {
        cause: 'It is being installed from a template.',
        nextStep: 'None: an install that is not complete within 2 minutes is taken back.',
      },
      NoFreeSlot: {
        cause: 'The Workspace has no free agent slot; older agents hold them.',
        nextStep: 'Raise spec.slots of the Workspace, or delete another agent.',
      },
      HandleConflict: {
        cause: 'An older agent of the Workspace has the same handle.',
        nextStep: 'Set another spec.handle.',
      },
      ArchiveUnavailable: {
        cause: 'It was deleted, but its rows in the PostgreSQL archive cannot be purged at the moment.',
        nextStep: 'Check PostgreSQL (docs/archive.md); the deletion goes on by itself.',
      },
    },
  },
  {
    kinds: 'Agent',
    condition: 'HandleConflict',
    reasons: {
      HandleTaken: {
        cause: 'An older agent of the Workspace has the same handle, so the handle does not lead to this one.',
        nextStep: 'Set another spec.handle.',
      },
    },
  },
  {
    kinds: 'Agent',
    condition: 'BrowserUnavailable',
    reasons: {
      ImageWithoutBrowser: {
        cause: 'It may use a browser, and the image of its newest run has none.',
        nextStep: 'Set spec.image of the Box to the browser variant, or spec.tools.browser of the agent to false.',
      },
    },
  },
  {
    kinds: 'Agent',
    condition: 'WorkspacePersistent',
    reasons: {
      VolumeBound: { cause: 'Its files stay between runs.', nextStep: NONE },
      VolumePending: {
        cause: 'Its files will stay; the claim has no volume yet, which is normal before the first run.',
        nextStep: 'None, unless runs wait: kubectl describe pvc tells what the claim waits for.',
      },
      Ephemeral: { cause: 'The Box wants no volumes: files go with the pod of a run.', nextStep: NONE },
      NoStorageClass: {
        cause: 'The cluster has no default StorageClass.',
        nextStep: 'Install one, or name one in spec.workspaceVolume of the Box. Mode `persistent` waits until then.',
      },
      StorageClassNotFound: {
        cause: 'The cluster does not have the StorageClass that the Box names.',
        nextStep: 'Install it, or name another one in spec.workspaceVolume of the Box.',
      },
      VolumeMissing: {
        cause: 'The volume claim is about to be made; an agent without a slot gets none.',
        nextStep: NONE,
      },
      VolumeRefused: {
        cause: 'Kubernetes refused the volume claim.',
        nextStep: 'Raise spec.quota.volumes or spec.quota.storage of the Box when the message names the quota.',
      },
      VolumeDeleting: {
        cause: 'The volume claim is being deleted with all files.',
        nextStep: 'None: a new, empty one is made when no pod uses it any more.',
      },
      VolumeLost: {
        cause: 'The volume behind the claim is gone, and the files with it.',
        nextStep: 'Delete the claim; a new, empty one is made.',
      },
      VolumeForeign: {
        cause: 'A volume claim of that name was not made for this agent.',
        nextStep: 'Delete the claim, or rename the agent; runs wait until then.',
      },
    },
  },
  {
    kinds: 'AgentTrigger and AgentSchedule',
    condition: 'Ready',
    reasons: {
      AgentNotFound: {
        cause: 'There is no Agent of the name in spec.agent in the namespace.',
        nextStep: 'Create the agent, or delete what belongs to it.',
      },
      KeyNotFound: {
        cause: 'The keyring does not have the key of spec.keyId.',
        nextStep:
          'Put the key back into Secret boxwright-keyring; or rotate the token of the trigger, or remove spec.keyId of the schedule.',
      },
      InvalidSchedule: {
        cause: 'The cron line, the date or the time zone of the schedule cannot be followed.',
        nextStep: 'Correct the field that the message names.',
      },
    },
  },
  {
    kinds: 'AgentTrigger',
    condition: 'Ready',
    reasons: {
      WebhookKeyNotFound: {
        cause:
          'There is no key for spec.verify: Secret boxwright-webhook-keys, its label or the entry is missing, or holds nothing that the scheme can use. Every call answers 404.',
        nextStep:
          'Create in the namespace what the message names; the trigger works as soon as it is there (docs/webhooks.md).',
      },
    },
  },
  {
    kinds: 'AgentSchedule',
    condition: 'Fired',
    reasons: {
      Fired: { cause: 'The newest tick started a run.', nextStep: NONE },
      Missed: {
        cause: 'The tick was too old when it was seen: ticks are caught up for 10 minutes only.',
        nextStep: 'Start it by hand if it is needed (run_schedule_now).',
      },
      AgentInactive: {
        cause: 'The tick was skipped: the agent holds no slot of the plan.',
        nextStep: 'Raise spec.slots of the Workspace, or delete another agent.',
      },
      BacklogFull: {
        cause: 'Too many runs wait or work; the tick is tried again for 10 minutes.',
        nextStep: 'Cancel runs that nobody needs, or let less come in (docs/operations.md).',
      },
      MessageTooLarge: { cause: 'spec.body is larger than a message may be.', nextStep: 'Make spec.body shorter.' },
      Refused: {
        cause: 'Kubernetes refused the run, or every name for it belongs to another run.',
        nextStep: 'Read the message; the tick is tried again for 10 minutes.',
      },
    },
  },
  {
    kinds: 'AgentEval',
    condition: 'Ready',
    reasons: {
      AgentNotFound: {
        cause: 'An Agent that the eval names, in spec.agent or as a judge, is not in the namespace.',
        nextStep: 'Create the agent; what waits for it goes on by itself.',
      },
      BacklogFull: {
        cause: 'Too many runs wait or work; the next case is tried again every 30 seconds.',
        nextStep: 'Cancel runs that nobody needs, or let less come in (docs/operations.md).',
      },
      Refused: {
        cause: 'Kubernetes refused the run of a case; it is tried again every 30 seconds.',
        nextStep: 'Read the message.',
      },
    },
  },
  {
    kinds: 'AgentEval',
    condition: 'Ready, Finished, Passed',
    reasons: {
      InvalidEval: {
        cause:
          'A regular expression or a JSON Schema of an assertion cannot be used, or the whole spec is too large. Nothing was started.',
        nextStep: 'Correct the case that the message names (docs/evals.md).',
      },
    },
  },
  {
    kinds: 'AgentEval',
    condition: 'Finished, Passed',
    reasons: {
      EvalRunning: { cause: 'Some cases have not ended yet.', nextStep: NONE },
      AllPassed: { cause: 'Every case passed with every model.', nextStep: NONE },
      CasesFailed: {
        cause: 'At least one case failed.',
        nextStep: 'Read status.results: each failed one says what was expected and what was seen.',
      },
    },
  },
  {
    kinds: 'APIKey',
    condition: 'Ready',
    reasons: {
      WorkspaceNotFound: {
        cause: 'The namespace is not that of a Workspace that is there.',
        nextStep: 'Create the APIKey in the namespace `bw-ws-<workspace>` of a Workspace.',
      },
      SecretExists: {
        cause: 'A Secret of the name is there and was not made for this key.',
        nextStep: 'Delete that Secret, or create the APIKey under another name.',
      },
      SecretForbidden: {
        cause: 'The controller may not write Secrets in the namespace yet.',
        nextStep: 'None: the right comes with the Workspace. If it lasts, look at the conditions of the Workspace.',
      },
      Revoked: { cause: 'The key was revoked.', nextStep: 'Create another APIKey.' },
      Expired: { cause: 'The key has expired.', nextStep: 'Create another APIKey, or move spec.expiresAt.' },
    },
  },
  {
    kinds: 'APIKey',
    condition: 'Revoked, Expired',
    reasons: {
      InForce: { cause: 'The key is not revoked (condition Revoked), or not expired (Expired).', nextStep: NONE },
      SpecRevoked: { cause: 'spec.revoked is true.', nextStep: 'Create a new APIKey where one is needed.' },
      SpecExpiresAt: {
        cause: 'The time in spec.expiresAt is over.',
        nextStep: 'Set a later time, or create a new APIKey.',
      },
    },
  },
] as const satisfies readonly ConditionReasons[];

type KeyOf<T> = T extends unknown ? keyof T : never;

/** A reason of a condition of any kind but AgentRun. */
export type ConditionReason = KeyOf<(typeof CONDITION_REASONS)[number]['reasons']>;

const ALL: ReadonlySet<string> = new Set(CONDITION_REASONS.flatMap(({ reasons }) => Object.keys(reasons)));

/** Whether the text is one of the reasons. */
export function isConditionReason(text: string): text is ConditionReason {
  return ALL.has(text);
}
