/**
 * One JSON line a message on stdout. Small on purpose: the runner starts once for each run, and a logging library would
 * cost more than the rest of its start. Fields hold counts, codes and names of errors, never texts of a run.
 */
import type { Clock } from '../runtime/clock.js';
import { isoNow } from '../runtime/clock.js';

type Fields = Record<string, string | number | boolean | undefined>;

export interface RunnerLog {
  info(fields: Fields, message: string): void;
  warn(fields: Fields, message: string): void;
  error(fields: Fields, message: string): void;
}

/** A log for one process of a run pod. */
export function createRunnerLog(component: string, clock: Clock, write: (line: string) => void): RunnerLog {
  const at = (level: string) => (fields: Fields, message: string) => {
    write(`${JSON.stringify({ level, time: isoNow(clock), component, ...fields, msg: message })}\n`);
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** What a log may say about an error: its code, or its class. */
export function errorKind(error: unknown): string {
  if (typeof error !== 'object' || error === null) return typeof error;
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'unknown';
}
