/**
 * Text of strangers inside a message: the payload of a webhook and the message of another agent stand in a block of their
 * own at the end of the message. The text cannot imitate the tags of a block, whatever characters it writes them with.
 * See docs/webhooks.md#what-the-agent-receives.
 */

/** Names of the tags of blocks with text from outside. */
export const OUTSIDE_TAGS = ['trigger_payload', 'agent_message'] as const;

/** `<`, and all that its compatibility decomposition (NFKD) makes one. */
const LESS_THAN = /[<\u226e\ufe64\uff1c]/gu;
/** As they are compared: letters alone. Nobody else opens the block in which the runner speaks. */
const NAMES = [...OUTSIDE_TAGS, 'run_context'].map((name) => name.replace('_', ''));
/** What counts in a name. Everything else may stand in and around it: space, punctuation, marks, what nobody sees. */
const COUNTS = /^[\p{L}\p{N}<]$/u;
/** Letters by their category, which show nothing: the fillers of Hangul, the blanks of Egyptian hieroglyphs. */
const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\u{13441}\u{13442}]$/u;

/**
 * The text with `&lt;` where it opens or closes such a block, or seems to: in any case, with anything but letters and
 * digits in and around the name, and in full-width, bold, circled or accented letters. One pass: a look-ahead never
 * passes the next `<`.
 */
export function escapeOutsideTags(text: string): string {
  return text.replace(LESS_THAN, (found, at: number) => (opensTag(text, at + found.length) ? '&lt;' : found));
}

/** By code: nearly all that is compared. */
const ASCII_LETTERS = Array.from({ length: 0x80 }, (_, code) => {
  const letter = String.fromCharCode(code).toLowerCase();
  return COUNTS.test(letter) ? [letter] : [];
});

/** Whether one of the names is what comes next. */
function opensTag(text: string, from: number): boolean {
  let read = '';
  for (let at = from; at < text.length;) {
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += character.length;
    for (const letter of lettersOf(character)) {
      read += letter;
      if (NAMES.includes(read)) return true;
      if (!NAMES.some((name) => name.startsWith(read))) return false;
    }
  }
  return false;
}

/** What of the character counts: `ⓣ` and `ţ` are t, a zero width space is nothing. */
function lettersOf(character: string): string[] {
  if (character <= '\x7f') return ASCII_LETTERS[character.charCodeAt(0)] ?? [];
  if (INVISIBLE.test(character)) return [];
  return Array.from(character.normalize('NFKD').toLowerCase()).filter((part) => COUNTS.test(part));
}
