/** The argument outputSchema of the tools that write agents. */
import { UserError } from '../../api/user-error.js';
import { OutputSchemaError, outputCheckOf } from '../../run/output-schema.js';

/** Throws a {@link UserError} for a schema that no run could use. */
export function expectOutputSchema(schema: Readonly<Record<string, unknown>> | null | undefined): void {
  if (schema === null || schema === undefined) return;
  try {
    outputCheckOf(schema);
  } catch (error) {
    if (!(error instanceof OutputSchemaError)) throw error;
    throw new UserError(`argument "outputSchema" cannot be used: ${error.message}`);
  }
  const path = pathOfNull(schema);
  // The API server would take it for the removal of the member.
  if (path !== undefined) throw new UserError(`argument "outputSchema" has null at ${path}: say type: null instead`);
}

function pathOfNull(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const found = inner === null ? '' : pathOfNull(inner);
    if (found !== undefined) return `/${name.slice(0, 64)}${found}`;
  }
  return undefined;
}
