/** `@handle` in prompts: how agents call each other (spec 2, handle). */

/** Not after a letter, digit or dot (an e-mail address), and not a scope, domain or call (`@types/x`, `@x.org`, `@f()`). */
const MENTION = /(?<![A-Za-z0-9_.+@/-])@([a-z0-9](?:[a-z0-9-]{0,34}[a-z0-9])?)(?![A-Za-z0-9_-])(?![/(]|\.[A-Za-z0-9])/g;
/** Code has its own meaning of @. */
const CODE = /```[\s\S]*?(?:```|$)|`[^`\n]*`/g;

/** The handles that a text mentions outside of code, each once. */
export function mentionsIn(text: string): string[] {
  return [...new Set([...text.replace(CODE, ' ').matchAll(MENTION)].map(([, handle]) => handle ?? ''))];
}

/** The text with the handles of the map replaced, in code too. */
export function renameMentions(text: string, handles: ReadonlyMap<string, string>): string {
  return text.replace(MENTION, (mention, handle: string) => {
    const renamed = handles.get(handle);
    return renamed === undefined ? mention : `@${renamed}`;
  });
}
