/** Files of a skill, laid into the workspace when the agent reads the skill: its scripts can be run where they lie. */
import { z } from 'zod';
import type { ToolAnswer } from '../protocol/run.js';
import { SKILLS_DIR } from '../protocol/tools-socket.js';
import type { ToolsClient } from './tools-client.js';

const Opened = z.object({ slug: z.string(), files: z.array(z.object({ path: z.string() })) });
const Page = z.object({
  encoding: z.enum(['utf8', 'base64']),
  content: z.string(),
  nextOffset: z.int().nullable(),
});

/** One call of `read_skill`, as the gateway answers it. */
export type ReadSkill = (input: Record<string, unknown>) => Promise<ToolAnswer>;

/**
 * The answer to a call of `read_skill` that opened a skill, with the directory in which its files lie. They are read and
 * written anew each time: what the agent changed there is not the skill. Other answers stay as they are, and so does one whose
 * files could not all be laid.
 */
export async function layFiles(
  answer: ToolAnswer,
  { read, tools, signal }: { read: ReadSkill; tools: ToolsClient; signal: AbortSignal },
): Promise<ToolAnswer> {
  const opened = Opened.safeParse(answer.result);
  if (answer.isError || !opened.success || opened.data.files.length === 0) return answer;
  const { slug, files } = opened.data;
  try {
    for (const { path } of files) {
      const content = await wholeFile({ slug, path }, read);
      if (content === undefined) return answer;
      const put = await tools.call({ tool: 'put_skill_file', input: { slug, path, content } }, signal);
      if (put.isError) return answer;
    }
  } catch {
    // No gateway, or the run was stopped: the instructions are there all the same.
    return answer;
  }
  return { ...answer, result: { ...answer.result, directory: `/workspace/${SKILLS_DIR}/${slug}` } };
}

/** In base64, of all its pages. */
async function wholeFile(file: { slug: string; path: string }, read: ReadSkill): Promise<string | undefined> {
  const parts: Buffer[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const answer = await read({ ...file, offset });
    const page = Page.safeParse(answer.result);
    if (answer.isError || !page.success) return undefined;
    parts.push(Buffer.from(page.data.content, page.data.encoding));
    offset = page.data.nextOffset;
  }
  return Buffer.concat(parts).toString('base64');
}
