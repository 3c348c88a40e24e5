/**
 * One call of a trigger URL, in a fixed order. Up to the check of the method every refusal is
 * the same 404 after the same work, so that nobody learns which agents and triggers exist.
 * See docs/architecture.md#webhook.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { TRIGGER_METHODS } from '../api/v1alpha1/agent-trigger.js';
import type { BodyBudget } from '../net/body-budget.js';
import type { HttpMetrics } from '../observability/metrics.js';
import type { Logger } from '../observability/logger.js';
import type { TriggerReader, TriggerTarget } from '../services/triggers/trigger-reader.js';
import type { TokenCheck } from '../services/triggers/trigger-token.js';
import type { WebhookKeyReader } from '../services/triggers/webhook-keys.js';
import { withTimeout } from '../runtime/with-timeout.js';
import { fireTrigger } from '../run/start/fire-trigger.js';
import type { FireDeps } from '../run/start/fire-trigger.js';
import type { WebhookMetrics, WebhookOutcome } from './metrics.js';
import { isPassiveVisit } from './passive-visit.js';
import { BODY_TOO_LARGE, HEAD_OK, NOT_FOUND, NO_CONTENT, accepted, methodNotAllowed, sendReply } from './replies.js';
import type { Reply } from './replies.js';
import { readRequestBody } from './request-body.js';
import { verifySignature } from './signature.js';
import { TRIGGER_ROUTE, parseTriggerPath, splitUrl } from './trigger-path.js';
import type { TriggerPath } from './trigger-path.js';

export interface WebhookDeps extends FireDeps {
  triggers: TriggerReader;
  /** One HMAC a call, also for a trigger that does not exist. */
  tokenMatches(check: TokenCheck, presented: string): boolean;
  /** The run of all calls of the trigger that carry this value; undefined when the trigger's key is not known. */
  dedupeRunName(trigger: TriggerTarget, value: string): string | undefined;
  /** The keys behind the signature that a trigger asks for. */
  webhookKeys: WebhookKeyReader;
  metrics: WebhookMetrics;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
  http: HttpMetrics;
  logger: Logger;
}

/** Deadline of the look-up, which is a live read only while a watch is behind. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** How a call ends. */
interface Verdict {
  outcome: WebhookOutcome;
  reply: Reply;
  /** For the log; never a part of the URL that was not checked. */
  fields?: Record<string, unknown>;
}

/** The call may fire this trigger. */
interface Admitted {
  trigger: TriggerTarget;
}

/** A call whose body is there. */
interface Received {
  body: Buffer;
  /** Milliseconds since the epoch. */
  receivedAt: number;
}

/** Answers one call. Never rejects. */
export async function handleTriggerCall(
  request: IncomingMessage,
  response: ServerResponse,
  deps: WebhookDeps,
): Promise<void> {
  const started = deps.clock.monotonic();
  const receivedAt = deps.clock.now();
  let keepAlive = false;
  let verdict: Verdict;
  try {
    const judged = await judge(request, deps);
    const { state, body, drained } = await readRequestBody(request, 'trigger' in judged, deps);
    keepAlive = drained;
    if (!('trigger' in judged)) verdict = judged;
    else if (state !== 'complete') verdict = { outcome: `body_${state}`, reply: BODY_REPLIES[state] };
    else {
      const now = await judgeAgain(request, judged.trigger, deps);
      verdict = 'trigger' in now ? await fireSigned(request, now.trigger, { body, receivedAt }, deps) : now;
    }
  } catch (error) {
    verdict = { outcome: 'internal_error', reply: NOT_FOUND, fields: { err: error } };
  }
  sendReply(response, verdict.reply, keepAlive);
  report(verdict, request.method ?? '', (deps.clock.monotonic() - started) / 1000, deps);
}

const BODY_REPLIES = { too_large: BODY_TOO_LARGE, stalled: NOT_FOUND, aborted: NOT_FOUND } as const;

/** The decision before the body is read. */
async function judge(request: IncomingMessage, deps: WebhookDeps): Promise<Verdict | Admitted> {
  const method = request.method ?? '';
  if (method === 'HEAD') return { outcome: 'head', reply: HEAD_OK };
  if (method === 'OPTIONS') return { outcome: 'options', reply: NO_CONTENT };
  if (isPassiveVisit(method, request.headers)) return { outcome: 'passive', reply: NO_CONTENT };
  const path = parseTriggerPath(splitUrl(request.url ?? '').path);
  const found = await authorize(path, deps);
  if ('trigger' in found) return forMethod(found.trigger, method);
  // No trigger accepts any other method, so this answer tells nothing about the URL.
  if ((TRIGGER_METHODS as readonly string[]).includes(method)) return found;
  return { outcome: 'method', reply: methodNotAllowed(method, TRIGGER_METHODS) };
}

/**
 * Checks the trigger again once the body has arrived, which may take half a minute: a URL that was rotated, disabled or
 * deleted meanwhile starts nothing (spec 4.2). Comparing what the token was checked against costs no second HMAC.
 */
async function judgeAgain(
  { method = '' }: IncomingMessage,
  before: TriggerTarget,
  deps: WebhookDeps,
): Promise<Verdict | Admitted> {
  const { trigger, failure } = await lookUp(before, deps);
  if (failure !== undefined) return lookUpFailed(failure);
  const isSame = (['uid', 'tokenId', 'keyId'] as const).every((field) => trigger?.[field] === before[field]);
  if (trigger === undefined || !isSame) return UNKNOWN;
  return trigger.enabled ? forMethod(trigger, method) : disabled(trigger);
}

function forMethod(trigger: TriggerTarget, method: string): Verdict | Admitted {
  const { methods } = trigger;
  if (!(methods as readonly string[]).includes(method)) {
    return { outcome: 'method', reply: methodNotAllowed(method, methods) };
  }
  // No sender signs a GET, and what a link can do must not pass for a signed call.
  if (trigger.verify !== undefined && method === 'GET') return unsigned(trigger, 'missing');
  return { trigger };
}

function unsigned(trigger: TriggerTarget, why: 'missing' | 'stale' | 'wrong' | 'key_missing'): Verdict {
  return { outcome: `signature_${why}`, reply: NOT_FOUND, fields: namesOf(trigger) };
}

const UNKNOWN: Verdict = { outcome: 'unknown', reply: NOT_FOUND };

function lookUpFailed(failure: unknown): Verdict {
  return { outcome: 'lookup_failed', reply: NOT_FOUND, fields: { err: failure } };
}

function disabled(trigger: TriggerTarget): Verdict {
  return { outcome: 'disabled', reply: NOT_FOUND, fields: namesOf(trigger) };
}

/** The trigger that the URL opens. Every path costs a look-up and one HMAC, whatever is wrong with the URL. */
async function authorize(path: TriggerPath | undefined, deps: WebhookDeps): Promise<Verdict | Admitted> {
  const { trigger, failure } = path === undefined ? {} : await lookUp(path, deps);
  const { agentId = '', slug = '', token = '' } = path ?? {};
  const check: TokenCheck = { agentId, slug, tokenId: trigger?.tokenId, keyId: trigger?.keyId };
  const matches = deps.tokenMatches(check, token);
  if (failure !== undefined) return lookUpFailed(failure);
  if (trigger === undefined || !matches) return UNKNOWN;
  return trigger.enabled ? { trigger } : disabled(trigger);
}

async function lookUp(
  { agent, slug }: Pick<TriggerPath, 'agent' | 'slug'>,
  { triggers, clock }: WebhookDeps,
): Promise<{ trigger?: TriggerTarget; failure?: unknown }> {
  try {
    const trigger = await withTimeout(clock, LOOKUP_TIMEOUT_MS, (signal) => triggers.find(agent, slug, signal));
    return trigger === undefined ? {} : { trigger };
  } catch (failure) {
    return { failure };
  }
}

/** Nothing of the call counts before its signature, where the trigger asks for one: no run, and no value of its dedupeHeader. */
async function fireSigned(
  request: IncomingMessage,
  trigger: TriggerTarget,
  received: Received,
  deps: WebhookDeps,
): Promise<Verdict> {
  return (await whyUnsigned(request, trigger, received, deps)) ?? (await fire(request, trigger, received, deps));
}

async function whyUnsigned(
  { headers }: IncomingMessage,
  trigger: TriggerTarget,
  received: Received,
  { webhookKeys, clock }: WebhookDeps,
): Promise<Verdict | undefined> {
  const { agent, verify } = trigger;
  if (verify === undefined) return undefined;
  let keys: readonly Buffer[];
  try {
    keys = await withTimeout(clock, LOOKUP_TIMEOUT_MS, (signal) => webhookKeys({ agent, verify }, signal));
  } catch (failure) {
    return lookUpFailed(failure);
  }
  if (keys.length === 0) return unsigned(trigger, 'key_missing');
  const verdict = verifySignature(verify.scheme, keys, { headers, ...received });
  return verdict === 'valid' ? undefined : unsigned(trigger, verdict);
}

async function fire(
  request: IncomingMessage,
  trigger: TriggerTarget,
  { body, receivedAt }: Received,
  deps: WebhookDeps,
): Promise<Verdict> {
  const result = await fireTrigger(
    {
      trigger,
      method: request.method ?? '',
      contentType: request.headers['content-type'],
      body,
      query: splitUrl(request.url ?? '').query,
      receivedAt,
      actor: 'trigger',
      runName: runNameOf(request, trigger, deps),
    },
    deps,
  );
  if (!result.fired) {
    return { outcome: result.cause, reply: NOT_FOUND, fields: { ...namesOf(trigger), err: result.error } };
  }
  const { runId, sessionId, existed } = result;
  return {
    outcome: existed ? 'deduplicated' : 'fired',
    reply: accepted(runId, sessionId, trigger.slug),
    fields: { ...namesOf(trigger), runId, bytes: body.length },
  };
}

/** The run that the caller's delivery id stands for; undefined for a call that is a run of its own. */
function runNameOf(request: IncomingMessage, trigger: TriggerTarget, deps: WebhookDeps): string | undefined {
  const header = trigger.dedupeHeader?.toLowerCase();
  const value = header === undefined ? undefined : request.headers[header];
  const text = Array.isArray(value) ? value.join(', ') : (value ?? '');
  return text === '' ? undefined : deps.dedupeRunName(trigger, text);
}

function namesOf(trigger: TriggerTarget): Record<string, string> {
  return { ...trigger.agent, trigger: trigger.slug };
}

/** Outcomes that people look for in the log; calls of strangers are only counted, so that they cannot flood it. */
const LEVELS: Partial<Record<WebhookOutcome, 'info' | 'error'>> = {
  fired: 'info',
  deduplicated: 'info',
  internal_error: 'error',
};
const QUIET: ReadonlySet<WebhookOutcome> = new Set(['head', 'options', 'passive', 'unknown', 'method']);

function report(verdict: Verdict, method: string, seconds: number, deps: WebhookDeps): void {
  const { outcome, reply, fields } = verdict;
  deps.metrics.called(outcome);
  deps.http.observe({ route: TRIGGER_ROUTE, method, status: reply.status, seconds });
  const level = QUIET.has(outcome) ? 'debug' : (LEVELS[outcome] ?? 'warn');
  deps.logger[level](
    { route: TRIGGER_ROUTE, method, status: reply.status, outcome, seconds, ...fields },
    'trigger URL',
  );
}
