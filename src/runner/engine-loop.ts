/** One run of the loop between a model and its tools: what the SDK tells becomes our records, and why it ended is decided here. */
import type { ContentPart, ModelMessage, ToolSet } from 'ai';
import { fitInput } from '../protocol/fit-input.js';
import { MODEL_NOTICE_HEADER, type TranscriptMessage } from '../protocol/run.js';
import { outcomeOf } from '../run/outcome.js';
import type { OutputCheck } from '../run/output-schema.js';
import type { Clock } from '../runtime/clock.js';
import { CallOrder } from './call-order.js';
import { compactionWindow } from './compaction.js';
import { Context, type ContextOptions } from './context.js';
import { answerWithCalls, messagesOfStep, resultOf, toModelMessages, type Recipient } from './conversation.js';
import type {
  EngineHooks,
  EngineInput,
  EngineOutcome,
  EngineTool,
  OpenCall,
  ToolRecord,
  ToolResult,
} from './engine.js';
import { describeFailure } from './model-failure.js';
import { PictureShow } from './pictures.js';
import { failed, withNotes } from './results.js';
import { LAST_STEP } from './run-context.js';
import { callOutcome, tokensOf, warningText, type CallOutcome, type StepEnd, type ToolEnd } from './sdk-step.js';
import { bytesOfTool, toldTools } from './told-tools.js';

/** How often an answer that reached the output limit is continued. */
const MAX_CONTINUATIONS = 3;
/** How often a last message that does not fit its schema is corrected. */
const MAX_CORRECTIONS = 2;
const GO_ON = 'Your last answer reached the output limit. Go on exactly where it stopped, and repeat nothing.';
const CALL_AGAIN =
  'Your last answer reached the output limit, so its calls were not made. Make them again with less in each: write a long file in several parts.';
const SAY_SOMETHING =
  'Your last answer was empty. If the work is done, write the result now; if it is not, go on with it.';

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

/** Turns what the SDK tells into our records, and remembers what the outcome needs. */
export class Loop {
  readonly #hooks: EngineHooks;
  #model: Recipient;
  /** The one that it took the place of. */
  #before: Recipient;
  readonly #input: Pick<EngineInput, 'steering' | 'stepLimit' | 'shared'>;
  steps = 0;
  output: string | null = null;
  /** How the last step ended. */
  #end: Pick<StepEnd, 'text' | 'finishReason' | 'rawFinishReason'> | undefined;
  /** Results of the calls of the last step that were not made, because its answer reached the output limit. */
  #unmade: TranscriptMessage[] = [];
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
  /** Calls that are being made now, and whether one of them was cut. */
  #executing = 0;
  #isCut = false;

  constructor(hooks: EngineHooks, input: EngineInput, clock: Pick<Clock, 'monotonic'>) {
    const { provider, model, outputCheck } = input;
    this.#hooks = hooks;
    this.#input = input;
    this.#clock = clock;
    this.steps = input.shared?.settle() ?? 0;
    this.#check = outputCheck;
    this.#model = { provider, model };
    this.#before = this.#model;
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
    this.#before = this.#model;
    this.#model = { provider, model };
    this.pictures = new PictureShow(this.#model);
    const { message } = describeFailure(error);
    await this.#hooks.onWarning(
      `Model ${model} of ${provider} goes on in the place of ${former} of ${before}: ${message}`,
    );
  }

  /** The model that was to go on cannot be used: the one before is still to be replaced. */
  async passOver(error: unknown): Promise<void> {
    const { provider, model } = this.#model;
    this.#model = this.#before;
    await this.#hooks.onWarning(`Model ${model} of ${provider} is passed over: ${describeFailure(error).message}`);
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
    this.#executing += 1;
    const result = await definition.execute(fitted.input, signal).finally(() => {
      this.#executing -= 1;
      this.#isCut ||= signal.aborted;
    });
    if (result.pause !== undefined)
      this.open = { callId, tool: definition.name, input: fitted.input, pause: result.pause };
    return withNotes(result, fitted.notes);
  }

  /** The last text that is not empty is the output; what goes on after the output limit belongs to what stood before. */
  hear(text: string): void {
    if (text === '') return;
    const goesOn = this.#end?.finishReason === 'length' && this.#unmade.length === 0;
    this.output = goesOn ? `${this.output ?? ''}${text}` : text;
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
      note = this.#unmade.length > 0 ? CALL_AGAIN : GO_ON;
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

  /** What the last step added to the conversation; every call has a result. */
  addedBy({ response }: Pick<StepEnd, 'response'>): ModelMessage[] {
    if (this.#unmade.length === 0) return [...response.messages];
    const added = messagesOfStep(response.messages, this.#model, undefined);
    return toModelMessages([...added, ...this.#unmade], this.#model);
  }

  /** The same, but for an answer that is none. */
  saidIn(step: Pick<StepEnd, 'text' | 'response'>): ModelMessage[] {
    return step.text === '' && this.#unmade.length === 0 ? [] : this.addedBy(step);
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
    const tools = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolName] : []));
    // But for this step, and one more to close with.
    this.#input.shared?.begin(stepLimit - this.steps - 2, tools);
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
    this.#unmade = await this.#recordUnmadeCalls(step);
    const added = messagesOfStep(step.response.messages, this.#model, this.open?.callId);
    for (const message of [...added, ...this.#unmade]) if (!this.#isTold(message)) await this.#hooks.onMessage(message);
    this.#calls = new Map();
    this.#told = { answer: false, results: new Set() };
    if (step.finishReason === 'length') await this.#hooks.onWarning('The model reached its output limit in this step.');
    await this.#hooks.onStep({
      step: this.steps,
      finishReason: step.finishReason,
      ...tokensOf(step.usage),
    });
    this.steps += this.#input.shared?.settle() ?? 0;
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

  /** The SDK makes no call of an answer that was cut, and says nothing of it. */
  async #recordUnmadeCalls({ content, finishReason }: StepEnd): Promise<TranscriptMessage[]> {
    const refused = content.flatMap((part) => (part.type === 'tool-error' ? [part.toolCallId] : []));
    const unmade = content.flatMap((part) =>
      finishReason === 'length' && part.type === 'tool-call' && !refused.includes(part.toolCallId) ? [part] : [],
    );
    const { result } = NOT_MADE;
    for (const { toolName: tool, input } of unmade)
      await this.#hooks.onTool({ step: this.steps, tool, input, result, isError: true, durationMs: 0 });
    return unmade.map(({ toolCallId, toolName }) =>
      resultOf({ type: 'tool-result', toolCallId, toolName, output: this.pictures.outputOf(NOT_MADE) }),
    );
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
    const atRest = this.#executing === 0 && !this.#isCut;
    return { reason: 'Aborted', message: '', output: this.output, steps: this.steps, atRest };
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
const NOT_MADE = failed('Not executed: the answer reached the output limit before its end.');
const STOPPED = failed('Not executed: the run was stopped before.');
