/** How hard and how long; every number has a bound, so that a chaos run always ends. */

export interface Settings {
  hits: number;
  /** Webhooks a second. */
  rate: number;
  /** Seconds between two faults. */
  faultSeconds: number;
  /** Longest wait for the last run to end, in minutes. */
  drainMinutes: number;
  seed: number;
}

const RANGES: Record<keyof Settings, { variable: string; fallback: number; min: number; max: number }> = {
  hits: { variable: 'CHAOS_HITS', fallback: 200, min: 1, max: 5_000 },
  rate: { variable: 'CHAOS_RATE', fallback: 2, min: 0.1, max: 50 },
  faultSeconds: { variable: 'CHAOS_FAULT_SECONDS', fallback: 5, min: 1, max: 600 },
  drainMinutes: { variable: 'CHAOS_DRAIN_MINUTES', fallback: 30, min: 1, max: 120 },
  seed: { variable: 'CHAOS_SEED', fallback: 1, min: 0, max: 4_294_967_295 },
};

/** Throws with all that is wrong. */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const problems: string[] = [];
  const read = (key: keyof Settings): number => {
    const { variable, fallback, min, max } = RANGES[key];
    const text = env[variable];
    const value = text === undefined || text === '' ? fallback : Number(text);
    if (!(value >= min && value <= max)) problems.push(`${variable} must be a number from ${min} to ${max}`);
    return value;
  };
  const settings: Settings = {
    hits: Math.round(read('hits')),
    rate: read('rate'),
    faultSeconds: read('faultSeconds'),
    drainMinutes: read('drainMinutes'),
    seed: Math.round(read('seed')),
  };
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return settings;
}

/** Whether the URL points to this machine: nothing else is ever hit or killed. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
