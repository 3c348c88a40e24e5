/** One claimed run from its first model call to the hand-over of its outcome. Every way to stop it is decided here. */
import { createHash } from 'node:crypto';
import type { ClaimAnswer, FinishRequest } from '../protocol/run.js';
import { outcomeOf, phaseOf } from '../run/outcome.js';
import type { Surroundings } from '../protocol/surroundings.js';
import { OutputSchemaError } from '../run/output-schema.js';
import type { OutputCheck } from '../run/output-schema.js';
import type { RunReason } from '../run/reasons.js';
import type { Clock } from '../runtime/clock.js';
import { cutJson } from '../runtime/cut-json.js';
import { cutMiddle, cutUtf8 } from '../runtime/text.js';
import { podTools } from './pod-tools.js';
import { gated } from './approvals.js';
import { EFFORTS } from './engine.js';
import type { Engine, EngineHooks, EngineOutcome, EngineTool, ModelSettings } from './engine.js';
import { gatewayTools } from './gateway-tools.js';
import { composeInstructions } from './instructions.js';
import type { Journal } from './journal.js';
import { errorKind } from './log.js';
import type { RunnerLog } from './log.js';
import { layRunFiles } from './run-files.js';
import { Reporter } from './reporter.js';
import type { ConnectedServers } from './mcp/servers.js';
import { openConversation } from './opening.js';
import { boundedOutputCheck } from './output-check.js';
import { pendingOf } from './pending.js';
import { MAX_STORED_INPUT_BYTES, MAX_STORED_RESULT_BYTES } from './results.js';
import { RunRefused } from './run-gateway.js';
import type { RunGateway } from './run-gateway.js';
import { Steering } from './steering.js';
import { framedMessage, noteOfRun } from './run-context.js';
import { renderTermination } from './termination.js';
import type { ToolsClient } from './tools-client.js';
import { SubtaskSteps } from './subtask-steps.js';
import { RUN_SUBTASK, subtaskTool } from './subtasks.js';
import { selectTools } from './tool-search.js';
import { OFFER_SECONDS, offers } from './tools-offer.js';
import type { OfferedTools } from './tools-offer.js';

/** Longest text of one event that is reported: three times this stays below one report. */
const MAX_TEXT_BYTES = 200 * 1024;
/** A message is stored as it was sent; a larger one has its texts cut, and fits a report all the same. */
const MAX_MESSAGE_BYTES = 512 * 1024;
const MAX_OUTCOME_MESSAGE_BYTES = 1000;
/** Trying to hand the outcome over ends this long before the deadline of the run, but lasts at least the floor. */
const DEADLINE_MARGIN_MS = 30_000;
const FINISH_FLOOR_MS = 60_000;
/** After SIGTERM the pod has 30 s; what is not handed over by then goes into the termination message. */
const TERMINATE_MS = 20_000;
/** At the end there is no loop to slow down: what is not acknowledged goes with the outcome, which has a bound. */
const NO_WAIT = AbortSignal.abort();

export interface ExecuteDeps {
  gateway: Pick<RunGateway, 'events' | 'tool' | 'finish' | 'mcpFetch'>;
  engine: Engine;
  tools: ToolsClient;
  /** Socket of the tools container. */
  toolsSocket: string;
  /** What the Job says of the pod; undefined when it does not. */
  surroundings?: Surroundings | undefined;
  /** What the tools container answered. */
  offered: OfferedTools | 'silent';
  journal: Journal;
  /** Base URL of the model for the engine. */
  baseUrl: string;
  /** The termination message of the container. */
  writeTermination: (text: string) => Promise<void>;
  /** Fires when the pod is told to stop. */
  terminate: AbortSignal;
  clock: Clock;
  log: RunnerLog;
}

/** `refused`: the run is over or another pod's. `lost`: not even the termination message could be written. */
export type RunEnd = 'finished' | 'refused' | 'termination-message' | 'lost';

type StopReason = Extract<RunReason, 'Cancelled' | 'DeadlineExceeded' | 'Interrupted' | 'RunnerError'> | 'Refused';

interface Stop {
  reason: StopReason;
  message: string;
}

const STOPS: Record<StopReason, string> = {
  Cancelled: outcomeOf('Cancelled', 'The run was cancelled.').message,
  DeadlineExceeded: outcomeOf('DeadlineExceeded', 'The run took longer than its limit.').message,
  Interrupted: outcomeOf('Interrupted').message,
  RunnerError: 'The gateway did not accept a report of the runner.',
  Refused: 'The gateway refused the runner.',
};

const NO_TOOLS =
  `Container tools did not answer within ${OFFER_SECONDS} s. Its image, spec.image of the Box, must be made from the image ` +
  'boxwright-tools.';

/** Executes the run and hands its outcome over. Never rejects. */
export async function executeRun(claim: ClaimAnswer, deps: ExecuteDeps): Promise<RunEnd> {
  const { clock } = deps;
  const deadline = clock.monotonic() + claim.limits.executionSeconds * 1000;
  const stop = new AbortController();
  /** The first reason wins. */
  const stopFor = (reason: StopReason) => stop.abort({ reason, message: STOPS[reason] } satisfies Stop);
  const hard = new AbortController();
  const cancelTimers = [clock.after(claim.limits.executionSeconds * 1000, () => stopFor('DeadlineExceeded'))];
  const onTerminate = () => {
    stopFor('Interrupted');
    cancelTimers.push(clock.after(TERMINATE_MS, () => hard.abort()));
  };
  if (deps.terminate.aborted) onTerminate();
  else deps.terminate.addEventListener('abort', onTerminate, { once: true });

  const steering = new Steering();
  const reporter = new Reporter({
    gateway: deps.gateway,
    journal: deps.journal,
    clock,
    intervals: claim.intervals,
    onSteer: (messages) => steering.add(messages),
    onCancel: () => stopFor('Cancelled'),
    onFailed: (error) => {
      deps.log.error({ failure: errorKind(error) }, 'a report was not accepted');
      stopFor(error instanceof RunRefused ? 'Refused' : 'RunnerError');
    },
  });
  reporter.start();
  try {
    const result = await work(claim, { deps, reporter, steering, signal: stop.signal });
    const stopped = stop.signal.aborted ? (stop.signal.reason as Stop) : undefined;
    if (stopped?.reason === 'Refused') {
      await reporter.close();
      return 'refused';
    }
    const outcome = settle(result, stopped);
    if (outcome.output !== null) await reporter.record({ type: 'output', text: outcome.output }, NO_WAIT);
    const giveUpAt = Math.max(deadline - DEADLINE_MARGIN_MS, clock.monotonic() + FINISH_FLOOR_MS);
    return await handOver({ outcome, steps: result.steps, giveUpAt, reporter, deps, signal: hard.signal });
  } finally {
    deps.terminate.removeEventListener('abort', onTerminate);
    for (const cancel of cancelTimers) cancel();
  }
}

interface WorkContext {
  deps: ExecuteDeps;
  reporter: Reporter;
  steering: Steering;
  signal: AbortSignal;
}

async function work(claim: ClaimAnswer, { deps, reporter, steering, signal }: WorkContext): Promise<EngineOutcome> {
  const { offered, surroundings } = deps;
  if (offered === 'silent') return { reason: 'Aborted', message: NO_TOOLS, output: null, steps: 0, atRest: true };
  const outputCheck = outputCheckIn(claim);
  if (typeof outputCheck === 'object') return outputCheck;
  const lacking = await layRunFiles(claim.files ?? [], { tools: deps.tools, signal });
  if (lacking !== undefined) return { reason: 'Aborted', message: lacking, output: null, steps: 0 };
  const hooks = recordingHooks(reporter, signal);
  let servers = NO_SERVERS;
  try {
    servers = await mcpServersOf(claim, deps, signal);
    for (const text of [...(claim.warnings ?? []), ...servers.warnings]) await hooks.onWarning(text);
    const told = { lacks: [...(claim.lacks ?? []), ...servers.warnings], budgetLeft: surroundings?.budgetLeft };
    const alone = [
      ...podTools(claim.agent.tools, { client: deps.tools, offered, egress: surroundings?.egress }),
      ...gatewayTools(claim.abilities, { ...deps, ...fileToolsOf(claim, deps) }),
      // In an order of our own: servers may list theirs in another one each time.
      ...servers.tools.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    ];
    const { own, shared } = withSubtasks(claim, alone, { deps, reporter, signal });
    const begun =
      claim.opening === undefined
        ? { ...claim, opening: [framedMessage(claim, told)] }
        : { ...claim, note: noteOfRun({ ...told, lostFiles: surroundings?.filesStay === false }) };
    const opening = await openConversation(begun, { tools: own, hooks, clock: deps.clock, signal });
    const messages = [...claim.history, ...opening];
    const { tools, found } = selectTools(
      own.map((tool) => gated(tool, claim.abilities?.approvals, surroundings)),
      messages,
    );
    return await deps.engine.run(
      {
        ...commonOf(claim, deps),
        ...(outputCheck === undefined ? {} : { outputCheck }),
        fallbacks: fallbacksOf(claim, deps),
        instructions: composeInstructions(claim, tools, { ...surroundings, now: deps.clock.now() }),
        messages,
        tools,
        ...(found === undefined ? {} : { found }),
        steering: steering.heardBy(reporter),
        stepLimit: claim.limits.stepLimit,
        ...(shared === undefined ? {} : { shared }),
      },
      hooks,
      signal,
    );
  } catch (error) {
    deps.log.error({ failure: errorKind(error) }, 'the agent loop failed');
    const message = error instanceof Error ? error.message : 'The agent loop failed.';
    return { reason: 'Aborted', message, output: null, steps: 0 };
  } finally {
    await servers.close();
  }
}

/** What the loop of a run and those of its subtasks have in common. */
function commonOf(claim: ClaimAnswer, { baseUrl }: Pick<ExecuteDeps, 'baseUrl'>) {
  return { ...modelOf(claim), baseUrl, cacheKey: cacheKeyOf(claim) };
}

function fallbacksOf({ fallbacks = [] }: ClaimAnswer, { baseUrl }: Pick<ExecuteDeps, 'baseUrl'>) {
  return fallbacks.map(({ basePath, ...model }) => ({ ...model, baseUrl: new URL(basePath, baseUrl).href }));
}

/** The tools of the run, with the one that starts subtasks where the run may do so. */
function withSubtasks(
  claim: ClaimAnswer,
  tools: readonly EngineTool[],
  { deps, reporter, signal }: Omit<WorkContext, 'steering'>,
): { own: EngineTool[]; shared?: SubtaskSteps } {
  const { abilities, limits, outputSchema: _ofRun, ...about } = claim;
  if (abilities?.subtasks !== true || limits.stepLimit < LEAST_STEPS_TO_SHARE) return { own: [...tools] };
  const shared = new SubtaskSteps(RUN_SUBTASK, limits.stepLimit - 1);
  const tool = subtaskTool({
    engine: deps.engine,
    common: commonOf(claim, deps),
    fallbacks: fallbacksOf(claim, deps),
    tools,
    policy: abilities.approvals,
    steps: shared,
    instructions: (stepLimit, chosen) => {
      const around = { ...deps.surroundings, now: deps.clock.now(), isSubtask: true };
      return composeInstructions({ ...about, abilities, limits: { ...limits, stepLimit } }, chosen, around);
    },
    hooks: (subtask) => subtaskHooks(reporter, signal, subtask),
  });
  return { own: [...tools, tool], shared };
}

/** One to ask for it, one for it, and one to close with. */
const LEAST_STEPS_TO_SHARE = 3;

/** The model and what the agent says of how it works. */
function modelOf({ model: { basePath: _path, reasoning, ...model } }: ClaimAnswer): ModelSettings {
  // A gateway that is newer than this image may know other words.
  const effort = EFFORTS.find((known) => known === reasoning);
  return effort === undefined ? model : { ...model, reasoning: effort };
}

/** What the last message must be. A schema that cannot be used ends the run before it costs anything. */
function outputCheckIn({ outputSchema }: ClaimAnswer): OutputCheck | EngineOutcome | undefined {
  if (outputSchema === undefined) return undefined;
  try {
    const schema: unknown = JSON.parse(outputSchema);
    if (typeof schema === 'string') throw new OutputSchemaError(schema);
    return boundedOutputCheck(schema as Record<string, unknown>);
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it is no schema';
    const what = `spec.outputSchema of the agent cannot be used: ${why}.`;
    return { reason: 'OutputMismatch', message: outcomeOf('OutputMismatch', what).message, output: null, steps: 0 };
  }
}

/** The same for all runs of a session, and says nothing about it. */
function cacheKeyOf({ run }: ClaimAnswer): string {
  return createHash('sha256').update(`${run.namespace}/${run.sessionId}`).digest('hex').slice(0, 32);
}

const NO_SERVERS: ConnectedServers = { tools: [], warnings: [], close: () => Promise.resolve() };

/** What tools of the gateway do with files of the workspace, as far as the image of the tools can. */
function fileToolsOf(claim: ClaimAnswer, deps: ExecuteDeps) {
  const publishing = offers(deps.offered, 'read_bytes') === true ? deps.tools : undefined;
  return { skillFiles: skillFilesOf(claim, deps), publishing };
}

/** Files of skills lie where a tool of the agent can reach them, and where the image can write them. */
function skillFilesOf({ agent }: ClaimAnswer, { tools, offered }: ExecuteDeps): ToolsClient | undefined {
  const isReached = agent.tools['shell'] !== false || agent.tools['files'] !== false;
  return isReached && offers(offered, 'put_skill_file') === true ? tools : undefined;
}

/** Their client is loaded only by runs that have servers: the others start without it. */
async function mcpServersOf(claim: ClaimAnswer, deps: ExecuteDeps, signal: AbortSignal): Promise<ConnectedServers> {
  const { mcpServers = [] } = claim;
  if (mcpServers.length === 0) return NO_SERVERS;
  const { connectServers } = await import('./mcp/servers.js');
  const { gateway, baseUrl, toolsSocket, clock, log } = deps;
  const { name: run } = claim.run;
  const ways = { fetch: gateway.mcpFetch, gatewayUrl: baseUrl, toolsSocket, run };
  return connectServers(mcpServers, { ...ways, clock, log }, signal);
}

/** What the engine tells, as events within the limits of what is stored. */
function recordingHooks(reporter: Reporter, signal: AbortSignal): EngineHooks {
  return {
    ...markedHooks(reporter, signal),
    onMessage: (message) => reporter.record({ type: 'message', v: 1, message: cutMessage(message) }, signal),
    onCompaction: ({ text, ...counts }) =>
      reporter.record({ type: 'compaction', text: cutMiddle(text, MAX_TEXT_BYTES), ...counts }, signal),
  };
}

/** The same of a subtask: its messages are not those of the session. */
function subtaskHooks(reporter: Reporter, signal: AbortSignal, subtask: number): EngineHooks {
  return {
    ...markedHooks(reporter, signal, { subtask }),
    onMessage: () => Promise.resolve(),
    onCompaction: () => Promise.resolve(),
  };
}

function markedHooks(
  reporter: Reporter,
  signal: AbortSignal,
  mark: { subtask?: number } = {},
): Pick<EngineHooks, 'onTool' | 'onStep' | 'onWarning'> {
  return {
    onTool: ({ input, result, ...record }) =>
      reporter.record(
        {
          type: 'tool',
          ...mark,
          ...record,
          input: cutJson(input, MAX_STORED_INPUT_BYTES),
          result: cutJson(result, MAX_STORED_RESULT_BYTES),
        },
        signal,
      ),
    onStep: (record) => reporter.record({ type: 'step', ...mark, ...record }, signal),
    onWarning: (text) => reporter.record({ type: 'warning', ...mark, text }, signal),
  };
}

type Message = Parameters<EngineHooks['onMessage']>[0];

function cutMessage(message: Message): Message {
  if (message.role === 'user' || Buffer.byteLength(JSON.stringify(message)) <= MAX_MESSAGE_BYTES) return message;
  if (message.role === 'tool') return { ...message, result: cutStored(message.result, MAX_TEXT_BYTES) };
  const { sent: _sent, toolCalls, ...rest } = message;
  const limit = Math.floor(MAX_TEXT_BYTES / Math.max(1, toolCalls?.length ?? 0));
  const short = toolCalls?.map((call) => ({ ...call, input: cutStored(call.input, Math.max(1024, limit)) }));
  const text = cutMiddle(message.text, MAX_TEXT_BYTES);
  return { ...rest, text, ...(short === undefined ? {} : { toolCalls: short }) };
}

function cutStored(json: string, maxBytes: number): string {
  return Buffer.byteLength(json) <= maxBytes ? json : cutJson(JSON.parse(json), maxBytes);
}

/** What the run came to: an engine that ended by itself wins over a stop that came while it ended. */
function settle(result: EngineOutcome, stopped: Stop | undefined): FinishRequest['outcome'] {
  const output = result.output === null ? null : cutMiddle(result.output, MAX_TEXT_BYTES);
  if (result.reason !== 'Aborted') {
    const message = cutUtf8(result.message, MAX_OUTCOME_MESSAGE_BYTES);
    const pending = result.open === undefined ? {} : { pending: pendingOf(result.open) };
    const atRest = phaseOf(result.reason) === 'error' ? { atRest: true } : {};
    return { reason: result.reason, message, output, ...pending, ...atRest };
  }
  const atRest = result.atRest === true ? { atRest: true } : {};
  if (stopped !== undefined) return { ...stopped, output, ...atRest };
  return { reason: 'RunnerError', message: cutUtf8(result.message, MAX_OUTCOME_MESSAGE_BYTES), output, ...atRest };
}

interface HandOver {
  outcome: FinishRequest['outcome'];
  steps: number;
  giveUpAt: number;
  reporter: Reporter;
  deps: ExecuteDeps;
  signal: AbortSignal;
}

async function handOver({ outcome, steps, giveUpAt, reporter, deps, signal }: HandOver): Promise<RunEnd> {
  try {
    await reporter.finish(outcome, signal, giveUpAt);
    return 'finished';
  } catch (error) {
    if (error instanceof RunRefused) return 'refused';
    deps.log.error({ failure: errorKind(error) }, 'no gateway took the outcome; it goes into the termination message');
  }
  try {
    await deps.writeTermination(renderTermination(outcome, steps));
    return 'termination-message';
  } catch (error) {
    deps.log.error({ failure: errorKind(error) }, 'the termination message cannot be written');
    return 'lost';
  }
}
