/**
 * The contents of templates: one JSON text, gzip, cut into immutable parts. Every change writes new parts and then moves the
 * template to them with one patch, so that a reader sees the old or the new content and never a mixture.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { API_VERSION } from '../../api/define-resource.js';
import { ulid } from '../../api/ulid.js';
import {
  AgentTemplateParts,
  AgentTemplates,
  MAX_TEMPLATE_BYTES,
  MAX_TEMPLATE_PART_BYTES,
} from '../../api/v1alpha1/agent-template.js';
import type { AgentTemplate, AgentTemplatePart, TemplateContent } from '../../api/v1alpha1/agent-template.js';
import { isAlreadyExists, isNotFound } from '../../kube/errors.js';
import { controllerReference } from '../../kube/owner-references.js';
import { ContentFile } from '../../templates/snapshot.js';
import { parseJsonText } from '../../protocol/json-limits.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import { afterStep } from '../../runtime/event-loop.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { kubeCall } from '../kube-call.js';

type StoreDeps = Pick<ScopeDeps, 'api' | 'clock'>;

/** Names a stored content of a template. */
export type ContentRef = Pick<TemplateContent, 'content' | 'parts' | 'sha256'>;

/** Of the text of a content that is written: skills are stored compressed inside. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
/** Of one that is read: older versions wrote larger ones. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
/** Twice what 50 agents need with all their skills, schedules and triggers. */
const MAX_VALUES = 600_000;
const deflate = promisify(gzip);
const inflate = promisify(gunzip);

/** A template without agents has no parts. */
export const EMPTY_CONTENT: TemplateContent = { content: '', parts: 0, sha256: '', agents: 0 };

/** The content no longer exists: the template points elsewhere by now. */
export class ContentGoneError extends Error {
  override readonly name = 'ContentGoneError';
}

interface Place {
  namespace: string;
  name: string;
}

/** Reads and checks a content. One GET a part. */
export async function readContent(deps: StoreDeps, template: Place, ref: ContentRef): Promise<AgentSnapshot[]> {
  if (ref.parts === 0) return [];
  const parts = await Promise.all(partNames(template.name, ref).map((name) => readPart(deps, template, name)));
  const text = (await inflate(Buffer.concat(parts), { maxOutputLength: MAX_INFLATED_BYTES })).toString();
  if (sha256(text) !== ref.sha256) throw new Error(`content ${ref.content} of template ${template.name} is damaged`);
  await afterStep(text.length);
  const json = parseJsonText(text, { values: MAX_VALUES });
  await afterStep(text.length);
  return ContentFile.parse(json).agents;
}

async function readPart(deps: StoreDeps, { namespace }: Place, name: string): Promise<Buffer> {
  try {
    const part = await kubeCall(deps, (signal) => deps.api.get(AgentTemplateParts, { namespace, name }, { signal }));
    return Buffer.from(part.spec.data, 'base64');
  } catch (error) {
    if (isNotFound(error)) throw new ContentGoneError(`part ${name} is gone`);
    throw error;
  }
}

/** Stores a content; nothing is left of one that could not be stored whole. */
export async function writeContent(
  deps: StoreDeps,
  template: AgentTemplate,
  agents: readonly AgentSnapshot[],
): Promise<TemplateContent> {
  if (agents.length === 0) return EMPTY_CONTENT;
  const text = JSON.stringify({ format: 1, agents });
  if (Buffer.byteLength(text) > MAX_TEXT_BYTES) {
    throw new UserError(
      `the template would have more than ${MAX_TEXT_BYTES} bytes (16 MiB): make texts or skills of its agents smaller`,
    );
  }
  const packed = await deflate(text);
  if (packed.length > MAX_TEMPLATE_BYTES) {
    throw new UserError(
      `the template would have ${packed.length} bytes compressed; at most ${MAX_TEMPLATE_BYTES} (8 MiB) are possible: remove files of skills`,
    );
  }
  const pieces = Math.ceil(packed.length / MAX_TEMPLATE_PART_BYTES);
  const content: TemplateContent = {
    content: ulid(deps.clock.now()).toLowerCase(),
    parts: pieces,
    sha256: sha256(text),
    agents: agents.length,
  };
  try {
    for (let part = 0; part < pieces; part++) {
      const bytes = packed.subarray(part * MAX_TEMPLATE_PART_BYTES, (part + 1) * MAX_TEMPLATE_PART_BYTES);
      await createPart(deps, newPart(template, content.content, part, bytes));
    }
  } catch (error) {
    await deleteContent(deps, placeOf(template), content);
    throw error;
  }
  return content;
}

function newPart(template: AgentTemplate, content: string, part: number, bytes: Buffer): AgentTemplatePart {
  return {
    apiVersion: API_VERSION,
    kind: AgentTemplateParts.kind,
    metadata: {
      namespace: template.metadata.namespace ?? '',
      name: partName(template.metadata.name, content, part),
      ownerReferences: [controllerReference(AgentTemplates, template)],
    },
    spec: { template: template.metadata.name, content, part, bytes: bytes.length, data: bytes.toString('base64') },
  };
}

/** A part of this name was made by us: its content id is random. */
async function createPart(deps: StoreDeps, part: AgentTemplatePart): Promise<void> {
  try {
    await kubeCall(deps, (signal) => deps.api.create(AgentTemplateParts, part, { signal }));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Removes the parts of a content that nothing points to. What cannot be removed now is swept by the controller. */
export async function deleteContent(deps: StoreDeps, template: Place, ref: ContentRef): Promise<void> {
  for (const name of partNames(template.name, ref)) {
    const part = { namespace: template.namespace, name };
    await kubeCall(deps, (signal) => deps.api.delete(AgentTemplateParts, part, { signal })).catch(() => undefined);
  }
}

/** Where a template is. */
export function placeOf({ metadata }: Pick<AgentTemplate, 'metadata'>): Place {
  return { namespace: metadata.namespace ?? '', name: metadata.name };
}

function partNames(template: string, { content, parts }: ContentRef): string[] {
  return Array.from({ length: parts }, (_, part) => partName(template, content, part));
}

function partName(template: string, content: string, part: number): string {
  return `${template}.${content}.${part}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
