/** Condition EndpointReady of a Box with `spec.endpoint`: what the gateway found, as a pure function of the Box. */
import { endpointDigest } from '../../api/endpoint.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type { Clock } from '../../runtime/clock.js';
import { showCondition } from '../common/ready.js';

export const ENDPOINT_READY = 'EndpointReady';

const PROBING = 'the gateway lists the models of the endpoint and tries a call with a tool';

/**
 * True: agents can work with the endpoint. False: its runs will fail, and the message says what to fix. Unknown: it has not been
 * tried with its present settings. Absent without an endpoint. Runs start in any case: retrying
 * after an outage of a model is up to them.
 */
export function showEndpoint(draft: Box, clock: Clock): void {
  const { endpoint } = draft.spec;
  const { endpointProbe, ...status } = draft.status ?? {};
  if (endpoint === undefined) {
    const others = status.conditions?.filter(({ type }) => type !== ENDPOINT_READY);
    draft.status = { ...status, ...(others === undefined ? {} : { conditions: others }) };
    return;
  }
  const isCurrent = endpointProbe?.digest === endpointDigest(endpoint);
  const found = isCurrent
    ? {
        status: endpointProbe.result === 'ToolCallsWork' ? ('True' as const) : ('False' as const),
        reason: endpointProbe.result,
        message: endpointProbe.message,
      }
    : { status: 'Unknown' as const, reason: 'EndpointProbing' as const, message: PROBING };
  showCondition(draft, { type: ENDPOINT_READY, ...found }, clock);
}
