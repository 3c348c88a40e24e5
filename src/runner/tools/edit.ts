/** The tool `edit`: replacements of exact text, all of a call or none. */
import { constants } from 'node:fs';
import type { ToolInput } from '../../protocol/tools-socket.js';
import type { ToolContext } from './executor.js';
import { openRegular, overwrite } from './files.js';
import { nearestPlace } from './nearest-place.js';
import { count } from './plain-text.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

const MAX_EDIT_BYTES = 5 * 1024 * 1024;

type Edit = NonNullable<ToolInput<'edit'>['edits']>[number];

/** Replaces texts that occur exactly once, or everywhere, one after the other; the file is written once, when all fit. */
export async function editFile(
  input: ToolInput<'edit'>,
  context: Pick<ToolContext, 'workspace'>,
): Promise<{ text: string }> {
  const edits = editsOf(input);
  const path = await resolveInWorkspace(context.workspace, input.path);
  let text = await readForEdit(path);
  let replaced = 0;
  for (const [index, edit] of edits.entries()) {
    try {
      const result = replace(text, edit);
      text = result.text;
      replaced += result.found;
    } catch (error) {
      if (!(error instanceof ToolFailure) || edits.length === 1) throw error;
      throw new ToolFailure(`Edit ${index + 1} of ${edits.length}: ${error.message}\nNothing was changed.`);
    }
  }
  await overwrite(path, text);
  return { text: `Replaced ${count(replaced, 'occurrence')} in ${await displayPath(context.workspace, path)}.` };
}

function editsOf({ oldText, newText, replaceAll, edits = [] }: ToolInput<'edit'>): readonly Edit[] {
  if (edits.length > 0 && oldText === undefined && newText === undefined) return edits;
  if (edits.length > 0) throw new ToolFailure('Give either oldText and newText, or edits.');
  if (oldText === undefined || newText === undefined) {
    throw new ToolFailure('oldText and newText are needed, or edits with both of them in each.');
  }
  return [{ oldText, newText, ...(replaceAll === undefined ? {} : { replaceAll }) }];
}

function replace(text: string, edit: Edit): { text: string; found: number } {
  const { oldText, newText } = asInFile(text, edit);
  const parts = text.split(oldText);
  const found = parts.length - 1;
  if (found === 0) throw new ToolFailure(notFound(text, oldText));
  if (found > 1 && edit.replaceAll !== true) {
    throw new ToolFailure(`oldText occurs ${found} times; give more of the text around it, or set replaceAll.`);
  }
  if (text.length + found * (newText.length - oldText.length) > MAX_EDIT_BYTES) throw tooLarge();
  return { text: parts.join(newText), found };
}

/** Models write line ends as one character, also those of a file that has two. */
function asInFile(text: string, { oldText, newText }: Edit): { oldText: string; newText: string } {
  if (!text.includes('\r\n') || oldText.includes('\r') || text.includes(oldText)) return { oldText, newText };
  const withReturns = (lines: string) => lines.replace(/\r?\n/g, '\r\n');
  return { oldText: withReturns(oldText), newText: withReturns(newText) };
}

function notFound(text: string, oldText: string): string {
  const place = nearestPlace(text, oldText);
  const lead = 'oldText does not occur in the file';
  return place === undefined ? `${lead}; read it again and copy the text exactly.` : `${lead}. ${place}`;
}

async function readForEdit(path: string): Promise<string> {
  const handle = await openRegular(path, constants.O_RDONLY);
  try {
    if ((await handle.stat()).size > MAX_EDIT_BYTES) throw tooLarge();
    return decodeText(await handle.readFile());
  } finally {
    await handle.close();
  }
}

/** Text that can be written back without a loss. */
function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolFailure('The file is not text.');
  }
}

function tooLarge(): ToolFailure {
  return new ToolFailure('The file is too large to be edited (5 MiB).');
}
