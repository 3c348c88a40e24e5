/**
 * Reasons are a closed list: `status.reason` of a run is always one of these, with cause and next step.
 * docs/reasons.md is generated from here.
 */
import type { ReasonInfo } from '../api/condition-reasons.js';

/** Why a run waits. It shows status `running` and the condition Queued=True with one of these. */
export const QUEUE_REASONS = {
  AgentInactive: {
    cause: 'The agent holds no slot of the plan.',
    nextStep: 'Raise spec.slots of the Workspace or delete another agent; the run starts when a slot frees.',
  },
  AgentInstalling: {
    cause: 'The agent is being installed from a template.',
    nextStep: 'None: the run starts when the install is complete; one that is not complete in 2 minutes is taken back.',
  },
  AgentPaused: { cause: 'spec.paused of the agent is true.', nextStep: 'Set spec.paused to false.' },
  BoxPaused: { cause: 'spec.paused of the Box is true.', nextStep: 'Set spec.paused of the Box to false.' },
  WorkspacePaused: {
    cause: 'spec.paused of the Workspace is true.',
    nextStep: 'Set spec.paused of the Workspace to false.',
  },
  SessionBusy: {
    cause: 'Another run of the same session is working.',
    nextStep: 'None: runs of a session follow each other.',
  },
  AgentLimit: {
    cause: 'The agent already has spec.maxRunningPerAgent of its Box running.',
    nextStep: 'Wait, or raise the limit in the Box.',
  },
  BoxLimit: { cause: 'The Box already has spec.maxRunning running.', nextStep: 'Wait, or raise the limit in the Box.' },
  InstallationLimit: {
    cause:
      'The installation already has its maximum of runs working; the last tenth is for Boxes in which nothing works.',
    nextStep: 'Wait, or raise controller.maxRunning of the chart.',
  },
  WaitingForKueue: {
    cause: 'The Job is suspended: it waits in the Kueue queue of the Box.',
    nextStep: 'kubectl get workloads in the namespace of the Box shows what Kueue waits for.',
  },
  WaitingForBudget: {
    cause:
      'Nothing is left of a budget for a day or month of agent, Box or Workspace: it is used, or granted to runs that work.',
    nextStep:
      'Read status.message: it names the budget and when it is free again at the latest. Wait, or raise spec.budget; the run starts by itself.',
  },
  BoxNotReady: { cause: 'The Box is not Ready.', nextStep: 'Read the conditions: kubectl describe box.' },
  WorkspaceNotReady: {
    cause: 'The volume for the files of the agent is not there, and the run would lose what it writes.',
    nextStep: 'Read condition WorkspacePersistent (kubectl describe agent); the run starts when the volume is there.',
  },
  NoCapacity: {
    cause:
      'The cluster had no room: quota refused the pod, or no node could take it or older pods of its Box. Nothing was executed.',
    nextStep: 'Add nodes or raise spec.quota of the Box; the run is tried again.',
  },
  JobRefused: {
    cause:
      'Kubernetes refused the Job of a run of this Box, as an admission policy of the cluster may. Nothing was executed.',
    nextStep: 'Fix what the message of the oldest waiting run of the Box names; it is tried again every 30 s.',
  },
  JobNotCreated: {
    cause:
      'The Job of a run of this Box could not be created for a while, as without an answer of an admission webhook or without a right of the controller. Nothing was executed.',
    nextStep: 'Fix what the message of the oldest waiting run of the Box names; it is tried again every 30 s.',
  },
} as const satisfies Record<string, ReasonInfo>;
export type QueueReason = keyof typeof QUEUE_REASONS;

/** Why a run ended, or `Working` while it is executed. */
export const RUN_REASONS = {
  Working: { cause: 'A pod executes the run.', nextStep: 'None.' },
  WaitingForModel: {
    cause: 'The provider of the model is overloaded, does not answer, or broke its answer off.',
    nextStep:
      'None: the call is tried again by itself for bounds.modelCallSeconds of the Box. Read status.message; check the provider when it lasts.',
  },
  Starting: {
    cause: 'The Job exists; its pod has not claimed the run yet.',
    nextStep: 'None; every stage has a deadline.',
  },
  Completed: { cause: 'The agent finished.', nextStep: 'None.' },
  StepLimitReached: {
    cause: 'The agent used all steps of its stepLimit; its last message is in output.',
    nextStep: 'Continue the session, or raise stepLimit.',
  },
  ModelRefused: {
    cause: 'The model refused to answer.',
    nextStep: 'Read output for what it said before; word the task in another way, or choose another model.',
  },
  ContentFiltered: {
    cause: 'A filter of the provider blocked the answer of the model.',
    nextStep: 'Look for what the filter may have met in the task or in the results of tools; choose another model.',
  },
  EmptyAnswer: {
    cause: 'The last answer of the model was empty, and once more when it was asked to finish.',
    nextStep: 'Continue the session: what was done is in the transcript. Choose another model if it happens often.',
  },
  OutputLimitReached: {
    cause: 'The model reached its output limit each time that it was asked to go on; what it wrote is in output.',
    nextStep: 'Continue the session, or ask for less at once.',
  },
  OutputMismatch: {
    cause: 'The last message of the agent does not fit spec.outputSchema, and did not when it was asked to correct it.',
    nextStep: 'Read output for what it said; say more in the descriptions of the schema, or mend the schema.',
  },
  Delivered: { cause: 'The message was given to the run of the session that was at work.', nextStep: 'None.' },
  Cancelled: { cause: 'Somebody cancelled or deleted the run.', nextStep: 'None.' },
  AgentNotFound: {
    cause: 'No Agent of that name is in the namespace.',
    nextStep: 'Check spec.agent; create the agent, then a new run.',
  },
  Restored: {
    cause: 'The run comes from a backup and had begun there; what came of it is not known here.',
    nextStep: 'Start it again if it is still needed: a restored run is never executed a second time.',
  },
  AgentDeleted: { cause: 'The agent was deleted before the run ended.', nextStep: 'None.' },
  InvalidRun: {
    cause: 'The run cannot be executed as written, for example its stored input is damaged.',
    nextStep: 'Read status.message and create a corrected run.',
  },
  ModelNotConfigured: {
    cause: 'Nothing stands behind the provider of the agent.',
    nextStep: 'Set spec.engine of the Box (scripted needs no key), or choose another provider.',
  },
  ModelError: {
    cause: 'The model answered with an error.',
    nextStep: 'Read status.message; check provider, model and credentials.',
  },
  BudgetExhausted: {
    cause: 'A budget of agent, Box or Workspace is used up, or what is left is too little for the next model call.',
    nextStep: 'Read status.message; raise spec.budget, or wait for the next day or month.',
  },
  ModelUnpriced: {
    cause: 'A budget in US dollars is set, and the price of the model is not known.',
    nextStep: 'Add the model to ConfigMap boxwright-model-prices (docs/models.md), or set the budget in tokens.',
  },
  ReplayFailed: {
    cause: 'The recording of the run cannot be used, or a tool answered otherwise than when it was recorded.',
    nextStep:
      'Read status.message; record the run anew, or name a tool that never answers twice the same in spec.recording.anyResultOf.',
  },
  ImagePullFailed: {
    cause: 'The image of the run could not be pulled in time.',
    nextStep: 'Check the image name, the registry and its pull secret.',
  },
  ContainerCreateFailed: {
    cause: 'A container of the run could not be created in time.',
    nextStep: 'kubectl describe pod shows what the node says.',
  },
  ClaimTimeout: {
    cause: 'The container started, but did not claim the run in time.',
    nextStep: 'Check that pods of the Box reach the gateway (network policies) and the logs of the runner.',
  },
  HeartbeatLost: {
    cause: 'The run was silent for longer than bounds.heartbeatSeconds of the Box.',
    nextStep: 'Check the node and the logs of the pod; start a new run.',
  },
  DeadlineExceeded: {
    cause: 'Execution took longer than the limit of the Box or the run.',
    nextStep: 'Raise bounds.executionSeconds of the Box, or give the agent less to do.',
  },
  OOMKilled: {
    cause: 'The runner ran out of memory.',
    nextStep: 'Raise spec.resources.runnerMemory of the Box, or give the agent less to read at once.',
  },
  Evicted: {
    cause: 'The pod was evicted: its node was drained or short of room, or a pod of a higher priority took its place.',
    nextStep: 'Continue its session, or start a new run.',
  },
  PodDeleted: {
    cause: 'The pod of the run was deleted.',
    nextStep: 'Continue its session, or start a new run.',
  },
  JobDeleted: {
    cause: 'The Job of the run was deleted.',
    nextStep: 'Continue its session, or start a new run.',
  },
  NodeLost: { cause: 'The node of the run is gone.', nextStep: 'Continue its session, or start a new run.' },
  RunnerFailed: { cause: 'The runner ended without a result.', nextStep: 'Read the logs of the pod; start a new run.' },
  RunnerError: { cause: 'The runner reported an error.', nextStep: 'Read status.message.' },
  Interrupted: {
    cause: 'The pod was told to stop before the agent finished.',
    nextStep: 'Continue its session, or start a new run.',
  },
  NamespaceTerminating: {
    cause: 'The namespace of the Box is being deleted: the run cannot start or go on there.',
    nextStep: 'Start a new run when the Box is Ready again; the audit log names who deleted the namespace.',
  },
} as const satisfies Record<string, ReasonInfo>;
export type RunReason = keyof typeof RUN_REASONS;

/** Whether the text is the reason of a run that works or ended. */
export function isRunReason(text: string | undefined): text is RunReason {
  return text !== undefined && Object.hasOwn(RUN_REASONS, text);
}

/** Reasons that a runner may give for the end of its run; the others are the control plane's own observations. */
const REPORTED_REASONS: ReadonlySet<string> = new Set([
  'Completed',
  'StepLimitReached',
  'ModelRefused',
  'ContentFiltered',
  'EmptyAnswer',
  'OutputLimitReached',
  'OutputMismatch',
  'Cancelled',
  'ModelNotConfigured',
  'ModelError',
  'ModelUnpriced',
  'ReplayFailed',
  'BudgetExhausted',
  'DeadlineExceeded',
  'RunnerError',
  'Interrupted',
] satisfies RunReason[]);

/** Whether the text is a reason that a runner may give. */
export function isReportedReason(text: string): text is RunReason {
  return REPORTED_REASONS.has(text);
}

/** Why a deleted run or agent is still there: condition Archived=False of a run, Ready=False of an agent. */
export const KEPT_REASONS = {
  ArchiveUnavailable: {
    cause: 'It was deleted, but the PostgreSQL archive cannot be used at the moment.',
    nextStep:
      'Check PostgreSQL and the Secret of archive.postgres.secretName (docs/archive.md); the deletion goes on by itself.',
  },
} as const satisfies Record<string, ReasonInfo>;

/** Reasons of the conditions that mark a stage of a run; `status.reason` shows none of them. */
export const STAGE_REASONS = {
  Admitted: { cause: 'Condition Queued=False: the run waits no longer, its Job was created.', nextStep: 'None.' },
  Claimed: { cause: 'Condition Started=True: the pod of the run claimed it.', nextStep: 'None.' },
  CancelRequested: {
    cause: 'Condition Cancelling=True: somebody asked to cancel the run, and its runner was told to stop.',
    nextStep: 'None: it ends within bounds.terminationSeconds of the Box.',
  },
} as const satisfies Record<string, ReasonInfo>;
