/** Title of a session: what the run that opens it says, or the beginning of its message. */

const MAX_SESSION_TITLE = 128;

/** One line of at most 128 characters. */
export function sessionTitleOf(text: string): string {
  // A long message is not walked through for its beginning.
  const line = text
    .slice(0, 8 * MAX_SESSION_TITLE)
    .replace(/\s+/g, ' ')
    .trim();
  const characters = Array.from(line);
  return characters.length <= MAX_SESSION_TITLE
    ? characters.join('')
    : `${characters.slice(0, MAX_SESSION_TITLE - 1).join('')}…`;
}
