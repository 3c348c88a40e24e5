/** The part of an Agent's status that this controller owns, as a pure function of its standing. */
import { setCondition } from '../../api/conditions.js';
import { installMarkOf } from '../../api/installing.js';
import type { Condition } from '../../api/v1alpha1/common.js';
import type { NotReady } from '../common/ready.js';
import type { Standing } from './standing.js';
import type { ControllerAgent } from '../../projections/agent.js';

export const HANDLE_CONFLICT = 'HandleConflict';
export const BROWSER_UNAVAILABLE = 'BrowserUnavailable';

const INSTALLING =
  'the agent is being installed from a template; it is taken back when the install is not complete within 2 minutes';

type Status = NonNullable<ControllerAgent['status']>;

const NOT_IN_A_BOX: Standing & { inactiveReason: string } = {
  active: false,
  inactiveReason: 'the namespace is not the namespace of a Box; create the agent in bw-<box>',
};

/** The whole status: ours from the standing, all other fields as they were. */
export function agentStatus(agent: ControllerAgent, standing: Standing = NOT_IN_A_BOX): Status {
  const { handle: _handle, inactiveReason: _reason, ...others } = agent.status ?? {};
  const { generation } = agent.metadata;
  return {
    ...others,
    active: standing.active,
    ...(standing.inactiveReason === undefined ? {} : { inactiveReason: standing.inactiveReason }),
    ...(standing.handle === undefined ? {} : { handle: standing.handle }),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
}

/** HandleConflict=True while an older agent has the handle; the condition is absent otherwise. */
export function handleConditions(agent: ControllerAgent, standing: Standing | undefined, now: string): Condition[] {
  const others = (agent.status?.conditions ?? []).filter(({ type }) => type !== HANDLE_CONFLICT);
  const message = conflictMessage(agent, standing);
  if (message === undefined) return others;
  const { generation } = agent.metadata;
  return setCondition(
    agent.status?.conditions,
    {
      type: HANDLE_CONFLICT,
      status: 'True',
      reason: 'HandleTaken',
      message,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    },
    now,
  );
}

/** The fields of a run's claim that matter here. */
export interface RunClaim {
  at: string;
  withoutBrowser?: boolean | undefined;
}

/**
 * BrowserUnavailable=True while the agent may use a browser and its newest run found none in its image; the condition is
 * absent otherwise. While there is no run, the last known value stays. An agent that gets the right to a browser back shows
 * what its newest run says: nothing when that run was not meant to have one.
 */
export function browserConditions(agent: ControllerAgent, claims: readonly RunClaim[], now: string): Condition[] {
  const known = agent.status?.conditions ?? [];
  const newest = claims.reduce<RunClaim | undefined>((a, b) => (a === undefined || b.at > a.at ? b : a), undefined);
  const isMeant = agent.spec.tools.browser;
  if (isMeant && newest === undefined) return known;
  if (!isMeant || newest?.withoutBrowser !== true) return known.filter(({ type }) => type !== BROWSER_UNAVAILABLE);
  const message =
    'The image of the newest run has no browser, so the agent works without the browser tools. Set spec.image of the Box to ' +
    'the browser variant of the image (docs/agents.md), or spec.tools.browser of the agent to false.';
  const { generation } = agent.metadata;
  return setCondition(
    known,
    {
      type: BROWSER_UNAVAILABLE,
      status: 'True',
      reason: 'ImageWithoutBrowser',
      message,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    },
    now,
  );
}

/** Why the agent is not ready; undefined when it is. */
export function whyNotReady(agent: ControllerAgent, standing: Standing | undefined): NotReady | undefined {
  if (standing === undefined) return { reason: 'BoxNotFound', message: NOT_IN_A_BOX.inactiveReason };
  if (installMarkOf(agent.metadata) !== undefined) return { reason: 'Installing', message: INSTALLING };
  if (!standing.active) return { reason: 'NoFreeSlot', message: standing.inactiveReason ?? '' };
  const message = conflictMessage(agent, standing);
  return message === undefined ? undefined : { reason: HANDLE_CONFLICT, message };
}

function conflictMessage(agent: ControllerAgent, standing: Standing | undefined): string | undefined {
  if (standing?.conflictsWith === undefined) return undefined;
  const handle = agent.spec.handle ?? agent.metadata.name;
  return `the handle ${handle} belongs to the older agent ${standing.conflictsWith}; set another spec.handle`;
}
