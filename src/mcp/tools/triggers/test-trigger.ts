import { z } from 'zod';
import { TriggerMethod } from '../../../api/v1alpha1/agent-trigger.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import { BACKLOG_SCOPES, backlogError } from '../../../run/start/backlog-budget.js';
import { findAgent } from '../../../services/scope.js';
import { refuseInactive } from '../../../services/runs/runs.js';
import { StartRunError } from '../../../run/start/start-run.js';
import { UserError } from '../../../api/user-error.js';
import { fireTrigger } from '../../../run/start/fire-trigger.js';
import type { FireOutcome } from '../../../run/start/fire-trigger.js';
import { MAX_BODY_BYTES } from '../../../webhook/request-body.js';
import { defineTool } from '../../define-tool.js';
import type { ToolCall } from '../../define-tool.js';
import { agentIdArgument, slugArgument } from '../common-arguments.js';
import type { ApiTrigger } from '../../../projections/agent-trigger.js';
import { findTrigger } from '../../../services/agents/find-child.js';

const input = z.object({
  agentId: agentIdArgument,
  slug: slugArgument,
  body: z
    .union([z.string().max(2 * MAX_BODY_BYTES), z.looseObject({})])
    .optional()
    .describe('Payload; an object is sent as JSON; at most 1 MB.'),
  method: TriggerMethod.optional().describe('The first accepted one when omitted.'),
  query: z.string().max(8192).optional().describe('Without ?.'),
  contentType: z.string().max(256).optional().describe('JSON by default.'),
});

export const testTriggerTool = defineTool({
  name: 'test_trigger',
  title: 'Test trigger',
  description:
    'Fires a trigger for real, as a call of its URL would: it starts a run and counts. Returns the runId for get_run. Fails on a disabled trigger or a wrong method.',
  effect: 'run',
  input,
  handler: testTrigger,
});

async function testTrigger(given: z.output<typeof input>, { caller, services }: ToolCall) {
  const payload = payloadOf(given);
  const agent = await findAgent(services.scope, caller, given.agentId);
  const trigger = await findTrigger(services.scope, agent, given.slug);
  const method = methodOf(trigger, given.method);
  refuseInactive(agent);
  const outcome = await fireTrigger(
    {
      trigger: {
        agent: { box: agent.box, agent: agent.name },
        agentUid: agent.uid,
        slug: trigger.slug,
        uid: trigger.uid,
        body: trigger.body,
      },
      method,
      ...payload,
      query: given.query ?? '',
      receivedAt: services.scope.clock.now(),
      actor: caller.keyPrefix,
    },
    services.fire,
  );
  const started = startedOrThrow(outcome);
  await services.runs.barrier.passed({ kind: AgentRuns.kind, resourceVersion: started.resourceVersion });
  return { runId: started.runId, sessionId: started.sessionId, trigger: trigger.slug };
}

/** The payload's bytes and type as a caller of the URL would send them. */
function payloadOf({ body, contentType }: z.output<typeof input>): { body: Buffer; contentType: string | undefined } {
  const text = typeof body === 'object' ? JSON.stringify(body) : (body ?? '');
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_BODY_BYTES) {
    throw new UserError(`argument "body" must have at most ${MAX_BODY_BYTES} bytes (1 MB)`);
  }
  return { body: bytes, contentType: contentType ?? defaultType(text) };
}

function defaultType(text: string): string | undefined {
  if (text === '') return undefined;
  return isJson(text) ? 'application/json' : 'text/plain';
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Enabled and method are checked first, to give a readable error (spec 4.2.6). */
function methodOf(trigger: ApiTrigger, method: TriggerMethod | undefined): TriggerMethod {
  if (!trigger.enabled) throw new UserError('the trigger is disabled: enable it with upsert_trigger (enabled: true)');
  const chosen = method ?? trigger.methods[0] ?? 'POST';
  if (!trigger.methods.includes(chosen)) {
    throw new UserError(`the trigger does not accept ${chosen}: use one of ${trigger.methods.join(', ')}`);
  }
  return chosen;
}

function startedOrThrow(outcome: FireOutcome) {
  if (outcome.fired) return outcome;
  if (outcome.error instanceof StartRunError) throw outcome.error;
  const scope = BACKLOG_SCOPES.find((one) => outcome.cause === `backlog_${one}`);
  throw scope === undefined ? new Error(`the fire came to nothing: ${outcome.cause}`) : backlogError(scope);
}
