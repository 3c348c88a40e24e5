/**
 * Structured logs on stdout, one JSON object a line. Messages are static; data stands in fields. Secrets are removed
 * here, in the stream, and not at call sites: keys, bearer tokens and trigger URLs never reach a line.
 */
import { pino, stdSerializers } from 'pino';
import type { Logger as PinoLogger, SerializedError } from 'pino';

export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error' | 'child'>;

const SECRETS: readonly [RegExp, string][] = [
  [/\bbw_[A-Za-z0-9_-]{20,}/g, 'bw_[redacted]'],
  // Slashes may be escaped for JSON or for a URL; the pattern of the route stays readable.
  [
    /((?:\\{0,8}\/|%2F)api(?:\\{0,8}\/|%2F)t(?:\\{0,8}\/|%2F))(?!:agent_id\/:slug\/:token)(?:[^\s"'\\]|\\{1,8}\/)*/gi,
    '$1[redacted]',
  ],
  [/\b(bearer)\s+[^\s"'\\]+/gi, '$1 [redacted]'],
  [/\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g, '[redacted token]'],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----/g, '[redacted key]'],
];

/** Replaces everything in a text that looks like one of our secrets. */
export function redact(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of SECRETS) clean = clean.replace(pattern, replacement);
  return clean;
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
