/** Patterns of file paths with `*`, `?`, `**` and `{a,b}`, matched in time that no pattern can blow up. */
import { ToolFailure } from './tool-failure.js';

const MAX_ALTERNATIVES = 64;

/** Alternatives, each as the segments between slashes. Throws {@link ToolFailure} for a pattern with too many. */
export function parsePattern(pattern: string): string[][] {
  let texts = [pattern.replace(/^\.\//, '')];
  for (;;) {
    const expanded = texts.flatMap(expandFirstBrace);
    if (expanded.length > MAX_ALTERNATIVES) throw new ToolFailure('The pattern has too many alternatives in braces.');
    if (expanded.length === texts.length) return texts.map((text) => text.split('/'));
    texts = expanded;
  }
}

/** `a{b,c}d` as `abd` and `acd`; a brace without a comma stands for itself. */
function expandFirstBrace(text: string): string[] {
  const brace = [...text.matchAll(/\{([^{}]*)\}/g)].find(([, inside]) => inside?.includes(','));
  if (brace?.[1] === undefined) return [text];
  const [before, after] = [text.slice(0, brace.index), text.slice(brace.index + brace[0].length)];
  return brace[1].split(',').map((choice) => `${before}${choice}${after}`);
}

/** Whether a path (with `/`, relative) is matched whole. */
export function matchesPath(alternatives: readonly string[][], path: string): boolean {
  const names = path.split('/');
  return alternatives.some((segments) => matchesSegments(segments, names));
}

/** `**` matches any number of names. Row by row: after each segment, which numbers of names can be used up. */
function matchesSegments(segments: readonly string[], names: readonly string[]): boolean {
  let reachable = new Set([0]);
  for (const segment of segments) {
    const next = new Set<number>();
    for (const used of reachable) {
      if (segment === '**') for (let i = used; i <= names.length; i++) next.add(i);
      else if (used < names.length && matchesName(segment, names[used] ?? '')) next.add(used + 1);
    }
    reachable = next;
  }
  return reachable.has(names.length);
}

/** One segment: on a mismatch only the last star has to give way, so the time is at most pattern times name. */
function matchesName(pattern: string, name: string): boolean {
  let p = 0;
  let star = -1;
  let resume = 0;
  for (let n = 0; n < name.length;) {
    if (pattern[p] === '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === name[n])) {
      p += 1;
      n += 1;
    } else if (star !== -1) {
      p = star + 1;
      n = ++resume;
    } else return false;
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}
