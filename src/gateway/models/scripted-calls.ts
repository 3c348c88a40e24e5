/** Calls of the scripted engine, and of recordings that it replays: no network, no key, and a price of 0. */
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/clock.js';
import type { Ask } from '../budget/run-budgets.js';
import { GatewayError, runEnded } from '../errors.js';
import type { CallResult } from '../metrics.js';
import type { ScriptedReply } from '../scripted/engine.js';
import { ChatRequest, completionOf, eventsOf } from '../scripted/openai.js';
import { callTooLong } from '../providers/provider-errors.js';
import type { AnswerSink } from './answer-sink.js';
import type { ModelCallInFlight } from './call-in-flight.js';

/** Its price, spelled out. */
const FREE = { inputMicroUsd: 0, outputMicroUsd: 0 };
const CHAT_PATH = 'v1/chat/completions';

export interface ScriptedCall {
  clock: Clock;
  /** Name of the run. */
  run: string;
  path: string;
  body: unknown;
  /** What answers. */
  reply: (request: ChatRequest) => ScriptedReply | Promise<ScriptedReply>;
  /** Most time for the call. */
  boundSeconds: number;
  /** The run's budget; may refuse. */
  admit: (ask: Ask) => Promise<number | undefined>;
  flight: ModelCallInFlight;
  signal: AbortSignal;
  sink: AnswerSink;
  result: { value: CallResult };
}

export async function callScripted({ clock, flight, signal, sink, result, ...call }: ScriptedCall): Promise<void> {
  if (call.path !== CHAT_PATH) throw new GatewayError(404, `only /${CHAT_PATH} is served`, { type: 'NotFound' });
  const request = ChatRequest.parse(call.body);
  const reply = await call.reply(request);
  result.value = 'aborted';
  if (reply.waitMs > 0) await sleep(clock, Math.min(reply.waitMs, call.boundSeconds * 1000), signal);
  if (signal.aborted) throw runEnded('the call was cut');
  if (reply.waitMs > call.boundSeconds * 1000) {
    result.value = 'failed';
    throw callTooLong('boxwright', call.boundSeconds);
  }
  if ('failure' in reply.result) {
    result.value = 'failed';
    throw new GatewayError(400, reply.result.failure, { type: reply.result.type });
  }
  const { inputTokens, outputTokens } = reply.result.answer.usage;
  const most = { mostOutputTokens: outputTokens, leastOutputTokens: outputTokens };
  await call.admit({ inputTokens, outputTokens, ...most, price: FREE });
  const steps = flight.answered({ inputTokens, outputTokens, costMicroUsd: 0 });
  result.value = 'answered';
  const answer = {
    ...reply.result.answer,
    id: `chatcmpl-${call.run}-${steps}`,
    created: Math.floor(clock.now() / 1000),
  };
  if (request.stream !== true) {
    sink.start(200, 'application/json');
    return sink.write(JSON.stringify(completionOf(answer)));
  }
  sink.start(200, 'text/event-stream');
  for (const event of eventsOf(answer, request.stream_options?.include_usage === true)) await sink.write(event);
}
