/** SKILL.md of the Agent Skills format (agentskills.io): front matter with name and description, then the instructions. */
import { stringify } from 'yaml';

export interface SkillText {
  /** The slug: lower case letters, digits and hyphens. */
  slug: string;
  description: string;
  body: string;
}

/** The file as agents read it. */
export function renderSkillMd({ slug, description, body }: SkillText): string {
  return `---\n${stringify({ name: slug, description }, { lineWidth: 0 })}---\n\n${body}`;
}

/** Whether a text brings front matter of its own; with ours before it, it would become part of the instructions. */
export function hasFrontMatter(body: string): boolean {
  const match = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(body);
  return match !== null && /^(name|description)[ \t]*:/m.test(match[1] ?? '');
}
