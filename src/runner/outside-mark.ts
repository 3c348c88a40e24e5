/**
 * Tells a model where text from outside ends, by a line that its writer cannot know. What is stored has no such line: it
 * is put in for one run, on the way to the engine.
 */
import { randomBytes } from 'node:crypto';
import type { TranscriptMessage } from '../protocol/run.js';
import { OUTSIDE_TAGS } from '../run/outside-text.js';
import { SUMMARY_HEADING } from './compaction.js';

/** A line of 96 random bits. */
export function newMark(): string {
  return `[end of text from outside, ${randomBytes(12).toString('hex')}]`;
}

/** The messages as the model reads them: the mark stands behind each block with text from outside. */
export function markOutsideText(messages: readonly TranscriptMessage[], mark: string): TranscriptMessage[] {
  return messages.map((message) =>
    message.role === 'user' ? { ...message, text: markedText(message.text, mark) } : message,
  );
}

/** The text as it is stored. */
export function withoutMark(text: string, mark: string): string {
  return text.replaceAll(`\n${mark}`, '');
}

/** A block stands at the end of a message, or in front of the summary of what followed it. */
function markedText(text: string, mark: string): string {
  const summary = text.indexOf(SUMMARY_HEADING);
  for (const end of summary === -1 ? [text.length] : [text.length, summary]) {
    const before = text.slice(0, end);
    if (OUTSIDE_TAGS.some((name) => before.endsWith(`\n</${name}>`))) return `${before}\n${mark}${text.slice(end)}`;
  }
  return text;
}
