/**
 * Parameters of a call that only say how the model should work. A model that does not take one is asked without it, which people
 * read as a warning of the run: an agent's work is worth more than its temperature. Pure.
 */
import { OPTIONAL_PARAMETERS, type OptionalParameter } from '../../models/optional-parameters.js';
import { objectIn, type JsonObject } from './dialect.js';

/** Where a protocol has them: fields of the body, with a dot for a field of a field. */
export type ParameterFields = Readonly<Record<OptionalParameter, readonly string[]>>;

/** How refusals name them, in any of the protocols. */
const NAMES: Readonly<Record<OptionalParameter, RegExp>> = {
  temperature: /temperature/i,
  reasoning: /reasoning|thinking|effort|output_config/i,
};
/** What is said of a parameter that a model never takes, or not with this value. */
const REFUSAL =
  /not[ '"`]{1,3}(?:be )?(?:support|allow|accept|permit|available|recogni|enabled|take)|n't (?:support|accept|take)|unsupported|unrecogni|unknown|unexpected|deprecated|extra inputs|extra_forbidden|invalid|only (?:supports?|accepts?|allows?)|may only|must be|cannot be|incompatible|expected .thinking/i;
const STATUSES: ReadonlySet<number> = new Set([400, 422]);

/** The parameters that a body has. */
export function parametersIn(body: JsonObject, fields: ParameterFields): OptionalParameter[] {
  return OPTIONAL_PARAMETERS.filter((parameter) => fields[parameter].some((path) => valueAt(body, path) !== undefined));
}

/** The body without these parameters. */
export function withoutParameters(
  body: Readonly<Record<string, unknown>>,
  parameters: readonly OptionalParameter[],
  fields: ParameterFields,
): Record<string, unknown> {
  return parameters.flatMap((parameter) => fields[parameter]).reduce(without, { ...body });
}

/** The parameter that a refusal is about, of those that were sent. */
export function refusedParameter(
  { status, text }: { status: number; text: string },
  sent: readonly OptionalParameter[],
): OptionalParameter | undefined {
  if (!STATUSES.has(status) || !REFUSAL.test(text)) return undefined;
  return sent.find((parameter) => NAMES[parameter].test(text));
}

function valueAt(body: JsonObject, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => objectIn(value)[name], body);
}

function without(body: JsonObject, path: string): Record<string, unknown> {
  const [first = '', ...rest] = path.split('.');
  const { [first]: value, ...others } = body;
  if (rest.length === 0 || value === undefined) return others;
  return { ...others, [first]: without(objectIn(value), rest.join('.')) };
}
