/** Names that somebody may have meant, for messages about a name that is not there. */

const MAX_SHOWN = 5;

/** The nearest of the known names first, at most five, as `a, b, c`; empty when nothing is known. */
export function nearNames(wanted: string, known: readonly string[]): string {
  const short = wanted.slice(0, 64).toLowerCase();
  const ranked = known
    .map((name) => ({ name, away: distance(short, name) }))
    .sort((a, b) => a.away - b.away || (a.name < b.name ? -1 : 1));
  const names = ranked.slice(0, MAX_SHOWN).map(({ name }) => name);
  return names.join(', ') + (ranked.length > MAX_SHOWN ? ', …' : '');
}

/** Characters to insert, delete or replace to turn one text into the other (Levenshtein distance). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
