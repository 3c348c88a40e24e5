/** A logger that keeps its lines, for tests that say what must or must not be logged. */
import type { Logger } from '../../src/observability/logger.js';

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  fields: Record<string, unknown>;
}

export interface RecordingLog {
  log: Logger;
  lines: LogLine[];
  /** `level message` of every line of at least `info`. */
  messages: () => string[];
}

export function recordingLog(): RecordingLog {
  const lines: LogLine[] = [];
  const at = (level: LogLine['level']) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ level, message, fields });
  };
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return {
    log: log as unknown as Logger,
    lines,
    messages: () => lines.filter((line) => line.level !== 'debug').map((line) => `${line.level} ${line.message}`),
  };
}
