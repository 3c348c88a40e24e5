/** SKILL.md of the Agent Skills format (agentskills.io): the control plane keeps name, description and instructions apart. */

/** Whether a text brings front matter of its own; with ours before it, it would become part of the instructions. */
export function hasFrontMatter(body: string): boolean {
  const match = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(body);
  return match !== null && /^(name|description)[ \t]*:/m.test(match[1] ?? '');
}
