/** What a provider's refusal means to a person: one sentence with the next step, and no secret. */
import { redact } from '../../observability/logger.js';
import { GatewayError } from '../errors.js';
import { objectIn } from './dialect.js';
import { parseJsonText } from '../../protocol/json-limits.js';
import { cutUtf8 } from '../../runtime/text.js';

const MAX_MESSAGE_BYTES = 500;
/** What is read of a message, in characters: a server can make it as long as a whole answer. */
const MAX_READ = 8192;
/** Providers repeat keys in their answers, whole or masked in the middle. */
const KEY = /\b(?:sk|xai|gsk|pk|rk|key|AIza)[-_*.A-Za-z0-9]{8,}/g;
const MASKED = /\S+/g;

/** What is said with 400 of a model that is not there, and of an account without credit. */
const NOT_SERVED: readonly RegExp[] = [
  /credit balance is too low/i,
  /invalid model\b/i,
  /model_not_found/i,
  /\bmodel\b.{0,80}\b(?:not found|not exist|not available|not supported for your account|is deprecated and)/i,
];

export interface Refusal {
  provider: string;
  status: number;
  /** The body of the answer. */
  text: string;
  retryAfterSeconds?: number | undefined;
  /** `key ANTHROPIC_API_KEY of Secret …`; undefined when no key was sent. */
  keyIs: string | undefined;
  /** The key, to be removed from texts. */
  secret: string;
}

/** Ends the run with ModelError, unless another model may answer. */
export function refusalOf(refusal: Refusal): GatewayError {
  const { provider, status, keyIs } = refusal;
  const said = sayingOf(refusal);
  const what = `${provider} answered HTTP ${status}${said === '' ? '' : `: ${said}`}`;
  const message = `${what}${/[.!?]$/.test(what) ? '' : '.'}${nextStep(status, keyIs, refusal.retryAfterSeconds)}`;
  return isAboutServing(status, said) ? notServed(message) : modelError(message);
}

/** Whether a refusal says nothing of what was asked: no key, no right, no credit, no such model, no room. */
function isAboutServing(status: number, said: string): boolean {
  if (status === 400 || status === 422) return NOT_SERVED.some((words) => words.test(said));
  return [401, 402, 403, 404, 408, 410, 425, 429].includes(status) || status >= 500;
}

function nextStep(status: number, keyIs: string | undefined, retryAfterSeconds: number | undefined): string {
  if (status === 401 || status === 403) {
    return keyIs === undefined
      ? ' It wants a key: set spec.endpoint.secretRef of the Box.'
      : ` Check ${keyIs}: it may be wrong, or without access to this model.`;
  }
  if (status === 404) return ' Check spec.model of the agent.';
  if (status === 429 && retryAfterSeconds !== undefined)
    return ` It asks to wait ${Math.ceil(retryAfterSeconds)} seconds.`;
  return '';
}

/** The provider's own words in a refusal, as {@link quoted}; empty when it gives none. */
export function sayingOf({ text, secret }: Pick<Refusal, 'text' | 'secret'>): string {
  return quoted(messageIn(text) ?? '', secret);
}

/** A text of a provider in one line, cut and without anything that looks like a key. */
export function quoted(text: string, secret: string): string {
  const plain = withoutSecret(text, secret).replace(KEY, '[redacted]').replace(MASKED, maskedKey);
  return cutUtf8(redact(plain).replace(/\s+/g, ' ').trim(), MAX_MESSAGE_BYTES);
}

/** The beginning of a text, and no part of the secret that the cut would leave of it. */
function withoutSecret(text: string, secret: string): string {
  const head = text.slice(0, MAX_READ);
  const plain = secret === '' ? head : head.replaceAll(secret, '[redacted]');
  return text.length > MAX_READ ? plain.slice(0, -secret.length || undefined) : plain;
}

/** A word that is masked in the middle. */
function maskedKey(word: string): string {
  return word.includes('***') ? '[redacted]' : word;
}

/** All of them say `{"error": {"message": "..."}}` or a shorter form of it. */
function messageIn(text: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = parseJsonText(text);
  } catch {
    return undefined;
  }
  const answer = objectIn(Array.isArray(parsed) ? parsed[0] : parsed);
  const candidates = [objectIn(answer['error'])['message'], answer['message'], answer['error'], answer['detail']];
  return candidates.find((candidate) => typeof candidate === 'string' && candidate !== '') as string | undefined;
}

/** Whether a 429 means that the account is empty, which no waiting mends. */
export function outOfQuota(text: string): boolean {
  return /"(?:insufficient_quota|billing_hard_limit_reached|exceeded_current_quota_error)"/.test(text);
}

/** The model call failed for good: the run ends with ModelError and this message. */
export function modelError(message: string): GatewayError {
  return new GatewayError(400, message, { type: 'ModelError' });
}

/** The same, when another model may answer: the provider does not serve this one. */
export function notServed(message: string): GatewayError {
  return new GatewayError(400, message, { type: 'ModelError', fields: { notServed: true } });
}

/** The bound of the Box came before the end of the answer. */
export function callTooLong(provider: string, boundSeconds: number): GatewayError {
  const bound = `within ${boundSeconds} s (spec.bounds.modelCallSeconds of the Box)`;
  return notServed(`${provider} did not finish its answer ${bound}. Ask for less at once, or raise the bound.`);
}
