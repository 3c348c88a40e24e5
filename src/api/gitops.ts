/** Objects that a GitOps tool applies: their source of truth is a repository. */
import { ANNOTATION_MANAGED_BY } from './labels.js';
import type { ObjectMeta } from './meta.js';
import { UserError } from './user-error.js';

/** Annotations and labels that Argo CD and Flux put on what they apply. */
const GITOPS_MARKS = [
  'argocd.argoproj.io/tracking-id',
  'argocd.argoproj.io/instance',
  'kustomize.toolkit.fluxcd.io/name',
  'helm.toolkit.fluxcd.io/name',
];

/** Whether the object's source of truth is a repository: then our tools do not change it. */
export function isGitOps(meta: ObjectMeta): boolean {
  if (meta.annotations?.[ANNOTATION_MANAGED_BY] === 'gitops') return true;
  return GITOPS_MARKS.some((mark) => meta.annotations?.[mark] !== undefined || meta.labels?.[mark] !== undefined);
}

/** Refuses the change of an object whose source of truth is a repository. */
export function refuseGitOps(object: { gitOps: boolean }): void {
  if (object.gitOps) throw new UserError('managed by GitOps: change it in its source');
}
