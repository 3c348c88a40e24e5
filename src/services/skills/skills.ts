/** Skills as the tools show and write them. */
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { AgentSkills, MAX_SKILL_BYTES, MAX_SKILL_FILES, MAX_SKILL_FILE_BYTES } from '../../api/v1alpha1/agent-skill.js';
import type { AgentSkill } from '../../api/v1alpha1/agent-skill.js';
import { isConflict, orUndefined } from '../../kube/errors.js';
import { isoNow } from '../../runtime/clock.js';
import {
  DamagedArchiveError,
  decodeContent,
  encodingOf,
  packFiles,
  pageOf,
  unpackFiles,
} from '../../skills/archive.js';
import type { Encoding } from '../../skills/archive.js';
import { hasFrontMatter } from '../../skills/skill-md.js';
import { folderAndFile, skillPathProblem } from '../../skills/skill-path.js';
import { createChild, deleteChild, newChild, newSlug, passBarrier, textsToCreate } from '../agents/agent-children.js';
import type { ChildDeps } from '../agents/agent-children.js';
import type { Caller } from '../keys/key-check.js';
import { findAgent } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { nearNames } from '../near-names.js';
import { UserError } from '../../api/user-error.js';
import { projectApiSkill } from '../../projections/agent-skill.js';
import type { ApiSkill } from '../../projections/agent-skill.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';
import { skillsOf, findSkill, slugNotFound } from '../agents/find-child.js';
import { refuseGitOps } from '../../api/gitops.js';

/** Attempts when several callers write one skill at the same time: each merges the other's files into its version and retries. */
const MAX_WRITE_ATTEMPTS = 5;
/** etcd takes 1.5 MiB an object, escapes and metadata included. */
const MAX_STORED_BYTES = 1_500_000;

/** The skills of an agent in get_agent. No request. */
export function listSkillSummaries(deps: Pick<ScopeDeps, 'caches'>, agent: ApiAgent) {
  return skillsOf(deps, agent).map(({ slug, displayName, description }) => ({ slug, name: displayName, description }));
}

/** The result of list_skills, by slug. No request. */
export async function listSkills(deps: ScopeDeps, caller: Caller, id: string) {
  const agent = await findAgent(deps, caller, id);
  return { skills: skillsOf(deps, agent).map(listed) };
}

function listed(skill: ApiSkill) {
  return {
    slug: skill.slug,
    name: skill.displayName,
    description: skill.description,
    files: skill.files,
    updatedAt: skill.updatedAt,
  };
}

function record(skill: AgentSkill) {
  const { slug, name, description, files, updatedAt } = listed(projectApiSkill(skill));
  return { slug, name, description, body: skill.spec.body, files, updatedAt };
}

/** The result of get_skill. One GET. */
export async function getSkill(deps: ScopeDeps, caller: Caller, id: string, slug: string) {
  const agent = await findAgent(deps, caller, id);
  return record(await readSkill(deps, agent, slug));
}

/** The object with body and contents. */
async function readSkill(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<AgentSkill> {
  const known = await findSkill(deps, agent, slug);
  const ref = { namespace: known.namespace, name: known.name };
  const skill = await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentSkills, ref, { signal })));
  if (skill === undefined || skill.metadata.deletionTimestamp !== undefined) {
    throw new UserError(slugNotFound('skill', slug, skillsOf(deps, agent)));
  }
  return skill;
}

export interface FilePage {
  slug: string;
  path: string;
  /** In characters. */
  offset: number;
}

/** The result of read_skill_file: a page of 100,000 characters. One GET. */
export async function readSkillFile(deps: ScopeDeps, caller: Caller, id: string, { slug, path, offset }: FilePage) {
  if (path.toLowerCase() === 'skill.md') {
    throw new UserError('SKILL.md is not a file of the skill: get_skill returns its text as body');
  }
  const agent = await findAgent(deps, caller, id);
  const skill = await readSkill(deps, agent, slug);
  const content = filesOf(skill).get(path);
  if (content === undefined) throw new UserError(fileNotFound(path, skill));
  const encoding = encodingOf(content);
  const page = pageOf(content, encoding, offset);
  return {
    slug: projectApiSkill(skill).slug,
    path,
    encoding,
    content: page.content,
    offset,
    nextOffset: page.nextOffset,
    totalChars: page.totalChars,
  };
}

function filesOf(skill: AgentSkill): Map<string, Buffer> {
  try {
    return unpackFiles(skill.spec);
  } catch (error) {
    if (!(error instanceof DamagedArchiveError)) throw error;
    throw new UserError(
      'the files of this skill are damaged: its manifest was not written by the tools; pass all its files to upsert_skill after delete_skill',
    );
  }
}

function fileNotFound(path: string, { spec }: AgentSkill): string {
  const names = nearNames(
    path,
    spec.files.map((file) => file.path),
  );
  return `file not found: the skill has no file of this path; ${names === '' ? 'it has none' : `its files are: ${names}`}`;
}

export interface SkillFileInput {
  path: string;
  content: string;
  encoding: Encoding;
}

/** Arguments of upsert_skill after their check. */
export interface SkillInput {
  slug?: string | undefined;
  name?: string | undefined;
  description?: string | undefined;
  body?: string | undefined;
  files?: readonly SkillFileInput[] | undefined;
  removeFiles?: readonly string[] | undefined;
}

/** Creates (no slug) or updates a skill; what is not passed stays. Either everything is written at once, or nothing. */
export async function upsertSkill(deps: ChildDeps, caller: Caller, id: string, input: SkillInput) {
  checkBody(input.body);
  const files = contentsOf(input);
  if (input.slug === undefined) {
    const spec = await specToCreate({ ...input, contents: files });
    return createSkill(deps, caller, await findAgent(deps, caller, id), spec);
  }
  return updateSkill(deps, caller, await findAgent(deps, caller, id), { ...input, slug: input.slug, contents: files });
}

type CheckedInput = SkillInput & { contents: ReadonlyMap<string, Buffer> };

function checkBody(body: string | undefined): void {
  if (body === undefined) return;
  if (Buffer.byteLength(body) > MAX_SKILL_FILE_BYTES) {
    throw new UserError(`argument "body" must have at most ${MAX_SKILL_FILE_BYTES} bytes (256 KiB)`);
  }
  if (hasFrontMatter(body)) {
    throw new UserError(
      'argument "body" must not begin with front matter (---): pass name and description as arguments, and the text after it as body',
    );
  }
}

/** The files to write, checked one by one; the error names the argument. */
function contentsOf({ files = [], removeFiles = [] }: SkillInput): Map<string, Buffer> {
  const contents = new Map<string, Buffer>();
  for (const [index, { path, content, encoding }] of files.entries()) {
    const problem = skillPathProblem(path);
    if (problem !== undefined) throw new UserError(`argument "files.${index}.path" ${problem}`);
    if (contents.has(path)) throw new UserError(`argument "files.${index}.path" is in files twice`);
    const bytes = decodeContent(content, encoding);
    if (bytes === undefined) throw new UserError(`argument "files.${index}.content" is not valid base64`);
    if (bytes.length > MAX_SKILL_FILE_BYTES) {
      throw new UserError(
        `argument "files.${index}.content" has ${bytes.length} bytes; a file has at most ${MAX_SKILL_FILE_BYTES} (256 KiB)`,
      );
    }
    contents.set(path, bytes);
  }
  const both = removeFiles.findIndex((path) => contents.has(path));
  if (both !== -1)
    throw new UserError(`argument "removeFiles.${both}" is in files too: a file is either written or removed`);
  return contents;
}

/** What a new skill must have, and its files; checked before the agent is looked up. */
async function specToCreate(input: CheckedInput) {
  const texts = textsToCreate('skill', ['name', 'description', 'body'], input);
  return { ...texts, ...(await packedFiles(new Map(), input, texts.body)) };
}

type NewSkill = Awaited<ReturnType<typeof specToCreate>>;

async function createSkill(deps: ChildDeps, caller: Caller, agent: ApiAgent, given: NewSkill) {
  const slug = newSlug(deps, 'skill', given.name);
  const skill: AgentSkill = {
    ...newChild(deps, AgentSkills, caller, { agent, slug }),
    spec: storable({ agent: agent.name, ...given, updatedAt: isoNow(deps.clock) }),
  };
  return record(await createChild(deps, AgentSkills, skill, { kind: 'skill', slug }));
}

/** The files of a skill after the change. */
async function packedFiles(before: ReadonlyMap<string, Buffer>, input: CheckedInput, body: string) {
  const files = new Map(before);
  for (const [index, path] of (input.removeFiles ?? []).entries()) {
    if (!files.delete(path)) throw new UserError(`argument "removeFiles.${index}": the skill has no such file`);
  }
  for (const [path, content] of input.contents) files.set(path, content);
  checkLimits(files, body);
  return packFiles(files);
}

function checkLimits(files: ReadonlyMap<string, Buffer>, body: string): void {
  if (files.size > MAX_SKILL_FILES) {
    throw new UserError(`the skill would have ${files.size} files; at most ${MAX_SKILL_FILES} are possible`);
  }
  const folder = folderAndFile(files.keys());
  if (folder !== undefined) throw new UserError(`"${folder}" cannot be a file and a folder of the skill at once`);
  const bytes = [...files.values()].reduce((sum, content) => sum + content.length, Buffer.byteLength(body));
  if (bytes > MAX_SKILL_BYTES) {
    throw new UserError(
      `the skill would have ${bytes} bytes; at most ${MAX_SKILL_BYTES} (1 MiB) are possible, body included`,
    );
  }
}

/** Within the limits a skill can still be too large as JSON: a body of quotes and line ends doubles. */
function storable(spec: AgentSkill['spec']): AgentSkill['spec'] {
  if (Buffer.byteLength(JSON.stringify(spec)) <= MAX_STORED_BYTES) return spec;
  throw new UserError('the skill is too large to be stored: make body or files smaller');
}

/** Replaces the version that was read; of two concurrent writers, the second starts again from what the first one wrote. */
async function updateSkill(deps: ChildDeps, caller: Caller, agent: ApiAgent, input: CheckedInput & { slug: string }) {
  refuseGitOps(await findSkill(deps, agent, input.slug));
  for (let attempt = 1; ; attempt++) {
    const before = await readSkill(deps, agent, input.slug);
    refuseGitOps(projectApiSkill(before));
    const spec = await changedSpec(before, input);
    if (spec === undefined) return record(before);
    const annotations = { ...before.metadata.annotations, [ANNOTATION_REQUESTED_BY]: caller.keyPrefix };
    const skill = {
      ...before,
      metadata: { ...before.metadata, annotations },
      spec: storable({ ...spec, updatedAt: isoNow(deps.clock) }),
    };
    try {
      const written = await kubeCall(deps, (signal) => deps.api.replace(AgentSkills, skill, { signal }));
      await passBarrier(deps, AgentSkills, written);
      return record(written);
    } catch (error) {
      if (!isConflict(error) || attempt === MAX_WRITE_ATTEMPTS) throw error;
    }
  }
}

/** Undefined when nothing would change. */
async function changedSpec(before: AgentSkill, input: CheckedInput): Promise<AgentSkill['spec'] | undefined> {
  const { archive, ...kept } = before.spec;
  const name = input.name ?? kept.name;
  const description = input.description ?? kept.description;
  const body = input.body ?? kept.body;
  const hasFiles = input.contents.size > 0 || (input.removeFiles ?? []).length > 0;
  if (!hasFiles) checkLimits(filesOf(before), body);
  const stored = hasFiles
    ? await packedFiles(filesOf(before), input, body)
    : { files: kept.files, ...(archive === undefined ? {} : { archive }) };
  const same =
    name === kept.name &&
    description === kept.description &&
    body === kept.body &&
    stored.archive === archive &&
    samePaths(stored.files, kept.files);
  return same ? undefined : { ...kept, name, description, body, ...stored };
}

function samePaths(a: AgentSkill['spec']['files'], b: AgentSkill['spec']['files']): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Deletes a skill with its files. One write. */
export async function deleteSkill(deps: ChildDeps, caller: Caller, id: string, slug: string) {
  const agent = await findAgent(deps, caller, id);
  const skill = await findSkill(deps, agent, slug);
  refuseGitOps(skill);
  await deleteChild(deps, AgentSkills, skill);
  return { deleted: skill.slug };
}
