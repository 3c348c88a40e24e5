/** The files of a skill that are text: what a template checks in them, and where an install rewrites `@handles`. */
import { MAX_SKILL_BYTES, MAX_SKILL_FILE_BYTES } from '../api/v1alpha1/agent-skill.js';
import { DamagedArchiveError, encodingOf, packFiles, unpackFiles } from '../skills/archive.js';
import type { StoredFiles } from '../skills/archive.js';

/** Source code where @ has a meaning of its own: decorators, annotations, rules. */
const CODE_FILE =
  /\.(?:[cm]?[jt]sx?|py|pyi|java|kts?|scala|groovy|cs|swift|rb|php|pl|css|s[ac]ss|less|ps1|ex|exs|jl)$/i;

export interface SkillText {
  path: string;
  text: string;
  /** An `@name` in it is no mention of an agent. */
  code: boolean;
}

/** Text files with their contents; none of an archive that cannot be read. */
export function skillTexts(stored: StoredFiles): SkillText[] {
  return [...filesOf(stored)]
    .filter(([, content]) => encodingOf(content) === 'utf8')
    .map(([path, content]) => ({ path, text: content.toString(), code: CODE_FILE.test(path) }));
}

/** The files with the texts changed that are no code; as they are when the change does not fit into the limits. */
export async function mapSkillTexts<S extends StoredFiles>(stored: S, change: (text: string) => string): Promise<S> {
  const texts = skillTexts(stored).filter(({ code }) => !code);
  const changed = texts.flatMap(({ path, text }) => {
    const next = change(text);
    return next === text ? [] : [[path, Buffer.from(next)] as const];
  });
  if (changed.length === 0) return stored;
  const files = new Map([...filesOf(stored), ...changed]);
  const sizes = [...files.values()].map(({ length }) => length);
  const fits = Math.max(...sizes) <= MAX_SKILL_FILE_BYTES && sizes.reduce((a, b) => a + b, 0) <= MAX_SKILL_BYTES;
  return fits ? { ...stored, ...(await packFiles(files)) } : stored;
}

function filesOf(stored: StoredFiles): Map<string, Buffer> {
  try {
    return unpackFiles(stored);
  } catch (error) {
    if (error instanceof DamagedArchiveError) return new Map();
    throw error;
  }
}
