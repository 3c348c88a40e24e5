/** The argument outputSchema of the tools that write agents. */
import { UserError } from '../../api/user-error.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { OutputSchemaError, outputCheckOf, outputSchemaText } from '../../run/output-schema.js';

/** Throws a {@link UserError} for a schema that no run could use. */
export function expectOutputSchema(
  schema: Readonly<Record<string, unknown>> | null | undefined,
  what = 'argument "outputSchema"',
): void {
  if (schema === null || schema === undefined) return;
  try {
    outputCheckOf(schema);
  } catch (error) {
    if (!(error instanceof OutputSchemaError)) throw error;
    throw new UserError(`${what} cannot be used: ${error.message}`);
  }
  const path = pathOfNull(schema);
  // The API server would take it for the removal of the member.
  if (path !== undefined) throw new UserError(`${what} has null at ${path}: say type: null instead`);
}

/** What get_agent shows: of a schema that no run could use, why, as it may be as large as an object of Kubernetes. */
export function shownOutputSchema({ outputSchema }: Pick<Agent['spec'], 'outputSchema'>): { outputSchema?: object } {
  if (outputSchema === undefined) return {};
  const compact = outputSchemaText(outputSchema);
  return { outputSchema: 'text' in compact ? outputSchema : { problem: compact.problem } };
}

function pathOfNull(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const found = inner === null ? '' : pathOfNull(inner);
    if (found !== undefined) return `/${name.slice(0, 64)}${found}`;
  }
  return undefined;
}
