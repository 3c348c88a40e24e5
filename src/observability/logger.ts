/**
 * Structured logs on stdout, one JSON object a line. Messages are static; data stands in fields. Secrets are removed
 * here, in the stream, and not at call sites: keys, bearer tokens and trigger URLs never reach a line.
 */
import { pino, stdSerializers } from 'pino';
import type { Logger as PinoLogger, SerializedError } from 'pino';

export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error' | 'child'>;

// Only patterns that read each character a few times (test/repo/regexes.test.ts): texts may be anybody's.
const SECRETS: readonly [RegExp, string][] = [
  [/\bbw_[A-Za-z0-9_-]{20,}/g, 'bw_[redacted]'],
  // Slashes may be escaped for JSON or for a URL; the pattern of the route stays readable.
  [
    /((?:\\{0,8}\/|%2F)api(?:\\{0,8}\/|%2F)t(?:\\{0,8}\/|%2F))(?!:agent_id\/:slug\/:token)(?:[^\s"'\\]|\\{1,8}\/)*/gi,
    '$1[redacted]',
  ],
  [/\b(bearer)\s+[^\s"'\\]+/gi, '$1 [redacted]'],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----/g, '[redacted key]'],
];

/** Replaces everything in a text that looks like one of our secrets. */
export function redact(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of SECRETS) clean = clean.replace(pattern, replacement);
  return clean.replace(DOTTED, withoutTokens);
}

/** What a JSON Web Token can stand in. */
const DOTTED = /[A-Za-z0-9_.-]+/g;

/** JSON Web Tokens are three parts between dots; the first begins with `eyJ`, at its start or behind a hyphen. */
function withoutTokens(text: string): string {
  if (!text.includes('eyJ')) return text;
  const parts = text.split('.');
  const kept: string[] = [];
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] ?? '';
    const at = part.search(/(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]/);
    const isToken = at !== -1 && (parts[i + 1] ?? '') !== '' && (parts[i + 2] ?? '') !== '';
    kept.push(isToken ? `${part.slice(0, at)}[redacted token]` : part);
    if (isToken) i += 2;
  }
  return kept.join('.');
}

/** The details of a refusal by the API server quote what it refused: a payload, or a value that should not be there. */
function withoutDetails({ details: _details, ...error }: SerializedError): Record<string, unknown> {
  return error;
}

export interface LogDestination {
  write(line: string): void;
}

/** A logger for one process. `component` is in every line. */
export function createLogger(component: string, level: string, destination: LogDestination = process.stdout): Logger {
  return pino(
    {
      level,
      base: { component },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.wrapErrorSerializer(withoutDetails) },
    },
    { write: (line: string) => destination.write(redact(line)) },
  );
}
