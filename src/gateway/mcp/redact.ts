/** Keeps credentials that a server was shown from coming back in what it says: a run pod holds none (DESIGN 2.6). Pure. */

/** A shorter text stands in answers by chance. */
const LEAST_LENGTH = 8;

/** Takes the values out of JSON texts, also where they stand escaped. */
export function redactor(values: readonly string[]): (json: string) => string {
  const forms = values
    .filter((value) => value.length >= LEAST_LENGTH)
    .flatMap((value) => [value, encodeURIComponent(value)])
    .map((form) => JSON.stringify(form).slice(1, -1));
  // The longest first: one value may stand in another.
  const found = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return (json) => found.reduce((text, form) => text.replaceAll(form, '[credential]'), json);
}
