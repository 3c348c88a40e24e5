/** Paths of files inside a skill: what a run writes under them must stay inside the skill's folder. */

export const MAX_SKILL_PATH = 256;

/** What is wrong with a path, as the end of a sentence; undefined when it can be used. */
export function skillPathProblem(path: string): string | undefined {
  if (path === '' || path.length > MAX_SKILL_PATH) return `must have 1 to ${MAX_SKILL_PATH} characters`;
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path))
    return 'must be relative to the skill, for example scripts/check.sh';
  if (path.includes('\\')) return 'must not have a backslash: separate folders by /';
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(path) || !path.isWellFormed()) return 'must not have control characters';
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    return 'must not have empty parts, "." or ".."';
  }
  if (path.toLowerCase() === 'skill.md') return 'must not be SKILL.md: its text is the argument body';
  return undefined;
}

/** A path of the list that is the folder of another one; both cannot be files. */
export function folderAndFile(paths: Iterable<string>): string | undefined {
  const all = new Set(paths);
  for (const path of all) {
    for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
      const folder = path.slice(0, slash);
      if (all.has(folder)) return folder;
    }
  }
  return undefined;
}
