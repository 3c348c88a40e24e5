/** Our {@link Engine} on the AI SDK's `generateText`; model-provider.ts makes its models, engine-loop.ts keeps what they do. */
import { asSchema, generateText, jsonSchema, tool, ToolChoiceViolationError } from 'ai';
import type { ModelMessage, ToolSet } from 'ai';
import { systemClock, type Clock } from '../runtime/clock.js';
import { withOwnCallIds } from './call-ids.js';
import { compactionWindow } from './compaction.js';
import { forAnotherModel, toModelMessages } from './conversation.js';
import type { Engine, EngineInput, EngineTool, ToolResult } from './engine.js';
import { Loop } from './engine-loop.js';
import { Fallbacks } from './fallbacks.js';
import { describeFailure } from './model-failure.js';
import { languageModel, optionsFor } from './model-provider.js';
import { CACHE_MARK, markedMessages } from './prompt-cache.js';
import type { StepEnd } from './sdk-step.js';
import { toldOf } from './told-tools.js';

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
  step: Pick<StepEnd, 'text' | 'response'>,
  { loop, input, signal }: { loop: Loop; input: EngineInput; signal: AbortSignal },
): Promise<ModelMessage[] | undefined> {
  const steered = await loop.steered(signal);
  if (steered.length > 0) return [...loop.addedBy(step), ...toModelMessages(steered, input)];
  const note = signal.aborted ? undefined : await loop.noteAfter(input.stepLimit);
  return note === undefined ? undefined : [...loop.saidIn(step), ...toModelMessages([note], input)];
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
  const fallbacks = new Fallbacks(input.fallbacks);
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
      fallbacks.answered();
      const more = await moreAfter(finalStep, { loop, input, signal });
      if (more === undefined) return;
      messages = [...messages, ...more];
    } catch (error) {
      if (signal.aborted) throw error;
      const next = await fallbacks.after(error, loop);
      if (next !== undefined) {
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

/** The same to a model; a call of one ends the answer. */
function withoutExecution(tools: Record<string, ReturnType<typeof toSdkTool>>, input: EngineInput) {
  const told = Object.entries(tools).map(([name, { execute: _execute, ...rest }]) => [name, rest]);
  return { tools: Object.fromEntries(told) as ToolSet, ...toldOf(input) };
}

/** Calls of one step that are under way at the same time. */
const MAX_PARALLEL_CALLS = 5;
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
