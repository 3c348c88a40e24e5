/**
 * The agent loop behind one interface of ours: no type of a model SDK leaves its adapter (ai-sdk-engine.ts), so that
 * stored messages, the protocol and the API never depend on it.
 */
import type { z } from 'zod';
import type { OutputCheck } from '../run/output-schema.js';
import type { RunReason } from '../run/reasons.js';
import type { Picture } from '../protocol/pictures.js';
import type { TranscriptMessage } from '../protocol/run.js';
import type { StepShare } from './subtask-steps.js';

/** What a tool call came to. A tool that fails answers with `isError`, and so it may when the run is aborted: with what there is until then. */
export interface ToolResult {
  result: Record<string, unknown>;
  isError: boolean;
  /** What the model reads in place of the JSON of `result`. */
  text?: string;
  /** What a model that sees is shown beside it. */
  pictures?: Picture[] | undefined;
  /** The call waits for a person: the loop ends after this step, and the call stays without a result. */
  pause?: Pause;
}

/** What a person is asked. */
export interface Pause {
  kind: 'question' | 'approval';
  text: string;
  choices?: readonly string[];
}

/** The call that a loop ended with. */
export interface OpenCall {
  callId: string;
  tool: string;
  input: unknown;
  pause: Pause;
}

export interface EngineTool {
  name: string;
  /** The capability family (spec 2) or what else the tool belongs to. */
  family: string;
  /** The MCP server that it is of. */
  server?: string;
  description: string;
  input: z.ZodType;
  /** What the model is told of the input, as JSON Schema; that of `input` when absent. */
  schema?: Record<string, unknown>;
  /** It belongs to what another tool of its family began: an approval of the family is about that one. */
  isFollowUp?: boolean;
  /** The model is told of it only once it was found. */
  isOnDemand?: boolean;
  /** It only reads, or gives work to others: calls of such tools in one step are executed beside each other. */
  isParallel?: boolean;
  execute(input: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult>;
}

/** How much a model can be asked to think before it answers. */
export const EFFORTS = ['none', 'low', 'medium', 'high'] as const;

/** A model, and how it is asked to work. */
export interface ModelSettings {
  provider: string;
  model: string;
  temperature?: number | undefined;
  reasoning?: (typeof EFFORTS)[number] | undefined;
  /** Of one call, thoughts with them. */
  maxOutputTokens?: number | undefined;
  /** Tokens that the model can read; the conversation is compacted when it comes near, or when the provider says so. */
  contextWindow?: number | undefined;
  /** When it is compacted: a share of the window, or tokens; as compaction.ts says when absent. */
  compactAt?: number | undefined;
}

export interface EngineInput extends ModelSettings {
  /** Base URL for the SDK; requests go through the `fetch` that the engine was made with. */
  baseUrl: string;
  instructions: string;
  /** The conversation, oldest first, ending with the message to answer. */
  messages: readonly TranscriptMessage[];
  tools: readonly EngineTool[];
  /** Names of tools on demand that were found up to now, in this order. It grows while tools are executed. */
  found?: () => readonly string[];
  /** What the run goes on with when its model does not serve, in this order. */
  fallbacks?: readonly (Pick<ModelSettings, 'provider' | 'model' | 'contextWindow'> & { baseUrl: string })[];
  /** What the last message must be. */
  outputCheck?: OutputCheck;
  /** Names the session to a vendor that finds its prompt cache by a key. */
  cacheKey?: string;
  /** Asked before each step but the first. */
  steering?: SteeringSource;
  /** Steps that others use of those of this loop. */
  shared?: StepShare;
  /** Most model calls; the last one is asked for a closing message without tools. */
  stepLimit: number;
}

/** A finished tool call. `input` and `result` are plain JSON values, not cut yet. */
export interface ToolRecord {
  step: number;
  tool: string;
  input: unknown;
  result: unknown;
  isError: boolean;
  durationMs: number;
}

export interface StepRecord {
  step: number;
  finishReason: string;
  inputTokens: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  outputTokens: number;
}

/**
 * Told while the loop works; each is awaited, which is how a full report buffer slows the loop down. A tool call is told
 * when it ends, its messages and the step when the step ends: what was told before a failure is not lost.
 */
export interface EngineHooks {
  onTool(record: ToolRecord): Promise<void>;
  onMessage(message: TranscriptMessage): Promise<void>;
  onStep(record: StepRecord): Promise<void>;
  onWarning(text: string): Promise<void>;
  /** `text` has taken the place of all but the last `kept` messages, of which the oldest `cleared` results are cut. */
  onCompaction(compaction: { text: string; kept: number; cleared?: number }): Promise<void>;
}

export interface EngineOutcome {
  /** `Aborted` when the signal fired; the caller knows why. */
  reason:
    | Extract<
        RunReason,
        | 'Completed'
        | 'StepLimitReached'
        | 'ModelRefused'
        | 'ContentFiltered'
        | 'EmptyAnswer'
        | 'OutputLimitReached'
        | 'OutputMismatch'
        | 'ModelError'
        | 'ModelNotConfigured'
        | 'ModelUnpriced'
        | 'ReplayFailed'
        | 'BudgetExhausted'
      >
    | 'Aborted';
  /** For errors: what happened, for a person. */
  message: string;
  /** The last text that the model wrote; null when it never spoke. */
  output: string | null;
  /** Model calls that were answered. */
  steps: number;
  /** With `Completed`: the call that waits for a person. */
  open?: OpenCall;
  /** With `Aborted`: no call of a tool was cut. */
  atRest?: boolean;
}

/** Messages of people to a run at work. */
export interface SteeringSource {
  /** Asks what came; true when there is something to take. */
  hear(): Promise<boolean>;
  take(): TranscriptMessage[];
}

export interface Engine {
  /** Runs the loop to its end. Never rejects for what a model, a tool or an abort does. */
  run(input: EngineInput, hooks: EngineHooks, signal: AbortSignal): Promise<EngineOutcome>;
}
