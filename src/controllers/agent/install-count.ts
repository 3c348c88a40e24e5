/**
 * Counting installs (src/api/install-count.ts): the mark of an agent goes into the number of its template, exactly once,
 * whatever crashes in between and however many controllers with old caches work at the same time.
 *
 * GET the template; GET the agent live; if the agent has its mark and the template does not name it in `counting`, write
 * number and name under the version of the template that was read; then take the mark away. A name leaves `counting` only
 * after its mark is gone: the mark was still there after the template was read, so if anybody had counted it before, what
 * was read would name it; if anybody counts it later, the version has moved and the write answers 409.
 */
import { uncountedInstallOf } from '../../api/install-count.js';
import type { InstalledTemplate } from '../../api/install-count.js';
import { ANNOTATION_UNCOUNTED_INSTALL } from '../../api/labels.js';
import { objectKey } from '../../api/meta.js';
import { AgentTemplates, MAX_COUNTING } from '../../api/v1alpha1/agent-template.js';
import type { AgentTemplate, CountedAgent } from '../../api/v1alpha1/agent-template.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { isConflict, isNotFound, orUndefined } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { refOf } from '../common/finalizer.js';
import type { ControllerAgent } from '../../projections/agent.js';

type CountApi = Pick<KubeApi, 'get' | 'patch'>;

/** Lost races before the attempt is given up; the controller engine then retries it with backoff. */
const MAX_ATTEMPTS = 8;

/** Too many installs are being counted at the moment. */
export class CountingFullError extends Error {
  override readonly name = 'CountingFullError';
  readonly retrySoon = true;
}

/** Counts the install that the agent stands for, if it is not counted yet, and moves the draft to what was written. */
export async function countInstall(api: CountApi, draft: ControllerAgent, signal: AbortSignal): Promise<void> {
  const template = uncountedInstallOf(draft.metadata);
  if (template === undefined) return;
  const agent = { agent: objectKey(draft.metadata), uid: draft.metadata.uid ?? '' };
  for (let attempt = 1; ; attempt++) {
    try {
      await countOnce(api, template, agent, signal);
      break;
    } catch (error) {
      if (!isConflict(error) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
  const { resourceVersion } = draft.metadata;
  const body = { metadata: { resourceVersion, annotations: { [ANNOTATION_UNCOUNTED_INSTALL]: null } } };
  const written = await api.patch(Agents, refOf(draft.metadata), body, { type: 'merge', signal });
  draft.metadata = written.metadata;
}

async function countOnce(
  api: CountApi,
  ref: InstalledTemplate,
  agent: CountedAgent,
  signal: AbortSignal,
): Promise<void> {
  const template = await readTemplate(api, ref, signal);
  // A template that is gone, or a successor of the same name, is not counted any more.
  if (template?.metadata.uid !== ref.uid) return;
  const { installs = 0, counting = [] } = template.status ?? {};
  if (counting.some(({ uid }) => uid === agent.uid)) return;
  const [isOpen, ...areOpen] = await Promise.all([agent, ...counting].map((one) => isMarked(api, one, signal)));
  if (isOpen !== true) return;
  const still = counting.filter((_one, index) => areOpen[index]);
  if (still.length >= MAX_COUNTING)
    throw new CountingFullError('too many installs of this template end at this moment');
  const body = {
    metadata: { resourceVersion: template.metadata.resourceVersion },
    status: { installs: installs + 1, counting: [...still, agent] },
  };
  try {
    await api.patch(AgentTemplates, refOf(ref), body, { type: 'merge', subresource: 'status', signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

async function readTemplate(
  api: CountApi,
  ref: InstalledTemplate,
  signal: AbortSignal,
): Promise<AgentTemplate | undefined> {
  return await orUndefined(api.get(AgentTemplates, refOf(ref), { signal }));
}

/** Whether the agent waits to be counted, as the API server has it now. */
async function isMarked(api: CountApi, { agent, uid }: CountedAgent, signal: AbortSignal): Promise<boolean> {
  const [namespace = '', name = ''] = agent.split('/');
  try {
    const { metadata } = await api.get(Agents, { namespace, name }, { signal });
    return metadata.uid === uid && uncountedInstallOf(metadata) !== undefined;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
