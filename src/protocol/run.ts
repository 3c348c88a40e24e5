/**
 * The protocol between runner and gateway, version 1. All calls are POST with JSON over TLS:
 *
 *   /internal/v1/runs/{namespace}/{run}/claim    ClaimRequest  -> ClaimAnswer
 *   /internal/v1/runs/{namespace}/{run}/events   EventsRequest -> EventsAnswer   (two empty lists are a heartbeat)
 *   /internal/v1/runs/{namespace}/{run}/tool     ToolRequest   -> ToolAnswer     (src/protocol/gateway-tools.ts)
 *   /internal/v1/runs/{namespace}/{run}/finish   FinishRequest -> FinishAnswer
 *   /gateway/boxwright/v1/chat/completions       OpenAI-compatible; the run comes from the token
 *   /gateway/mcp/{server}                        MCP (src/protocol/mcp.ts)
 *
 * Every call carries `Authorization: Bearer <projected run token>`. Status codes: 200; 401 bad token; 403 token of
 * another run; 404 unknown run; 409 another pod holds the run, or the same sequence with other content; 410 the run has
 * ended; 421 with {@link Misdirected}: another gateway pod serves this run; 429/503 with Retry-After: try again.
 * Runners outlive upgrades: fields are only ever added.
 * See docs/architecture.md#run-reports-and-ownership.
 */
import { z } from 'zod';
import { Amount, Name, Text, listOf } from './sizes.js';
import { boundedRecord } from './bounded-parse.js';
import { MAX_PUBLISHED_BYTES } from './gateway-tools.js';
import { McpServer } from './mcp.js';

export const PROTOCOL_VERSION = 1;

/** Events of one report; a runner holds 64 and a few. */
const MAX_REPORT_EVENTS = 1000;

/** Header of a model's answer: what people should know of how it came, percent-encoded. It goes into the transcript. */
export const MODEL_NOTICE_HEADER = 'boxwright-notice';

/** Path of one call. */
export function runPath(namespace: string, run: string, call: 'claim' | 'events' | 'tool' | 'finish'): string {
  return `/internal/v1/runs/${namespace}/${run}/${call}`;
}

/**
 * The answer of a model in the order and with everything that its provider gave: what goes back to the same model, so that a
 * continued session begins with the same bytes. `vendor` is JSON that means something to the provider alone (signatures,
 * encrypted reasoning, ids).
 */
export const SentAnswer = z.object({
  provider: Name,
  model: Name,
  parts: listOf(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('text'), text: Text, vendor: Text.optional() }),
      z.object({ type: z.literal('reasoning'), text: Text, vendor: Text.optional() }),
      /** A call of `toolCalls`. */
      z.object({ type: z.literal('call'), id: Text, vendor: Text.optional() }),
      /** Anything else, as a whole. */
      z.object({ type: z.literal('other'), vendor: Text }),
    ]),
  ),
});
export type SentAnswer = z.output<typeof SentAnswer>;

/** A message of a conversation in our own versioned form; no AI SDK type is ever stored. */
export const TranscriptMessage = z.discriminatedUnion('role', [
  z.object({
    role: z.literal('user'),
    text: Text,
    /** What the runner said around it, as the model read it. */
    frame: z.object({ before: Text, after: Text }).optional(),
    /** The run that brought it while this one was at work. */
    steered: Name.optional(),
  }),
  z.object({
    role: z.literal('assistant'),
    text: Text,
    toolCalls: listOf(z.object({ id: Text, tool: Text, input: Text.describe('JSON') })).optional(),
    /** Absent where text and calls say it all. */
    sent: SentAnswer.optional(),
  }),
  z.object({
    role: z.literal('tool'),
    callId: Text,
    tool: Text,
    result: Text.describe('JSON'),
    isError: z.boolean(),
    /** How the model got it: as JSON when absent, as the text or the list of parts that `result` holds. */
    form: z.enum(['text', 'content']).optional(),
  }),
]);
export type TranscriptMessage = z.output<typeof TranscriptMessage>;

/** Why a run ends before its work is done: somebody must answer first. */
export const PendingRequest = z.object({
  kind: z.enum(['question', 'approval']),
  text: Text,
  choices: listOf(Text).optional(),
  /** The call of the transcript that has no result yet. */
  callId: Text,
  /** For approvals: what the agent wants to do. */
  tool: Text.optional(),
  input: Text.optional().describe('JSON'),
});
export type PendingRequest = z.output<typeof PendingRequest>;

const Subtask = z.int().min(1).optional();

/** What happened in a run. `seq` counts events from 1 without gaps. */
export const RunEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('message'), v: z.literal(1), seq: z.int(), at: Name, message: TranscriptMessage }),
  z.object({
    type: z.literal('tool'),
    seq: z.int(),
    at: Name,
    step: z.int(),
    tool: Text,
    input: Text.describe('JSON, at most 16 KiB'),
    result: Text.describe('JSON, at most 32 KiB'),
    isError: z.boolean(),
    durationMs: z.int(),
    /** Number of the subtask in its run; steps are then counted in it. Its messages are not told: they are not the run's. */
    subtask: Subtask,
  }),
  z.object({
    type: z.literal('step'),
    seq: z.int(),
    at: Name,
    step: z.int(),
    finishReason: Text,
    inputTokens: z.int(),
    /** Of the input: what the vendor read from its cache, and what it put there. */
    cacheReadTokens: z.int().optional(),
    cacheWriteTokens: z.int().optional(),
    outputTokens: z.int(),
    subtask: Subtask,
  }),
  z.object({
    type: z.literal('output'),
    seq: z.int(),
    at: Name,
    text: Text.describe('The full last message'),
  }),
  z.object({
    type: z.literal('compaction'),
    seq: z.int(),
    at: Name,
    text: Text.describe('Stands for the conversation before it, but for its newest messages'),
    kept: z.int().min(0).describe('How many of them'),
    cleared: z.int().min(0).optional().describe('How many results of tools among them are cut, the oldest first'),
  }),
  z.object({ type: z.literal('warning'), seq: z.int(), at: Name, text: Text, subtask: Subtask }),
]);
export type RunEvent = z.output<typeof RunEvent>;

export const ClaimRequest = z.object({
  protocol: z.int(),
  podUid: Name,
  /** Whether the tools of the pod have a browser; absent when that is not known. */
  hasBrowser: z.boolean().optional(),
});
export type ClaimRequest = z.output<typeof ClaimRequest>;

/** What an agent can do beyond shell and files, and what it is told about it. Absent from older gateways. */
export const Abilities = z.object({
  /** Tools of src/protocol/gateway-tools.ts that this run has. */
  tools: listOf(Text),
  /** True where calls of tools that only read, or call agents, may come beside each other. Absent from older gateways. */
  parallel: z.boolean().optional(),
  /** True where the run may start subtasks. Absent from older gateways. */
  subtasks: z.boolean().optional(),
  /** True when the run came from outside. */
  untrusted: z.boolean(),
  /** Newest notes of the agent first. */
  memories: listOf(z.object({ id: Text, text: Text, untrusted: z.boolean() })),
  skills: listOf(z.object({ slug: Text, description: Text })),
  /** Which calls wait for a person (src/protocol/approvals.ts). */
  approvals: z.object({ required: listOf(Text), always: listOf(Text) }).optional(),
});
export type Abilities = z.output<typeof Abilities>;

/** The whole input of a run: it travels here, not in env or a ConfigMap. */
export const ClaimAnswer = z.object({
  protocol: z.literal(PROTOCOL_VERSION),
  /** The fencing token of the gateway that owns the run: later calls name it; one with an older token must not serve. */
  epoch: z.int(),
  /** host:port of the gateway pod that serves this run; TLS verifies the Service's name on it. */
  gatewayAddress: Name,
  run: z.object({ namespace: Name, name: Name, sessionId: Name, origin: Name }),
  agent: z.object({
    handle: Name,
    name: Name,
    description: Text,
    soul: Text,
    tools: boundedRecord(Name, z.boolean(), 1000),
  }),
  model: z.object({
    provider: Name,
    model: Name,
    /** Path on the gateway that the provider's SDK takes as its base URL. */
    basePath: Name,
    temperature: Amount.optional(),
    /** none, low, medium or high; as the model does by itself when absent. */
    reasoning: Name.optional(),
    maxOutputTokens: z.int().optional(),
    /** A share of the window, or tokens. */
    compactAt: Amount.optional(),
    /** Tokens that the model can read; unknown when absent. */
    contextWindow: z.int().optional(),
  }),
  /** Models that the run goes on with when one does not serve, in this order. Absent from older gateways. */
  fallbacks: listOf(
    z.object({ provider: Name, model: Name, basePath: Name, contextWindow: z.int().optional() }),
  ).optional(),
  /** JSON: the JSON Schema of the last message, when there is one; a string says why it cannot be used. */
  outputSchema: Text.optional(),
  message: Text,
  /** Earlier messages of the session, oldest first. */
  history: listOf(TranscriptMessage),
  /** Texts that lie in the workspace before the first step, by their paths below it. Absent from older gateways. */
  files: listOf(z.object({ path: Name, content: Text })).optional(),
  /** The results of the call that was open, with which this run begins instead of `message`. */
  opening: listOf(TranscriptMessage).optional(),
  /** The open call, approved: it is executed before the first model call, and its result follows `opening`. */
  approved: z.object({ callId: Text, tool: Text, input: Text.describe('JSON') }).optional(),
  abilities: Abilities.optional(),
  /** MCP servers and connectors of the agent (src/protocol/mcp.ts). Absent from older gateways. */
  mcpServers: listOf(McpServer).optional(),
  /** What is not as the agent's settings say; the run records it. Absent from older gateways. */
  warnings: listOf(Text).optional(),
  /** Those of them that the agent is told as well; of what its history lacks it reads there. Absent from older gateways. */
  lacks: listOf(Text).optional(),
  limits: z.object({ stepLimit: z.int(), executionSeconds: z.int() }),
  intervals: z.object({ heartbeatSeconds: z.int(), reportSeconds: z.int() }),
});
export type ClaimAnswer = z.output<typeof ClaimAnswer>;

export const EventsRequest = z.object({
  epoch: z.int(),
  events: z.array(RunEvent).max(MAX_REPORT_EVENTS),
  /** What happened since, told at once and stored later: the same events come again in `events`. Older gateways pass it over. */
  live: z.array(RunEvent).max(MAX_REPORT_EVENTS).optional(),
});
export type EventsRequest = z.output<typeof EventsRequest>;

/** A message to a run that works. */
export const SteerMessage = z.object({
  /** The run that is done when this one takes the message. */
  run: Name,
  text: Text,
});
export type SteerMessage = z.output<typeof SteerMessage>;

export const EventsAnswer = z.object({
  /** Highest event sequence that is stored; the runner forgets events up to it. */
  ack: z.int(),
  /** True asks the runner to stop and to finish as cancelled. */
  cancel: z.boolean(),
  epoch: z.int(),
  /** What people sent to the run since, the oldest first, until an event says that the run took it. Absent from older gateways. */
  steer: listOf(SteerMessage).optional(),
  /** Highest event sequence that this gateway pod was told, stored or not. Absent from older gateways. */
  live: z.int().optional(),
});
export type EventsAnswer = z.output<typeof EventsAnswer>;

export const ToolRequest = z.object({
  epoch: z.int(),
  /** Counts the calls of the run from 1; the same number is the same call, whose answer got lost. A few may be under way. */
  call: z.int().min(1),
  tool: Text,
  input: z.unknown(),
  /** The file of publish_file, base64. */
  content: z
    .base64()
    .max(Math.ceil(MAX_PUBLISHED_BYTES / 3) * 4)
    .optional(),
});
export type ToolRequest = z.output<typeof ToolRequest>;

export const ToolAnswer = z.object({
  result: boundedRecord(Text, z.unknown(), 10_000),
  isError: z.boolean(),
  /** The call works on something that takes longer: ask again with the same number. */
  again: z.boolean().optional(),
});
export type ToolAnswer = z.output<typeof ToolAnswer>;

export const FinishRequest = z.object({
  epoch: z.int(),
  /** Events that are not acknowledged yet, in order. */
  events: z.array(RunEvent).max(MAX_REPORT_EVENTS),
  outcome: z.object({
    /** A RunReason of src/run/reasons.ts: Completed, StepLimitReached, ModelRefused, ContentFiltered, EmptyAnswer, OutputLimitReached, OutputMismatch, Cancelled, ModelNotConfigured, ModelError, DeadlineExceeded, RunnerError, Interrupted. */
    reason: Name,
    /** For errors: what happened, for a person. */
    message: Text,
    /** The last message of the agent; null when it never spoke. */
    output: Text.nullable(),
    /** With reason Completed: what the session waits for. */
    pending: PendingRequest.optional(),
    /** No call of a tool was under way; a runner of before says nothing. */
    atRest: z.boolean().optional(),
  }),
});
export type FinishRequest = z.output<typeof FinishRequest>;

export const FinishAnswer = z.object({ phase: z.enum(['done', 'error', 'cancelled']) });
export type FinishAnswer = z.output<typeof FinishAnswer>;

/** Answer 421. */
export const Misdirected = z.object({ error: Text, gatewayAddress: Name, epoch: z.int() });
export type Misdirected = z.output<typeof Misdirected>;

/**
 * The termination message (container `runner` only, at most 3 KiB of JSON): the fallback when no gateway could be
 * reached at the end. Tokens and steps in it are the runner's claim; the gateway's counts win.
 */
export const TerminationMessage = z.object({
  v: z.literal(1),
  reason: Name,
  message: Text,
  output: Text.nullable(),
  outputTruncated: z.boolean(),
  steps: z.int(),
});
export type TerminationMessage = z.output<typeof TerminationMessage>;
export const MAX_TERMINATION_MESSAGE_BYTES = 3 * 1024;
