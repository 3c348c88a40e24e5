/**
 * One tool = one file: definition for clients, schema of its arguments, handler. Handlers return plain objects or throw
 * a UserError; the wire form is made in one place (src/mcp/dispatcher.ts).
 */
import { z } from 'zod';
import type { Caller } from '../services/keys/key-check.js';
import { toInputSchema } from './input-schema.js';
import type { InputSchema } from './input-schema.js';
import type { ToolServices } from './tool-services.js';

/** Hints for clients that ask before risky calls; `confirm` stays the real guard. */
export interface ToolAnnotations {
  title: string;
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint: boolean;
}

/** A tool as `tools/list` shows it. No outputSchema: strict clients fail whole calls over it. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: InputSchema;
  annotations: ToolAnnotations;
}

/** One call of a tool. */
export interface ToolCall {
  caller: Caller;
  services: ToolServices;
  /** The client is gone: waits end, writes do not. */
  gone: AbortSignal;
}

/** What kind of tool it is; the hints follow from it. */
export type ToolEffect =
  /** Changes nothing. */
  | 'read'
  /** Adds or changes, nothing is lost. */
  | 'write'
  /** Replaces or removes something that cannot be restored. */
  | 'destructive'
  /** Starts an agent, whose tools reach the outside world. */
  | 'run';

export interface ToolOptions<S extends z.ZodObject> {
  name: string;
  title: string;
  /** One or two sentences for a model that has to choose; at most 300 characters. */
  description: string;
  effect: ToolEffect;
  /** Whether a repeated call changes nothing more; always so for reads. */
  idempotent?: boolean;
  /** Its answer may hold a secret: each call is in the audit log, also when nothing is changed. */
  showsSecrets?: true;
  /** Refuses to run without `confirm: true` (spec 4.2). The argument is added to the schema. */
  confirm?: true;
  /** Called before the arguments are checked; throws a UserError for an account that may not use the tool at all. */
  gate?: (call: ToolCall) => void;
  /** Arguments of other tools that would silently do nothing here, with what to do instead. */
  refused?: Readonly<Record<string, string>>;
  input: S;
  handler: (input: z.output<S>, call: ToolCall) => Promise<object> | object;
}

/** A tool in the registry. */
export interface Tool {
  readonly name: string;
  readonly definition: ToolDefinition;
  readonly input: z.ZodObject;
  readonly readOnly: boolean;
  readonly showsSecrets: boolean;
  readonly confirm: boolean;
  readonly gate: ((call: ToolCall) => void) | undefined;
  readonly refused: Readonly<Record<string, string>>;
  handler(input: Record<string, unknown>, call: ToolCall): Promise<object> | object;
}

/** Required for clients; checked by the gate, which answers with the sentence of spec 4.2 and not with a type error. */
const CONFIRM = z.boolean().describe('true, once the owner has agreed.');

export function defineTool<S extends z.ZodObject>(options: ToolOptions<S>): Tool {
  const { name, title, description, effect, input } = options;
  const readOnly = effect === 'read';
  return Object.freeze({
    name,
    readOnly,
    showsSecrets: options.showsSecrets ?? false,
    confirm: options.confirm ?? false,
    gate: options.gate,
    refused: options.refused ?? {},
    input,
    // The dispatcher passes what this tool's own schema gave.
    handler: options.handler,
    definition: {
      name,
      description,
      inputSchema: toInputSchema(options.confirm === true ? input.extend({ confirm: CONFIRM }) : input),
      annotations: {
        title,
        readOnlyHint: readOnly,
        destructiveHint: effect === 'destructive',
        idempotentHint: readOnly || (options.idempotent ?? false),
        openWorldHint: effect === 'run',
      },
    },
  });
}
