/** Which stored parts of templates nothing points to. Pure. */
import type { KubeObject } from '../../api/meta.js';
import { objectKey } from '../../api/meta.js';
import type { AgentTemplate } from '../../api/v1alpha1/agent-template.js';
import { contentsOf } from '../../templates/contents.js';

/** Any write of a template has ended long before: its parts are stored first, then the patch that points to them. */
export const ORPHAN_AGE_MS = 60 * 60 * 1000;

type Part = Pick<KubeObject, 'metadata'>;

/** Parts that are old enough to be considered. */
export function oldParts<P extends Part>(parts: readonly P[], nowMs: number): P[] {
  return parts.filter(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') <= nowMs - ORPHAN_AGE_MS);
}

/**
 * The parts whose template is there and points elsewhere. The templates must be read after the parts. Parts of a template
 * that is gone are left to Kubernetes, and names that are not `<template>.<content>.<n>` to whoever made them.
 */
export function orphansOf<P extends Part>(
  parts: readonly P[],
  templates: readonly Pick<AgentTemplate, 'metadata' | 'spec'>[],
): P[] {
  const used = new Map(
    templates.map((template) => [
      objectKey(template.metadata),
      new Set(contentsOf(template).map(({ content }) => content)),
    ]),
  );
  return parts.filter(({ metadata: { namespace = '', name } }) => {
    const [template = '', content, index, ...rest] = name.split('.');
    if (content === undefined || index === undefined || rest.length > 0) return false;
    return used.get(`${namespace}/${template}`)?.has(content) === false;
  });
}
