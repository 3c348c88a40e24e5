import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { MAX_RETRIES } from './agent.js';
import { MAX_FILE_BYTES, MAX_FILE_PART_BYTES, MAX_FILE_PARTS } from './agent-run-file-part.js';
import { Conditions, FoldedTotals, Folding, Provider, Timestamp } from './common.js';

/** The spec's run states (spec 3). A queued run is `running` with reason in the condition Queued. */
export const RUN_PHASES = ['running', 'done', 'error', 'cancelled'] as const;
export type RunPhase = (typeof RUN_PHASES)[number];

export const RUN_ORIGINS = ['chat', 'api', 'schedule', 'trigger', 'eval'] as const;

/** Longest message of a run in bytes (checked in code; the CRD counts characters). */
export const MAX_MESSAGE_BYTES = 128 * 1024;
/** Messages up to this size stand in `spec.message`; larger ones are compressed into `spec.input`. */
export const MAX_INLINE_MESSAGE_BYTES = 4 * 1024;
/** `status.output` holds at most this many bytes; the transcript holds all of it. */
export const MAX_STATUS_OUTPUT_BYTES = 8 * 1024;

/** What `status.warnings` keeps. */
export const MAX_RUN_WARNINGS = 8;
export const MAX_RUN_WARNING_BYTES = 512;

/** Agents that call agents: how deep, and how many children one run may have. */
export const MAX_CALL_DEPTH = 3;
export const MAX_CHILD_RUNS = 5;

/** A model that takes the place of the agent's own. */
export const RunModel = z
  .object({
    provider: Provider.optional().describe('Provider of the model; that of the agent when absent.'),
    name: z.string().min(1).max(128).describe('Name of the model, as in spec.model of an Agent.'),
  })
  .describe("A model that takes the place of the agent's own.");
export type RunModel = z.output<typeof RunModel>;

/** A recorded run that answers in the place of a model. */
export const RunRecording = z
  .object({
    configMap: z
      .string()
      .min(1)
      .max(253)
      .describe(
        'ConfigMap of this namespace with the key recording.jsonl.gz, the transcript of a run (docs/evals.md).',
      ),
    anyResultOf: z
      .array(z.string().min(1).max(128))
      .max(32)
      .optional()
      .describe('Tools whose results may differ from the recorded ones. A difference of any other ends the run.'),
  })
  .describe('Recorded answers of a model, which take its place; the tools are called.');
export type RunRecording = z.output<typeof RunRecording>;

export const AgentRunSpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that executes the run.'),
  message: z
    .string()
    .max(MAX_MESSAGE_BYTES)
    .optional()
    .describe('What the agent is told. Absent when `input` holds it compressed.'),
  input: z
    .object({
      encoding: z.enum(['gzip']).describe('How `data` is encoded: compressed by gzip, then base64.'),
      bytes: z.int().min(0).describe('Size of the message in bytes before compression.'),
      sha256: z.string().max(64).describe('SHA-256 of the message in hex.'),
      data: z
        .string()
        .max(196_608)
        .optional()
        .describe('The compressed message; removed by retention after the end of the run.'),
    })
    .optional()
    .describe('A message above 4 KiB, compressed. Set by the control plane only.'),
  agentUid: z.string().max(64).optional().describe('UID of the Agent at acceptance. Set by the control plane only.'),
  trigger: z
    .object({
      origin: z.enum(RUN_ORIGINS).describe('Which kind of caller started the run.'),
      name: z.string().max(36).optional().describe('Slug of the trigger or schedule, name of the AgentEval.'),
      uid: z.string().max(64).optional().describe('UID of the trigger, schedule or AgentEval.'),
      case: z.string().max(36).optional().describe('Case of the AgentEval, whose files the run gets.'),
    })
    .optional()
    .describe('Where the run came from; `api` when absent. Set by the control plane only.'),
  sessionId: z
    .string()
    .max(80)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .optional()
    .describe('The conversation that the run belongs to; a new one when absent. Set by the control plane only.'),
  resume: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .optional()
    .describe(
      'A run of the same agent whose conversation goes on: the message is the next one of its session, and what the run did until it ended, or was lost, is known.',
    ),
  sessionTitle: z
    .string()
    .max(128)
    .optional()
    .describe('Title of the session that this run opens. Set by the control plane only.'),
  createdAt: Timestamp.optional().describe(
    'Acceptance with milliseconds; creationTimestamp when absent. Set by the control plane only.',
  ),
  actor: z
    .string()
    .max(128)
    .optional()
    .describe(
      'Who asked: the prefix of an API key, `trigger`, `schedule`, `eval`, `run:<name>`. Set by the control plane only.',
    ),
  parent: z
    .object({
      name: z.string().max(63).describe('The run that called the agent.'),
      uid: z.string().max(64).describe('UID of that run.'),
      depth: z.int().min(1).max(MAX_CALL_DEPTH).describe('1 for a run that was called by one without a parent.'),
      agents: z
        .array(z.string().max(36))
        .max(MAX_CALL_DEPTH)
        .describe('Agents of the calling runs, the outermost first; none of them is called again.'),
      callers: z
        .array(
          z
            .object({
              name: z.string().max(63).describe('Name of a calling run.'),
              uid: z.string().max(64).describe('UID of that calling run.'),
            })
            .describe('One calling run above this one.'),
        )
        .max(MAX_CALL_DEPTH)
        .optional()
        .describe('The calling runs, the outermost first; what this run uses counts towards the grant of each.'),
      waits: z.boolean().describe('True when the parent waits for this run, which then needs no free place.'),
      untrusted: z.boolean().optional().describe('True when the parent came from outside.'),
    })
    .optional()
    .describe('The run whose agent called this one. Set by the control plane only.'),
  retryOf: z
    .object({
      name: z.string().max(63).describe('Name of the run that ended in an error.'),
      uid: z.string().max(64).describe('UID of that run.'),
      attempt: z.int().min(1).max(MAX_RETRIES).describe('1 for the first run after the one that was asked for.'),
    })
    .optional()
    .describe('The run that this one takes further, by spec.retries of the agent. Set by the control plane only.'),
  steer: z
    .boolean()
    .optional()
    .describe(
      'True when the message is for the run of the session that works: that one gets it before its next step, and this one ends as Delivered. It is a run like any other when that one ends first. Set by the control plane only.',
    ),
  model: RunModel.optional().describe(
    "A model instead of the agent's, for an AgentEval. Set by the control plane only.",
  ),
  recording: RunRecording.optional().describe(
    'A recorded run whose answers take the place of the model: it needs no key and costs nothing.',
  ),
  limits: z
    .object({
      executionSeconds: z
        .int()
        .min(1)
        .max(86_400)
        .optional()
        .describe('Lower bound on execution than that of the Box.'),
      stepLimit: z.int().min(1).max(500).optional().describe('Lower step limit than that of the Agent.'),
    })
    .optional()
    .describe('Limits below those of Box and Agent.'),
  cancelRequested: z.boolean().optional().describe('Set to true to cancel the run; it cannot be taken back.'),
});

export const RunUsage = z
  .object({
    steps: z.int().min(0).describe('Model calls that were answered.'),
    inputTokens: z.int().min(0).describe('Input tokens as counted by the gateway.'),
    cacheReadTokens: z.int().min(0).optional().describe('Input tokens that the provider read from its prompt cache.'),
    cacheWriteTokens: z.int().min(0).optional().describe('Input tokens that the provider put into its prompt cache.'),
    outputTokens: z.int().min(0).describe('Output tokens as counted by the gateway.'),
    totalTokens: z.int().min(0).describe('Sum of input and output tokens.'),
    costUsd: z
      .string()
      .max(24)
      .optional()
      .describe('Cost in US dollars with six decimals; absent when the price is unknown.'),
  })
  .describe('What the run has used so far, or in all.');
export type RunUsage = z.output<typeof RunUsage>;

/** Longest question of a pending record, in bytes, and most choices. */
export const MAX_PENDING_TEXT_BYTES = 4 * 1024;
export const MAX_PENDING_CHOICES = 20;
export const MAX_PENDING_CHOICE_BYTES = 200;
/** Longest input of a call that can wait for an approval, as JSON: as much as a transcript keeps of it. */
export const MAX_PENDING_INPUT_BYTES = 16 * 1024;

export const RunPending = z
  .object({
    kind: z.enum(['question', 'approval']).describe('A question of the agent, or a tool call that needs an approval.'),
    text: z.string().max(MAX_PENDING_TEXT_BYTES).describe('The question, or what is to be approved, for a person.'),
    choices: z
      .array(z.string().max(MAX_PENDING_CHOICE_BYTES))
      .max(MAX_PENDING_CHOICES)
      .optional()
      .describe('Answers that the agent suggests.'),
    callId: z.string().max(256).describe('The call in the transcript that gets the answer as its result.'),
    tool: z.string().max(128).optional().describe('For approvals: the tool that the agent wants to use.'),
    input: z.string().max(MAX_PENDING_INPUT_BYTES).optional().describe('For approvals: its arguments as JSON.'),
  })
  .describe('What the run waits for; the next message of the session answers it.');
export type RunPending = z.output<typeof RunPending>;

/** Written while a model call takes long; gone when it is counted. */
export const OpenCall = z
  .object({
    inputTokens: z.int().min(0).describe('Input tokens, as told or estimated.'),
    outputTokens: z.int().min(0).describe('Output tokens so far, as told or estimated.'),
    costUsd: z.string().max(24).optional().describe('Cost in US dollars so far; absent when the price is unknown.'),
  })
  .describe('What the model call in flight has used by now; it is charged when its gateway pod is lost.');
export type OpenCall = z.output<typeof OpenCall>;

export const RunApprovals = z
  .object({
    always: z
      .array(z.string().max(128))
      .max(64)
      .optional()
      .describe('Tools that were approved for the rest of the session.'),
    call: z
      .object({
        callId: z.string().max(256).describe('Id of the call in the transcript that was approved.'),
        tool: z.string().max(128).describe('The tool that this call uses.'),
        sha256: z.string().max(64).describe('SHA-256 of its arguments as JSON, in hex.'),
        usedBy: z.int().min(1).optional().describe('The call of this run that used the approval.'),
      })
      .optional()
      .describe('The one call that was approved for this run.'),
  })
  .describe('What a person approved.');
export type RunApprovals = z.output<typeof RunApprovals>;

const Allowance = z
  .object({
    tokens: z.int().min(0).optional().describe('Input and output tokens from the beginning of the run, in all.'),
    usd: z.string().max(24).optional().describe('US dollars from the beginning of the run, in all.'),
  })
  .describe('What a run may use from its beginning.');

/** The money of a run: the controller grants, the gateway asks for more. */
export const RunBudget = z
  .object({
    at: Timestamp.describe('When the run was admitted: it counts towards the budgets of that day and month.'),
    granted: Allowance.describe('What the controller has granted; absent dimensions have no limit.'),
    wanted: Allowance.optional().describe('What the gateway asks for.'),
    answered: Allowance.optional().describe('The wish that `granted` answers.'),
    returned: z
      .int()
      .min(0)
      .optional()
      .describe('How often the gateway returned what was not used, which makes earlier grants void.'),
  })
  .describe('What the budgets of agent, Box and Workspace leave to the run.');
export type RunBudget = z.output<typeof RunBudget>;

/** Files that a run may publish, and the longest name of one, in bytes. */
export const MAX_RUN_FILES = 16;
export const MAX_FILE_NAME_BYTES = 200;
export const MAX_FILE_DESCRIPTION_BYTES = 1024;

export const RunFile = z
  .object({
    name: z.string().max(MAX_FILE_NAME_BYTES).describe('Name of the file, without a path.'),
    mediaType: z.string().max(128).describe('Media type, told from the name.'),
    bytes: z.int().min(0).max(MAX_FILE_BYTES).describe('Size of the content in bytes.'),
    sha256: z.string().max(64).describe('SHA-256 of the content in hex.'),
    description: z.string().max(MAX_FILE_DESCRIPTION_BYTES).optional().describe('What the agent says it is.'),
    part: z
      .int()
      .min(0)
      .max(MAX_FILE_PARTS - 1)
      .describe('Position of its first AgentRunFilePart.'),
    parts: z
      .int()
      .min(1)
      .max(MAX_FILE_BYTES / MAX_FILE_PART_BYTES)
      .describe('Number of AgentRunFileParts that hold it.'),
  })
  .describe('A file that the run published.');
export type RunFile = z.output<typeof RunFile>;

export const AgentRunStatus = z.object({
  phase: z.enum(RUN_PHASES).describe('running, done, error or cancelled: derived from the conditions (spec 2).'),
  reason: z.string().max(64).optional().describe('Why the run is where it is; docs/reasons.md lists every value.'),
  message: z.string().max(1024).optional().describe('The reason as a sentence with the next step.'),
  conditions: Conditions,
  agentUid: z.string().max(64).optional().describe('UID of the Agent, for runs made by hand.'),
  sessionId: z.string().max(80).optional().describe('The session that spec.resume leads to.'),
  provider: Provider.optional().describe('Provider whose model the run uses.'),
  model: z.string().max(128).optional().describe('Model that the run uses, and no other.'),
  claim: z
    .object({
      podUid: z.string().max(64).describe('The only pod that may execute this run.'),
      podName: z.string().max(253).describe('Name of the pod that may execute this run.'),
      at: Timestamp.describe('When it claimed the run; execution is counted from here.'),
      withoutBrowser: z
        .boolean()
        .optional()
        .describe('True when the agent may use a browser and the image of the pod has none.'),
      gatewayPod: z.string().max(253).describe('Name of the gateway pod that serves the run.'),
      gatewayUid: z.string().max(64).describe('UID of that gateway pod.'),
      gatewayAddress: z.string().max(128).describe('host:port of that gateway pod.'),
      epoch: z.int().min(1).describe('Rises at every change of the gateway pod; an older one must stop serving.'),
    })
    .optional()
    .describe('Who executes the run and who serves it.'),
  untrusted: z.boolean().optional().describe('True when the run, its session or its parent came from a webhook.'),
  structured: z
    .boolean()
    .optional()
    .describe('True when output must be JSON that fits spec.outputSchema of the agent.'),
  awaited: z
    .boolean()
    .optional()
    .describe('True when the parent began to wait for this run after its start; it needs no free place then.'),
  approvals: RunApprovals.optional(),
  usage: RunUsage.optional(),
  openCall: OpenCall.optional(),
  budget: RunBudget.optional(),
  folded: FoldedTotals,
  folding: Folding,
  usageFinal: z.boolean().optional().describe('True when usage will not grow any more.'),
  output: z.string().max(MAX_STATUS_OUTPUT_BYTES).optional().describe('The last message of the agent, cut at 8 KiB.'),
  outputTruncated: z.boolean().optional().describe('True when output is cut; the transcript has all of it.'),
  warnings: z
    .array(z.string().max(MAX_RUN_WARNING_BYTES))
    .max(MAX_RUN_WARNINGS)
    .optional()
    .describe('What was not as it should be, beside the outcome: what was left out, cut or dropped.'),
  files: z
    .array(RunFile)
    .max(MAX_RUN_FILES)
    .optional()
    .describe(
      'What the run published, the latest last; present, and perhaps empty, from before the first piece is stored.',
    ),
  fileCount: z.int().min(0).max(MAX_RUN_FILES).optional().describe('Number of published files, for kubectl.'),
  pending: RunPending.optional(),
  atRest: z
    .boolean()
    .optional()
    .describe('True when the run ended in an error and said that no call of a tool was under way.'),
  retriedBy: z
    .string()
    .max(63)
    .optional()
    .describe('The run that takes this one further, by spec.retries of the agent.'),
  finishedAt: Timestamp.optional().describe('When the run ended, whoever wrote the outcome.'),
  duration: z.string().max(24).optional().describe('From acceptance to end, for kubectl.'),
  transcript: z
    .object({
      state: z
        .enum(['full', 'truncated', 'expired', 'archived'])
        .describe('Whether the transcript is complete and where it is.'),
      onlyResultsCut: z
        .boolean()
        .optional()
        .describe(
          'True when it is truncated because old results of tools were cut, with marks, and nothing else is missing.',
        ),
      chunks: z.int().min(0).max(24).describe('Number of AgentRunChunks that hold it.'),
      bytes: z.int().min(0).describe('Their size before compression.'),
      storedBytes: z.int().min(0).optional().describe('Their size as stored: compressed, in base64.'),
      messages: z
        .int()
        .min(0)
        .optional()
        .describe('Number of messages in the transcript: the input, and every text of the agent.'),
    })
    .optional()
    .describe('Where the steps, tool calls and messages are.'),
});

const terminal = (self: string) =>
  `(has(${self}.status) && has(${self}.status.phase) && ${self}.status.phase in ['done', 'error', 'cancelled'])`;
const dataKept = `has(self.spec.input.data) == has(oldSelf.spec.input.data) && (!has(self.spec.input.data) || self.spec.input.data == oldSelf.spec.input.data)`;
const dataRemoved = `!has(self.spec.input.data) && ${terminal('oldSelf')}`;

/** One execution of an agent (spec 2, Run). */
export const AgentRuns = defineResource({
  kind: 'AgentRun',
  plural: 'agentruns',
  shortNames: ['arun'],
  namespaced: true,
  description: 'One execution of an agent. A manifest with spec.agent and spec.message starts one.',
  spec: AgentRunSpec,
  status: AgentRunStatus,
  // The API server fills this in on read, so that a new run shows `running` before anything was written (spec 2).
  statusDefault: { phase: 'running' },
  columns: [
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent that executes the run.' },
    { name: 'Status', jsonPath: '.status.phase', type: 'string', description: 'running, done, error or cancelled.' },
    { name: 'Reason', jsonPath: '.status.reason', type: 'string', description: 'Why the run waits, or how it ended.' },
    {
      name: 'Trigger',
      jsonPath: '.spec.trigger.origin',
      type: 'string',
      description: 'Which kind of caller started the run.',
    },
    { name: 'Steps', jsonPath: '.status.usage.steps', type: 'integer', description: 'Model calls that were answered.' },
    { name: 'Tokens', jsonPath: '.status.usage.totalTokens', type: 'integer', description: 'Input and output tokens.' },
    { name: 'Cost', jsonPath: '.status.usage.costUsd', type: 'string', description: 'Known cost in US dollars.' },
    { name: 'Duration', jsonPath: '.status.duration', type: 'string', description: 'From acceptance to end.' },
    AGE_COLUMN,
    {
      name: 'Cached',
      jsonPath: '.status.usage.cacheReadTokens',
      type: 'integer',
      description: "Input tokens from the provider's prompt cache.",
      priority: 1,
    },
    {
      name: 'Session',
      jsonPath: '.spec.sessionId',
      type: 'string',
      description: 'The conversation that it belongs to.',
      priority: 1,
    },
    { name: 'Model', jsonPath: '.status.model', type: 'string', description: 'Model that the run uses.', priority: 1 },
    {
      name: 'Files',
      jsonPath: '.status.fileCount',
      type: 'integer',
      description: 'Files that the run published.',
      priority: 1,
    },
    {
      name: 'Job',
      jsonPath: '.metadata.name',
      type: 'string',
      description: 'The Job has the name of the run.',
      priority: 1,
    },
  ],
  rules: [
    dnsLabelName('AgentRun', 63),
    {
      rule: `has(self.spec.message) != has(self.spec.input)`,
      message: 'spec.message is required (the control plane alone may use spec.input instead)',
    },
    {
      rule: `!has(self.spec.resume) || (!has(self.spec.sessionId) && self.spec.resume != self.metadata.name)`,
      message: 'spec.resume names another run, and not together with spec.sessionId',
      fieldPath: '.spec.resume',
    },
    ...[
      'agent',
      'message',
      'agentUid',
      'trigger',
      'sessionId',
      'resume',
      'sessionTitle',
      'createdAt',
      'actor',
      'parent',
      'retryOf',
      'steer',
      'model',
      'recording',
      'limits',
    ].map((field) => immutableSpecField(field)),
    {
      rule: `has(self.spec.input) == has(oldSelf.spec.input) && (!has(self.spec.input) || (self.spec.input.encoding == oldSelf.spec.input.encoding && self.spec.input.bytes == oldSelf.spec.input.bytes && self.spec.input.sha256 == oldSelf.spec.input.sha256 && ((${dataKept}) || (${dataRemoved}))))`,
      message: 'spec.input cannot be changed; its data may only be removed after the end of the run',
    },
    {
      rule: `!(has(oldSelf.spec.cancelRequested) && oldSelf.spec.cancelRequested) || (has(self.spec.cancelRequested) && self.spec.cancelRequested)`,
      message: 'spec.cancelRequested cannot be taken back',
    },
    {
      rule: `!${terminal('oldSelf')} || (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase && has(self.status.reason) == has(oldSelf.status.reason) && (!has(self.status.reason) || self.status.reason == oldSelf.status.reason))`,
      message: 'the outcome of a finished run cannot be changed',
    },
  ],
});
export type AgentRun = Resource<z.output<typeof AgentRunSpec>, z.output<typeof AgentRunStatus>>;
