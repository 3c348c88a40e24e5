import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { OutputSchema } from './agent.js';
import { RunModel, RunRecording } from './agent-run.js';
import { Conditions, Timestamp } from './common.js';

/** Cases x models of one AgentEval. */
export const MAX_EVAL_RESULTS = 100;
/** Failed assertions that a result shows, and bytes of what was seen instead. */
export const MAX_EVAL_FAILURES = 8;
export const MAX_EVAL_SEEN_BYTES = 512;
/** Files of one case, and bytes of one. */
const MAX_EVAL_FILES = 32;
export const MAX_EVAL_FILE_BYTES = 64 * 1024;
/** Bytes of the whole spec: with its results an object stays far below what etcd takes. */
export const MAX_EVAL_SPEC_BYTES = 256 * 1024;

const EvalText = z.string().min(1).max(2048);
const ToolName = z.string().min(1).max(128);

/** One expectation; exactly one field is set. */
export const EvalAssertion = z
  .object({
    contains: EvalText.optional().describe('Text that the last message contains.'),
    equals: EvalText.optional().describe('Text that the last message is, apart from space around it.'),
    matches: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe('Regular expression in the syntax of RE2 that the last message has a match for.'),
    jsonSchema: OutputSchema.optional().describe(
      'JSON Schema (an object, at most 4 KiB) that the last message fits; a fence of Markdown around the JSON is left out.',
    ),
    toolCalled: ToolName.optional().describe('Name of a tool that the run has called.'),
    toolNotCalled: ToolName.optional().describe('Name of a tool that the run has not called.'),
    costBelow: z
      .string()
      .max(24)
      .regex(/^\d{1,9}(\.\d{1,6})?$/)
      .optional()
      .describe('US dollars that the run costs less than, for example "0.05"; an unknown cost fails.'),
    stepsBelow: z.int().min(1).max(1000).optional().describe('Number of steps that the run takes less than.'),
  })
  .describe('One expectation: exactly one of these fields.');
export type EvalAssertion = z.output<typeof EvalAssertion>;

export const EvalJudge = z
  .object({
    agent: z.string().min(1).max(36).describe('The Agent of this namespace that judges, best one without tools.'),
    model: RunModel.optional().describe('Model that judges instead of the one of that agent.'),
    rubric: z.string().min(1).max(8192).describe('What makes an answer a good one, for the judge.'),
  })
  .describe('Lets another run judge the answer, after all assertions have held.');

export const EvalFile = z
  .object({
    path: z
      .string()
      .min(1)
      .max(256)
      .regex(/^[^/]+(\/[^/]+)*$/)
      .describe('Path below /workspace, without . and .. in it.'),
    content: z.string().max(MAX_EVAL_FILE_BYTES).describe('Text of the file; at most 64 KiB in UTF-8.'),
  })
  .describe('A text file of the workspace.');
export type EvalFile = z.output<typeof EvalFile>;

export const EvalCase = z
  .object({
    name: z
      .string()
      .min(1)
      .max(36)
      .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
      .describe('Name of the case: a-z, 0-9 and inner hyphens.'),
    message: z.string().min(1).max(16_384).describe('What the agent is told.'),
    files: z
      .array(EvalFile)
      .max(MAX_EVAL_FILES)
      .optional()
      .describe('Files that lie in the workspace before the first step.'),
    assertions: z.array(EvalAssertion).max(8).default([]).describe('What must hold when the run has ended.'),
    judge: EvalJudge.optional(),
    recording: RunRecording.optional().describe('A recorded run that answers in the place of the model.'),
  })
  .describe('One message to the agent, and what is expected of its run.');
export type EvalCase = z.output<typeof EvalCase>;

export const AgentEvalSpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that is evaluated.'),
  cases: z.array(EvalCase).min(1).max(50).describe('The cases, each with a session of its own.'),
  models: z
    .array(RunModel)
    .max(8)
    .optional()
    .describe('Models that run every case instead of the one of the agent: at most 100 runs in all.'),
  parallelism: z.int().min(1).max(20).default(4).describe('Cases that are under way at the same time.'),
  round: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Raise it to run all cases again. Any other change of the spec does so as well.'),
});

export const EVAL_PHASES = ['pending', 'running', 'judging', 'passed', 'failed'] as const;

export const EvalResult = z
  .object({
    case: z.string().max(36).describe('Name of the case in the spec.'),
    model: z.string().max(160).optional().describe('Model of spec.models, as provider/name or name.'),
    phase: z.enum(EVAL_PHASES).describe('pending, running, judging, passed or failed.'),
    run: z.string().max(63).optional().describe('Name of the AgentRun of the case.'),
    judgeRun: z.string().max(63).optional().describe('Name of the AgentRun that judges its answer.'),
    failures: z
      .array(
        z
          .object({
            assertion: z.string().max(256).describe('The assertion, or what else was expected.'),
            seen: z.string().max(MAX_EVAL_SEEN_BYTES).describe('What was seen instead, cut at 512 bytes.'),
          })
          .describe('An expectation that did not hold.'),
      )
      .max(MAX_EVAL_FAILURES)
      .optional()
      .describe('What did not hold; absent for a case that passed.'),
    verdict: z.string().max(MAX_EVAL_SEEN_BYTES).optional().describe('What the judge answered, cut at 512 bytes.'),
    costUsd: z.string().max(24).optional().describe('Known cost of its runs in US dollars, the judge included.'),
    steps: z.int().min(0).optional().describe('Model calls of its run.'),
    totalTokens: z.int().min(0).optional().describe('Input and output tokens of its run.'),
    seconds: z.number().min(0).max(1e9).optional().describe('Time from acceptance to end of its run.'),
  })
  .describe('What became of one case with one model.');
export type EvalResult = z.output<typeof EvalResult>;

export const AgentEvalStatus = z.object({
  conditions: Conditions,
  generation: z.int().min(0).optional().describe('The metadata.generation that the results are about.'),
  content: z
    .string()
    .max(64)
    .optional()
    .describe('SHA-256 of settings and skills of the agent; absent when they changed while the cases ran.'),
  phase: z.enum(['running', 'passed', 'failed']).optional().describe('running, passed or failed: all cases together.'),
  total: z.int().min(0).optional().describe('Number of cases times number of models.'),
  passed: z.int().min(0).optional().describe('How many of them passed.'),
  failed: z.int().min(0).optional().describe('How many of them failed.'),
  costUsd: z.string().max(24).optional().describe('Known cost of all runs in US dollars, judges included.'),
  startedAt: Timestamp.optional().describe('When the first run of these results became due.'),
  finishedAt: Timestamp.optional().describe('When the last of these results was there.'),
  results: z.array(EvalResult).max(MAX_EVAL_RESULTS).optional().describe('Each case with each model, in their order.'),
});

const KINDS_OF_ASSERTION = Object.keys(EvalAssertion.shape);
const setFields = KINDS_OF_ASSERTION.map((field) => `(has(a.${field}) ? 1 : 0)`).join(' + ');

/** Runs an agent on cases and checks what it does. */
export const AgentEvals = defineResource({
  kind: 'AgentEval',
  plural: 'agentevals',
  shortNames: ['aeval'],
  namespaced: true,
  description: 'Runs an agent on cases, optionally with several models, and checks what it answers and does.',
  spec: AgentEvalSpec,
  status: AgentEvalStatus,
  columns: [
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent that is evaluated.' },
    { name: 'Status', jsonPath: '.status.phase', type: 'string', description: 'running, passed or failed.' },
    { name: 'Passed', jsonPath: '.status.passed', type: 'integer', description: 'Cases that passed.' },
    { name: 'Failed', jsonPath: '.status.failed', type: 'integer', description: 'Cases that failed.' },
    { name: 'Total', jsonPath: '.status.total', type: 'integer', description: 'Cases times models.' },
    { name: 'Cost', jsonPath: '.status.costUsd', type: 'string', description: 'Known cost in US dollars.' },
    AGE_COLUMN,
  ],
  rules: [
    dnsLabelName('AgentEval', 36),
    {
      rule: 'self.spec.cases.all(c, self.spec.cases.exists_one(d, d.name == c.name))',
      message: 'spec.cases has two cases of the same name',
      fieldPath: '.spec.cases',
    },
    {
      rule: 'self.spec.cases.all(c, has(c.judge) || (has(c.assertions) && size(c.assertions) > 0))',
      message: 'each case of spec.cases needs an assertion or a judge',
      fieldPath: '.spec.cases',
    },
    {
      rule: `self.spec.cases.all(c, !has(c.assertions) || c.assertions.all(a, ${setFields} == 1))`,
      message: `each assertion has exactly one of ${KINDS_OF_ASSERTION.join(', ')}`,
      fieldPath: '.spec.cases',
    },
    {
      rule: `!has(self.spec.models) || size(self.spec.models) == 0 || size(self.spec.cases) * size(self.spec.models) <= ${MAX_EVAL_RESULTS}`,
      message: `spec.cases times spec.models is at most ${MAX_EVAL_RESULTS}`,
      fieldPath: '.spec.models',
    },
    {
      rule: '!has(self.spec.models) || size(self.spec.models) == 0 || self.spec.cases.all(c, !has(c.recording))',
      message: 'a case with a recording has the answers of one model: leave out spec.models',
      fieldPath: '.spec.models',
    },
    {
      rule: '!has(self.spec.models) || self.spec.models.all(m, self.spec.models.exists_one(n, n.name == m.name && has(n.provider) == has(m.provider) && (!has(m.provider) || n.provider == m.provider)))',
      message: 'spec.models has the same model twice',
      fieldPath: '.spec.models',
    },
  ],
});
export type AgentEval = Resource<z.output<typeof AgentEvalSpec>, z.output<typeof AgentEvalStatus>>;
