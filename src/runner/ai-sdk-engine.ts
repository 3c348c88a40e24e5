/** The only file that knows the AI SDK: our {@link Engine} on `generateText`; model-provider.ts makes its models. */
import { APICallError, asSchema, generateText, jsonSchema, tool, ToolChoiceViolationError } from 'ai';
import { z } from 'zod';
import type { CallWarning, ContentPart, LanguageModelUsage, ModelMessage, ToolSet } from 'ai';
import { fitInput } from '../protocol/fit-input.js';
import { MODEL_NOTICE_HEADER } from '../protocol/run.js';
import type {
  Engine,
  EngineHooks,
  EngineInput,
  EngineOutcome,
  EngineTool,
  OpenCall,
  StepRecord,
  ToolRecord,
  ToolResult,
} from './engine.js';
import {
  answerWithCalls,
  forAnotherModel,
  messagesOfStep,
  resultOf,
  toModelMessages,
  type Recipient,
} from './conversation.js';
import { outcomeOf } from '../run/outcome.js';
import type { OutputCheck } from '../run/output-schema.js';
import type { TranscriptMessage } from '../protocol/run.js';
import { compactionWindow } from './compaction.js';
import { systemClock, type Clock } from '../runtime/clock.js';
import { CallOrder } from './call-order.js';
import { Context, type ContextOptions } from './context.js';
import { withOwnCallIds } from './call-ids.js';
import { parseJson } from './gateway-client.js';
import { PictureShow } from './pictures.js';
import { languageModel, optionsFor } from './model-provider.js';
import { failed, withNotes } from './results.js';
import { CACHE_MARK, markedMessages } from './prompt-cache.js';
import { LAST_STEP } from './run-context.js';

// Warnings are told as events of the run; the SDK would print them into the log of the pod.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** An engine whose requests all go through `fetch`, which adds the token, tries again and follows the gateway. */
export function createAiSdkEngine(
  fetch: typeof globalThis.fetch,
  clock: Pick<Clock, 'monotonic'> = systemClock,
): Engine {
  return {
    async run(input, hooks, signal) {
      const loop = new Loop(hooks, input, clock);
      try {
        await generate(input, { loop, fetch: until(signal, fetch), signal });
        if (signal.aborted) return loop.aborted();
        return loop.outcome(input.stepLimit);
      } catch (error) {
        if (signal.aborted) return loop.aborted();
        // The model wanted tools in the last step, in which it had none: that is the limit, and no failure of the model.
        if (ToolChoiceViolationError.isInstance(error)) {
          loop.hear(error.content.map((part) => (part.type === 'text' ? part.text : '')).join(''));
          return loop.limited(input.stepLimit);
        }
        return { ...describeFailure(error), output: loop.output, steps: loop.steps };
      }
    },
  };
}

/**
 * Ends calls of the model at once. The SDK itself is not told of the signal: it would drop the step under way, with what its
 * tools came to before they were stopped.
 */
function until(stopped: AbortSignal, fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (url, init) => {
    const { signal } = init ?? {};
    return fetch(url, { ...init, signal: signal ? AbortSignal.any([signal, stopped]) : stopped });
  };
}

interface GenerateContext {
  loop: Loop;
  fetch: typeof globalThis.fetch;
  signal: AbortSignal;
}

/** What all calls of the model have in common. */
async function settingsOf(input: EngineInput, fetch: typeof globalThis.fetch) {
  const { provider, model: name, baseUrl, temperature, reasoning, maxOutputTokens } = input;
  return {
    model: withOwnCallIds(await languageModel({ provider, model: name, baseUrl, fetch })),
    providerOptions: optionsFor(input.cacheKey),
    ...(temperature === undefined ? {} : { temperature }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    // Trying again is the business of `fetch`, which knows the gateway.
    maxRetries: 0,
  };
}

function systemOf({ instructions: content }: EngineInput) {
  return { role: 'system' as const, content, providerOptions: CACHE_MARK };
}

/** What the conversation goes on with: what people sent, or a note to the model; undefined when the loop is over. */
async function moreAfter(
  step: Parameters<typeof saidIn>[0],
  { loop, input, signal }: { loop: Loop; input: EngineInput; signal: AbortSignal },
): Promise<ModelMessage[] | undefined> {
  const steered = await loop.steered(signal);
  if (steered.length > 0) return [...step.response.messages, ...toModelMessages(steered, input)];
  const note = signal.aborted ? undefined : await loop.noteAfter(input.stepLimit);
  return note === undefined ? undefined : [...saidIn(step), ...toModelMessages([note], input)];
}

/** The last answer, which may be none. */
function saidIn({ text, response }: Pick<StepEnd, 'text' | 'response'>): readonly ModelMessage[] {
  return text === '' ? [] : response.messages;
}

async function generate(input: EngineInput, { loop, fetch, signal }: GenerateContext) {
  const { stepLimit } = input;
  const tools = toolSetOf(input, loop, signal);
  let settings = await settingsOf(input, fetch);
  const context = loop.contextOf(input, (messages, as) =>
    as === 'prompt'
      ? generateText({ ...settings, messages })
      : generateText({
          ...settings,
          instructions: systemOf(input),
          messages: markedMessages(loop.pictures.bounded(messages)),
          ...withoutExecution(tools, input),
        }),
  );
  let messages = toModelMessages(input.messages, input);
  const left = [...(input.fallbacks ?? [])];
  const toTheEnd = () =>
    generateText({
      ...settings,
      instructions: systemOf(input),
      messages,
      tools,
      toolCallConcurrency: MAX_PARALLEL_CALLS,
      stopWhen: [() => loop.isOver(signal), () => loop.isSteered(signal)],
      // Without tools the model closes with a message; else a run at its limit would end without a word.
      prepareStep: async ({ messages: sent }) => {
        const shorter = await context.before(sent);
        const isLast = loop.steps === stepLimit - 1;
        const notes = isLast && stepLimit > 1 ? toModelMessages([await loop.lastStep()], input) : [];
        messages = markedMessages([...loop.pictures.bounded(shorter ?? sent), ...notes]);
        return { ...(isLast ? { toolChoice: 'none' as const } : {}), ...toldOf(input), messages };
      },
      onLanguageModelCallEnd: ({ content }) => loop.onAnswer(content, stepLimit),
      onToolExecutionEnd: (event) => loop.onToolEnd(event),
      onStepEnd: async (step) => {
        context.answered(step.usage);
        await loop.onStepEnd(step);
      },
    });
  for (;;) {
    try {
      const { finalStep } = await toTheEnd();
      const more = await moreAfter(finalStep, { loop, input, signal });
      if (more === undefined) return;
      messages = [...messages, ...more];
    } catch (error) {
      if (signal.aborted) throw error;
      const next = isNotServed(error) ? left.shift() : undefined;
      if (next !== undefined) {
        await loop.goOnWith(next, error);
        context.reset(compactionWindow(next.contextWindow, input.compactAt));
        settings = await settingsOf({ ...input, ...next }, fetch);
        messages = forAnotherModel(messages);
        continue;
      }
      const shorter = (await context.refused(error)) ?? (await loop.withoutPictures(error, messages));
      if (shorter === undefined) throw error;
      messages = shorter;
    }
  }
}

/** All tools; the last that the model is told of from the beginning carries the mark up to which a provider caches them. */
function toolSetOf({ tools }: EngineInput, loop: Loop, signal: AbortSignal) {
  const last = tools.findLastIndex(({ isOnDemand }) => isOnDemand !== true);
  return Object.fromEntries(
    tools.map((definition, index) => [
      definition.name,
      {
        ...toSdkTool(definition, loop, signal),
        ...(index === last ? { providerOptions: CACHE_MARK } : {}),
      },
    ]),
  );
}

/** Which tools the model is told of now: what was found stands behind the others, which stay as they were. */
function toldOf(input: EngineInput): { activeTools?: string[]; toolOrder?: string[] } {
  if (input.found === undefined) return {};
  const names = toldTools(input).map(({ name }) => name);
  return { activeTools: names, toolOrder: names };
}

function toldTools({ tools, found }: EngineInput): readonly EngineTool[] {
  if (found === undefined) return tools;
  const byName = new Map(tools.map((definition) => [definition.name, definition]));
  const later = found().flatMap((name) => byName.get(name) ?? []);
  return [...tools.filter(({ isOnDemand }) => isOnDemand !== true), ...later];
}

/** The same to a model; a call of one ends the answer. */
function withoutExecution(tools: Record<string, ReturnType<typeof toSdkTool>>, input: EngineInput) {
  const told = Object.entries(tools).map(([name, { execute: _execute, ...rest }]) => [name, rest]);
  return { tools: Object.fromEntries(told) as ToolSet, ...toldOf(input) };
}

/** Calls of one step that are under way at the same time. */
const MAX_PARALLEL_CALLS = 5;
/** How often an answer that reached the output limit is continued. */
const MAX_CONTINUATIONS = 3;
/** How often a last message that does not fit its schema is corrected. */
const MAX_CORRECTIONS = 2;
const GO_ON = 'Your last answer reached the output limit. Go on exactly where it stopped, and repeat nothing.';
const SAY_SOMETHING =
  'Your last answer was empty. If the work is done, write the result now; if it is not, go on with it.';

function toSdkTool(definition: EngineTool, loop: Loop, signal: AbortSignal) {
  return tool({
    description: definition.description,
    // Without a check of the SDK's: see `fitInput`.
    inputSchema: jsonSchema(() => definition.schema ?? asSchema(definition.input).jsonSchema),
    execute: (input: unknown, { toolCallId }: { toolCallId: string }) =>
      loop.execute({ callId: toolCallId, input, definition }, signal),
    toModelOutput: ({ output }: { output: ToolResult }) => loop.pictures.outputOf(output),
  });
}

function bytesOfTool({ name, description, input, schema }: EngineTool): number {
  return Buffer.byteLength(
    JSON.stringify({ name, description, schema: schema ?? z.toJSONSchema(input, { io: 'input' }) }),
  );
}

interface ToolEnd {
  toolCall: { toolCallId: string; toolName: string; input: unknown };
  toolOutput: { type: string; output?: unknown; error?: unknown };
}

interface StepEnd {
  text: string;
  finishReason: string;
  rawFinishReason?: string | undefined;
  usage: Pick<LanguageModelUsage, 'inputTokens' | 'inputTokenDetails' | 'outputTokens'>;
  warnings: readonly CallWarning[] | undefined;
  response: { messages: readonly ModelMessage[]; headers?: Readonly<Record<string, string>> | undefined };
  content: readonly (
    | { type: 'tool-error'; toolCallId: string; toolName: string; input: unknown; error: unknown }
    | { type: Exclude<ContentPart<ToolSet>['type'], 'tool-error'> }
  )[];
}

interface CallInput {
  callId: string;
  /** What the model wrote. */
  input: unknown;
  definition: EngineTool;
}

/** A call that began. */
interface CallRecord {
  callId: string;
  durationMs: number;
  /** Call it when it is told. */
  stored: () => void;
  /** Set when it has ended. */
  told?: { call: ToolRecord; event: ToolEnd } | 'open';
}

interface CallOutcome {
  result: unknown;
  isError: boolean;
}

/** Turns what the SDK tells into our records, and remembers what the outcome needs. */
class Loop {
  readonly #hooks: EngineHooks;
  #model: Recipient;
  readonly #input: Pick<EngineInput, 'steering' | 'stepLimit'>;
  steps = 0;
  output: string | null = null;
  /** How the last step ended. */
  #end: Pick<StepEnd, 'text' | 'finishReason' | 'rawFinishReason'> | undefined;
  #continuations = 0;
  #askedAgain = false;
  #corrections = 0;
  readonly #check: OutputCheck | undefined;
  #isLastTold = false;
  readonly #order = new CallOrder();
  /** Calls of the step under way that are not told, in their order. */
  readonly #records: CallRecord[] = [];
  #telling: Promise<void> = Promise.resolve();
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #warned = new Set<string>();
  pictures: PictureShow;
  /** Outcomes of the calls of the step under way, by id: some models use the same ids in every step. */
  #calls = new Map<string, CallOutcome>();
  /** What of the step under way is told already: its answer, and results by the ids of their calls. */
  #told: { answer: boolean; results: Set<string> } = { answer: false, results: new Set() };

  /** The call that waits for a person. */
  open: OpenCall | undefined;

  constructor(hooks: EngineHooks, input: EngineInput, clock: Pick<Clock, 'monotonic'>) {
    const { provider, model, outputCheck } = input;
    this.#hooks = hooks;
    this.#input = input;
    this.#clock = clock;
    this.#check = outputCheck;
    this.#model = { provider, model };
    this.pictures = new PictureShow(this.#model);
  }

  /** After a call that was refused: the conversation to try again with, when pictures may be the reason. */
  async withoutPictures(error: unknown, messages: readonly ModelMessage[]): Promise<ModelMessage[] | undefined> {
    const plain = this.pictures.refused(error, messages);
    if (plain !== undefined)
      await this.#hooks.onWarning('The model refused a call with pictures: it is shown none any more.');
    return plain;
  }

  /** The provider of the model does not serve it: another one answers from here on. */
  async goOnWith({ provider, model }: Recipient, error: unknown): Promise<void> {
    const { provider: before, model: former } = this.#model;
    this.#model = { provider, model };
    this.pictures = new PictureShow(this.#model);
    const { message } = describeFailure(error);
    await this.#hooks.onWarning(
      `Model ${model} of ${provider} goes on in the place of ${former} of ${before}: ${message}`,
    );
  }

  /** Whether no step follows, whatever the model wants. */
  isOver(signal: AbortSignal): boolean {
    return this.steps >= this.#input.stepLimit || this.open !== undefined || signal.aborted;
  }

  /** Whether people sent something that belongs before the next step. */
  async isSteered(signal: AbortSignal): Promise<boolean> {
    return !this.isOver(signal) && ((await this.#input.steering?.hear()) ?? false);
  }

  /** What they sent; none when no step follows: it is for the next run of the session then. */
  async steered(signal: AbortSignal): Promise<TranscriptMessage[]> {
    const messages = this.isOver(signal) ? [] : (this.#input.steering?.take() ?? []);
    for (const message of messages) await this.#hooks.onMessage(message);
    return messages;
  }

  /** In the order of the calls, but for those that may stand beside each other. */
  execute(call: CallInput, signal: AbortSignal): Promise<ToolResult> {
    const isStored = Promise.withResolvers<void>();
    const record: CallRecord = { callId: call.callId, durationMs: 0, stored: isStored.resolve };
    this.#records.push(record);
    const work = async () => {
      const began = this.#clock.monotonic();
      try {
        return await this.#execute(call, signal);
      } finally {
        record.durationMs = Math.round(this.#clock.monotonic() - began);
      }
    };
    // What it came to is told before a call that stands alone begins: if the run is lost in that one, it is known.
    return this.#order.run(call.definition.isParallel === true, work, isStored.promise);
  }

  /** A call after one that waits is not executed: what the person says may change what the agent wants. */
  async #execute({ callId, input: given, definition }: CallInput, signal: AbortSignal): Promise<ToolResult> {
    if (this.open !== undefined) return NOT_REACHED;
    if (signal.aborted) return STOPPED;
    const fitted = fitInput(definition.input, given);
    if ('problem' in fitted) return failed(`The input does not fit ${definition.name}: ${fitted.problem}.`);
    const result = await definition.execute(fitted.input, signal);
    if (result.pause !== undefined)
      this.open = { callId, tool: definition.name, input: fitted.input, pause: result.pause };
    return withNotes(result, fitted.notes);
  }

  /** The last text that is not empty is the output; what goes on after the output limit belongs to what stood before. */
  hear(text: string): void {
    if (text === '') return;
    this.output = this.#end?.finishReason === 'length' ? `${this.output ?? ''}${text}` : text;
  }

  /** What the model is told with its last step; recorded once, also when that is tried again. */
  async lastStep(): Promise<TranscriptMessage> {
    if (!this.#isLastTold) await this.#hooks.onMessage(LAST_STEP);
    this.#isLastTold = true;
    return LAST_STEP;
  }

  /** What the model is told when its answer was none, or only the beginning of one; undefined when the loop is over. */
  async noteAfter(stepLimit: number): Promise<TranscriptMessage | undefined> {
    const { finishReason, text } = this.#end ?? { finishReason: '', text: '' };
    if (this.open !== undefined || this.steps >= stepLimit) return undefined;
    const isCut = finishReason === 'length' || finishReason === 'content-filter';
    let note: string | undefined;
    if (finishReason === 'length' && this.#continuations < MAX_CONTINUATIONS) {
      this.#continuations += 1;
      note = GO_ON;
    } else if (text !== '' && !isCut && this.#corrections < MAX_CORRECTIONS) {
      note = this.#correction();
    } else if (text === '' && !isCut && !this.#askedAgain) {
      this.#askedAgain = true;
      note = SAY_SOMETHING;
    }
    if (note === undefined) return undefined;
    // Nobody wrote it: people see a message without text nowhere.
    const message = { role: 'user' as const, text: '', frame: { before: note, after: '' } };
    await this.#hooks.onMessage(message);
    return message;
  }

  /** What is wrong with the last message; undefined when nothing is, or nobody says what it must be. */
  #problem(): string | undefined {
    const checked = this.output === null ? undefined : this.#check?.(this.output);
    return checked !== undefined && 'problem' in checked ? checked.problem : undefined;
  }

  #correction(): string | undefined {
    const problem = this.#problem();
    if (problem === undefined) return undefined;
    this.#corrections += 1;
    return `Your last message does not fit the JSON Schema that it must fit: ${problem}. Write all of it again, corrected: JSON alone.`;
  }

  /** Calls are told before they are made: if the run is lost meanwhile, the next one of its session knows of them. */
  async onAnswer(content: readonly ContentPart<ToolSet>[], stepLimit: number): Promise<void> {
    // In the last step calls are no calls: the model has no tools.
    const message = this.steps === stepLimit - 1 ? undefined : answerWithCalls(content, this.#model);
    if (message === undefined) return;
    this.#told = { answer: true, results: new Set() };
    await this.#hooks.onMessage(message);
  }

  async onToolEnd(event: ToolEnd): Promise<void> {
    const { toolCallId: callId, toolName: tool, input } = event.toolCall;
    const record = this.#records.find((one) => one.callId === callId);
    if (record === undefined) return;
    if (callId === this.open?.callId) record.told = 'open';
    else {
      const outcome = callOutcome(event.toolOutput);
      this.#calls.set(callId, outcome);
      record.told = { call: { step: this.steps + 1, tool, input, ...outcome, durationMs: record.durationMs }, event };
    }
    await (this.#telling = this.#telling.then(() => this.#tellEnded()));
  }

  /** In the order of the calls: one that ended early is told when those before it have ended. */
  async #tellEnded(): Promise<void> {
    while (this.#records[0]?.told !== undefined) {
      const { told, stored } = this.#records.shift() ?? {};
      if (told !== undefined && told !== 'open') {
        await this.#hooks.onTool(told.call);
        await this.#tellResult(told.event);
      }
      stored?.();
    }
  }

  async #tellResult({ toolCall: { toolCallId, toolName }, toolOutput }: ToolEnd): Promise<void> {
    if (!this.#told.answer || toolOutput.type !== 'tool-result') return;
    const result = toolOutput.output as ToolResult;
    // Pictures count when the SDK asks for them.
    if (result.pictures !== undefined) return;
    this.#told.results.add(toolCallId);
    const output = this.pictures.outputOf(result);
    await this.#hooks.onMessage(resultOf({ type: 'tool-result', toolCallId, toolName, output }));
  }

  async onStepEnd(step: StepEnd): Promise<void> {
    this.steps += 1;
    const notice = step.response.headers?.[MODEL_NOTICE_HEADER];
    for (const text of notice === undefined ? [] : decodeURIComponent(notice).split('\n'))
      await this.#hooks.onWarning(text);
    await this.#warn(step.warnings);
    this.hear(step.text);
    this.#end = step;
    await this.#recordRefusedCalls(step);
    const added = messagesOfStep(step.response.messages, this.#model, this.open?.callId);
    for (const message of added) if (!this.#isTold(message)) await this.#hooks.onMessage(message);
    this.#calls = new Map();
    this.#told = { answer: false, results: new Set() };
    if (step.finishReason === 'length') await this.#hooks.onWarning('The model reached its output limit in this step.');
    await this.#hooks.onStep({
      step: this.steps,
      finishReason: step.finishReason,
      ...tokensOf(step.usage),
    });
  }

  #isTold(message: TranscriptMessage): boolean {
    if (message.role === 'tool') return this.#told.results.has(message.callId);
    return message.role === 'assistant' && this.#told.answer;
  }

  /** What the SDK left out or changed because the model does not take it, once each. */
  async #warn(warnings: StepEnd['warnings']): Promise<void> {
    for (const warning of warnings ?? []) {
      const text = warningText(warning);
      if (text === undefined || this.#warned.has(text)) continue;
      this.#warned.add(text);
      await this.#hooks.onWarning(text);
    }
  }

  /** Calls of a tool that is not there, or with an input that does not fit, are never executed: they show only here. */
  async #recordRefusedCalls(step: StepEnd): Promise<void> {
    for (const part of step.content) {
      if (part.type !== 'tool-error' || this.#calls.has(part.toolCallId)) continue;
      const outcome = callOutcome(part);
      this.#calls.set(part.toolCallId, outcome);
      const call = { step: this.steps, tool: part.toolName, input: part.input };
      await this.#hooks.onTool({ ...call, ...outcome, durationMs: 0 });
    }
  }

  /** What keeps the conversation within the window. A call of its own is a step. */
  contextOf(
    input: EngineInput,
    ask: (...of: Parameters<ContextOptions['ask']>) => Promise<Pick<StepEnd, 'text' | 'usage'>>,
  ): Context {
    const { contextWindow, compactAt, instructions, stepLimit } = input;
    return new Context({
      window: compactionWindow(contextWindow, compactAt),
      besideBytes: () =>
        toldTools(input).reduce((sum, known) => sum + bytesOfTool(known), Buffer.byteLength(instructions)),
      stepsLeft: () => stepLimit - this.steps,
      ask: async (messages, as) => {
        const { text, usage } = await ask(messages, as);
        this.steps += 1;
        await this.#hooks.onStep({ step: this.steps, finishReason: 'compaction', ...tokensOf(usage) });
        return { text };
      },
      saidIn: (error) => describeFailure(error).message,
      onCompaction: (compaction) => this.#hooks.onCompaction(compaction),
      onWarning: (text) => this.#hooks.onWarning(text),
    });
  }

  outcome(stepLimit: number): EngineOutcome {
    if (this.open !== undefined) {
      return { reason: 'Completed', message: '', output: this.open.pause.text, steps: this.steps, open: this.open };
    }
    if (this.#end?.finishReason === 'content-filter') {
      const ended = endedBy(this.#end.rawFinishReason === 'refusal' ? 'ModelRefused' : 'ContentFiltered');
      return { ...ended, output: this.output, steps: this.steps };
    }
    // The last step is asked to close, so reaching it means that the limit ended the work, unless it was the only one.
    if (this.steps >= stepLimit && stepLimit > 1) return this.limited(stepLimit);
    const cut = this.#cutShort() ?? this.#mismatch();
    const checked = this.output === null ? undefined : this.#check?.(this.output);
    const output = checked !== undefined && 'json' in checked ? checked.json : this.output;
    return { ...(cut ?? { reason: 'Completed', message: '' }), output, steps: this.steps };
  }

  #mismatch(): (Pick<EngineOutcome, 'message'> & { reason: 'OutputMismatch' }) | undefined {
    const problem = this.#problem();
    if (problem === undefined) return undefined;
    const what = `The last message does not fit spec.outputSchema of the agent: ${problem}.`;
    return { reason: 'OutputMismatch', message: outcomeOf('OutputMismatch', what).message };
  }

  /** Why the last answer is not one with which the agent says that it is done. */
  #cutShort(): (Pick<EngineOutcome, 'message'> & { reason: CutShort }) | undefined {
    const { text, finishReason } = this.#end ?? { text: '', finishReason: '' };
    if (finishReason === 'length') return endedBy('OutputLimitReached');
    return text === '' ? endedBy('EmptyAnswer') : undefined;
  }

  aborted(): EngineOutcome {
    return { reason: 'Aborted', message: '', output: this.output, steps: this.steps };
  }

  limited(stepLimit: number): EngineOutcome {
    const message = `The agent used all ${stepLimit} steps of its limit.`;
    return { reason: 'StepLimitReached', message, output: this.output, steps: stepLimit };
  }
}

type CutShort = 'ModelRefused' | 'ContentFiltered' | 'EmptyAnswer' | 'OutputLimitReached';

function endedBy(reason: CutShort): { reason: CutShort; message: string } {
  return { reason, message: outcomeOf(reason).message };
}

const NOT_REACHED = failed(
  'Not executed: an answer to the call before it is needed first. Call it again if it still makes sense.',
);
const STOPPED = failed('Not executed: the run was stopped before.');

/** Settings of an agent, as the SDK calls them. */
const SETTINGS: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  maxOutputTokens: 'maxOutputTokens',
  reasoning: 'reasoning',
  reasoningEffort: 'reasoning',
  'extended thinking': 'reasoning',
  'providerOptions.anthropic.thinking': 'reasoning',
  'providerOptions.anthropic.effort': 'reasoning',
};

/** For people; undefined for what is no setting of an agent. */
function warningText(warning: CallWarning): string | undefined {
  const setting = 'feature' in warning ? SETTINGS[warning.feature] : undefined;
  if (setting === undefined) return undefined;
  const details = 'details' in warning && warning.details !== undefined ? `: ${warning.details}` : '.';
  return `The model does not take ${setting} as the agent sets it${details}`;
}

function callOutcome(output: { type: string; output?: unknown; error?: unknown }): CallOutcome {
  if (output.type === 'tool-result') {
    const { result, isError } = output.output as ToolResult;
    return { result, isError };
  }
  const error = textOf(output.error);
  return { result: { error }, isError: true };
}

/** What a tool threw, for a model: an aborted call throws what the run was stopped with, which is no Error. */
function textOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const { message } = (thrown ?? {}) as { message?: unknown };
  return typeof message === 'string' && message !== '' ? message : 'The tool was stopped before it answered.';
}

function tokensOf(usage: StepEnd['usage']): Omit<StepRecord, 'step' | 'finishReason'> {
  const { inputTokenDetails: cache, inputTokens = 0, outputTokens = 0 } = usage;
  return {
    inputTokens,
    ...(cache.cacheReadTokens ? { cacheReadTokens: cache.cacheReadTokens } : {}),
    ...(cache.cacheWriteTokens ? { cacheWriteTokens: cache.cacheWriteTokens } : {}),
    outputTokens,
  };
}

const SAID_BY_GATEWAY = [
  'ModelNotConfigured',
  'StepLimitReached',
  'ModelError',
  'ModelUnpriced',
  'BudgetExhausted',
] as const;

/** Whether a call failed although nothing was wrong with what was asked: another model may answer it. */
function isNotServed(error: unknown): boolean {
  if (!APICallError.isInstance(error)) return false;
  const body = parseJson(error.responseBody ?? '') as
    { notServed?: unknown; error?: { type?: unknown } } | null | undefined;
  return body?.notServed === true || body?.error?.type === 'ModelNotConfigured';
}

/** A failed model call in the words of the gateway: `{"error": {"type": "<RunReason>", "message": "..."}}`. */
function describeFailure(error: unknown): Pick<EngineOutcome, 'reason' | 'message'> {
  if (!APICallError.isInstance(error)) {
    return { reason: 'ModelError', message: error instanceof Error ? error.message : 'The model call failed.' };
  }
  const body = parseJson(error.responseBody ?? '') as
    { error?: { type?: unknown; message?: unknown } } | null | undefined;
  const message = typeof body?.error?.message === 'string' ? body.error.message : error.message;
  const type = body?.error?.type;
  // The gateway counts too: it can be a step ahead when an answer got lost on its way.
  const known = SAID_BY_GATEWAY.find((reason) => reason === type);
  if (known !== undefined) return { reason: known, message };
  const status = error.statusCode === undefined || error.statusCode === 200 ? '' : ` (HTTP ${error.statusCode})`;
  return { reason: 'ModelError', message: `The model call failed${status}: ${message}` };
}
