/**
 * One definition per kind: zod schemas plus what only Kubernetes needs (names, columns, CEL rules).
 * TypeScript types, the CRD YAML, run-time checks, tool inputs and docs all come from it.
 */
import type { z } from 'zod';
import type { Resource, ResourceType } from './meta.js';

export const GROUP = 'boxwright.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** In a schema: the object has whatever members a person gives it, and Kubernetes keeps them. */
export const FREE_FORM = 'x-kubernetes-preserve-unknown-fields';

/** A column of `kubectl get`. `priority: 1` shows it only with `-o wide`. */
export interface PrinterColumn {
  name: string;
  jsonPath: string;
  type: 'string' | 'integer' | 'boolean' | 'date' | 'number';
  description: string;
  priority?: 0 | 1;
}

/** A CEL rule on the root of the object; rules that use `oldSelf` are transition rules. */
export interface CelRule {
  rule: string;
  message: string;
  /** The field that the error names, for example `.spec.agent`. */
  fieldPath?: string;
  /** `oldSelf` is an optional value, so that the rule is checked at creation as well. */
  optionalOldSelf?: true;
}

export interface ResourceDefinition<
  Spec extends z.ZodType = z.ZodType,
  Status extends z.ZodType = z.ZodType,
> extends ResourceType<Resource<z.output<Spec>, z.output<Status>>> {
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** False for the storage kinds (chunks) that should not show up in `kubectl get boxwright`. */
  readonly inCategory: boolean;
  /** What the kind is, for `kubectl explain` and the docs. */
  readonly description: string;
  readonly spec: Spec;
  /** Absent for immutable kinds without a status subresource. */
  readonly status?: Status;
  /** Shown before the first status write; the API server fills it in on read. */
  readonly statusDefault?: Partial<z.output<Status>>;
  readonly columns: readonly PrinterColumn[];
  readonly rules: readonly CelRule[];
}

export interface ResourceOptions<Spec extends z.ZodType, Status extends z.ZodType> {
  kind: string;
  plural: string;
  shortNames?: readonly string[];
  namespaced: boolean;
  inCategory?: boolean;
  description: string;
  spec: Spec;
  status?: Status;
  statusDefault?: Partial<z.output<Status>>;
  columns: readonly PrinterColumn[];
  rules?: readonly CelRule[];
}

/** Builds the definition of one kind of the group `boxwright.dev`. */
export function defineResource<Spec extends z.ZodType, Status extends z.ZodType>(
  options: ResourceOptions<Spec, Status>,
): ResourceDefinition<Spec, Status> {
  return {
    group: GROUP,
    version: VERSION,
    singular: options.kind.toLowerCase(),
    shortNames: options.shortNames ?? [],
    inCategory: options.inCategory ?? true,
    rules: options.rules ?? [],
    kind: options.kind,
    plural: options.plural,
    namespaced: options.namespaced,
    description: options.description,
    spec: options.spec,
    columns: options.columns,
    ...(options.status === undefined ? {} : { status: options.status }),
    ...(options.statusDefault === undefined ? {} : { statusDefault: options.statusDefault }),
  };
}

/** The last column of every kind. */
export const AGE_COLUMN: PrinterColumn = {
  name: 'Age',
  jsonPath: '.metadata.creationTimestamp',
  type: 'date',
  description: 'Time since the object was created.',
};

/** A name of at most `max` characters that is one DNS label. */
export function dnsLabelName(kind: string, max: number): CelRule {
  return {
    rule: `self.metadata.name.size() <= ${max} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,
    message: `metadata.name of ${kind} must be a DNS label (a-z, 0-9, hyphens inside) of at most ${max} characters`,
  };
}

/** A child of an agent: the name is `<agent>.<slug>` and the agent part equals spec.agent. */
export function childOfAgentName(kind: string): CelRule {
  return {
    rule: `self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?[.][a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.startsWith(self.spec.agent + '.') && self.metadata.name.size() <= 73`,
    message: `metadata.name of ${kind} must be <agent>.<slug>, where <agent> equals spec.agent and <slug> has at most 36 of a-z, 0-9 and inner hyphens`,
  };
}

/** spec.<field> never changes, appears or disappears after creation (a per-field rule would leak by removing the field). */
export function immutableSpecField(field: string, message?: string): CelRule {
  const now = `self.spec.${field}`;
  const before = `oldSelf.spec.${field}`;
  return {
    rule: `has(${now}) == has(${before}) && (!has(${now}) || ${now} == ${before})`,
    message: message ?? `spec.${field} cannot be changed`,
    fieldPath: `.spec.${field}`,
  };
}
