/** What of a runner's model call passes to the provider: checked by path, field and model. */
import type { z } from 'zod';
import { parseBounded } from '../../protocol/bounded-parse.js';
import { issuePath } from '../../protocol/issues.js';
import { GatewayError } from '../errors.js';
import type { ModelRequest } from './dialect.js';
import type { Target } from './targets.js';

export interface Passed {
  /** Below the version. */
  path: string;
  body: Record<string, unknown>;
  request: ModelRequest;
}

/** Throws 404 for a path, 400 for a field or model that is not passed. `path` is what follows the provider, `model` that of the run. */
export function passedOf({ api, provider }: Target, whole: string, content: unknown, model: string): Passed {
  const path = whole.startsWith(`${api.version}/`) ? whole.slice(api.version.length + 1) : '';
  const meaning = api.dialect.pathOf(path);
  if (meaning === undefined) {
    throw new GatewayError(404, `the gateway passes no such call to ${provider}`, { type: 'NotPassed' });
  }
  const parsed = parseBounded(api.dialect.body, content);
  if (!parsed.success) throw notPassed(provider, parsed.error);
  const request = api.dialect.read(parsed.data, meaning);
  if (request.model !== model) {
    throw new GatewayError(400, `this run may use model ${model} alone`, { type: 'OtherModel' });
  }
  return { path, body: parsed.data, request };
}

function notPassed(provider: string, error: z.ZodError): GatewayError {
  const [issue] = error.issues;
  const where = issue === undefined || issue.path.length === 0 ? 'the request' : issuePath(issue);
  const what = issue?.code === 'unrecognized_keys' ? `field ${(issue.keys[0] ?? '').slice(0, 64)} of ${where}` : where;
  return new GatewayError(400, `the gateway does not pass this to ${provider}: ${what}`, { type: 'NotPassed' });
}
