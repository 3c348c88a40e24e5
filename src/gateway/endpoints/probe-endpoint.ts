/** One probe of an OpenAI-compatible server: its list of models, then one call with a tool. */
import type { BodyBudget } from '../../net/body-budget.js';
import { readText } from '../../net/capped-body.js';
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import type { Clock } from '../../runtime/clock.js';
import { ProviderUnreachable } from '../providers/provider-client.js';
import type { ProviderClient } from '../providers/provider-client.js';
import { endpointProvider } from '../providers/providers.js';
import { modelToTry, noAnswer, toolCallRequest, toolCallVerdict } from './verdict.js';
import type { AskedEndpoint, EndpointAnswer, EndpointVerdict } from './verdict.js';

/** Both requests with their tries; a server may have to load the model first. */
export const PROBE_BOUND_MS = 120_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export interface ProbeDeps {
  clock: Clock;
  client: Pick<ProviderClient, 'sendPatiently'>;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
}

/** Never rejects for what the server does. Rejects when `stopping` fires. */
export async function probeEndpoint(
  { clock, client, bodies }: ProbeDeps,
  asked: AskedEndpoint,
  stopping: AbortSignal,
): Promise<EndpointVerdict> {
  const headers = endpointProvider(asked.baseUrl).headers(asked.secret);
  const bound = timeoutSignal(clock, PROBE_BOUND_MS, stopping);
  const giveUpAt = clock.monotonic() + PROBE_BOUND_MS;
  const send = async (path: string, body?: object): Promise<EndpointAnswer> => {
    const request = {
      url: `${asked.baseUrl}/${path}`,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: bound.signal,
    };
    const { status, body: answer } = await client.sendPatiently(request, giveUpAt);
    const budget = { all: bodies, address: asked.baseUrl };
    const text = await readText(answer, MAX_ANSWER_BYTES, budget).catch(() => {
      throw new ProviderUnreachable('the answer broke off', true);
    });
    return { status, text };
  };
  try {
    const tried = modelToTry(asked, await send('models'));
    if ('result' in tried) return tried;
    return toolCallVerdict(asked, tried, await send('chat/completions', toolCallRequest(tried.model)));
  } catch (error) {
    stopping.throwIfAborted();
    if (bound.expired) return noAnswer(asked, `not within ${PROBE_BOUND_MS / 1000} s`);
    if (error instanceof ProviderUnreachable) return noAnswer(asked, error.code);
    throw error;
  } finally {
    bound.dispose();
  }
}
