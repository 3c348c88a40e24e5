/** How a tool changes the agent of its run. */
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { Agents, type Agent } from '../../api/v1alpha1/agent.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { tryAgain } from '../errors.js';
import { ToolRefusal, type ToolContext } from './tool-context.js';

const MAX_TRIES = 5;
/** Of the agent as JSON. etcd takes half a MiB more, which leaves room for what others write into the status. */
const MAX_AGENT_BYTES = 1024 * 1024;

/** What goes into the agent; fields that are not named stay. */
export interface SelfChange {
  /** Tells who does it; written first. */
  status: Partial<NonNullable<Agent['status']>>;
  spec: Partial<Agent['spec']>;
}

/**
 * Two writes, each under the version that was read: who did it stands in the status before it is done. `changeOf` gets the
 * agent as it is now, again when somebody else was faster, and returns undefined when it is as wanted. Resolves to whether
 * something was written. Rejects with a {@link ToolRefusal} when the agent is gone or going, with 503 when it changes all the time.
 */
export async function changeSelf(
  api: Pick<KubeApi, 'get' | 'patch'>,
  context: ToolContext,
  changeOf: (agent: Agent) => SelfChange | undefined,
): Promise<boolean> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const agent = await readSelf(api, context);
    const change = changeOf(agent);
    if (change === undefined) return false;
    expectRoom(agent, change);
    try {
      await write(api, context, agent, change);
      return true;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  throw tryAgain('the agent changes too often');
}

function expectRoom(agent: Agent, { spec, status }: SelfChange): void {
  const changed = { ...agent, spec: { ...agent.spec, ...spec }, status: { ...agent.status, ...status } };
  const bytes = bytesOf(changed);
  if (bytes <= MAX_AGENT_BYTES || bytes <= bytesOf(agent)) return;
  throw new ToolRefusal(`with this you would have ${bytes} bytes; at most ${MAX_AGENT_BYTES} (1 MiB) are possible`);
}

function bytesOf(agent: object): number {
  return Buffer.byteLength(JSON.stringify(agent));
}

async function write(
  api: Pick<KubeApi, 'patch'>,
  { namespace, run }: ToolContext,
  agent: Agent,
  { status, spec }: SelfChange,
): Promise<void> {
  const ref = { namespace, name: agent.metadata.name };
  const told = { metadata: versionOf(agent), status };
  const kept = await api.patch(Agents, ref, told, { type: 'merge', subresource: 'status' });
  const metadata = { ...versionOf(kept), annotations: { [ANNOTATION_REQUESTED_BY]: `run:${run.metadata.name}` } };
  await api.patch(Agents, ref, { metadata, spec }, { type: 'merge' });
}

async function readSelf(api: Pick<KubeApi, 'get'>, { namespace, agent }: ToolContext): Promise<Agent> {
  try {
    const found = await api.get(Agents, { namespace, name: agent.name });
    if (found.metadata.uid === agent.uid && found.metadata.deletionTimestamp === undefined) return found;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  throw new ToolRefusal('this agent is being deleted');
}

/** The precondition of a write. */
function versionOf({ metadata: { uid, resourceVersion } }: Agent) {
  return { uid, resourceVersion };
}
