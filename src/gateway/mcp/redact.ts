/** Keeps credentials that a server was shown from coming back in what it says: a run pod holds none. Pure. */

/** A shorter text stands in answers by chance. */
const LEAST_LENGTH = 8;

/** Takes the values out of parsed JSON: out of texts and names, and a number that is one of them. */
export function redactor(values: readonly string[]): (json: unknown) => unknown {
  const forms = values
    .filter((value) => value.length >= LEAST_LENGTH)
    .flatMap((value) => [value, encodeURIComponent(value)]);
  // The longest first: one value may stand in another.
  const found = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const without = (text: string) => found.reduce((rest, form) => rest.replaceAll(form, '[credential]'), text);
  const redact = (json: unknown): unknown => {
    if (typeof json === 'string') return without(json);
    if (typeof json === 'number') return found.includes(String(json)) ? without(String(json)) : json;
    if (Array.isArray(json)) return json.map(redact);
    if (typeof json !== 'object' || json === null) return json;
    return Object.fromEntries(Object.entries(json).map(([name, value]) => [without(name), redact(value)]));
  };
  return found.length === 0 ? (json) => json : redact;
}
