/**
 * Removes parts of templates that nothing points to: a process died between storing them and the patch that points to them, or
 * the answer to that patch got lost. Runs once an hour, on metadata alone; writes nothing when there is nothing to remove.
 */
import { AgentTemplateParts, AgentTemplates } from '../../api/v1alpha1/agent-template.js';
import type { KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import type { ControllerPart } from '../common/controller-part.js';
import { DELETES_AT_ONCE, deleteObjects } from '../common/delete-objects.js';
import { oldParts, orphansOf } from './orphans.js';

export interface TemplatePartsDependencies {
  api: Pick<KubeApi, 'list' | 'delete'>;
  clock: Clock;
  log: Logger;
}

const PASS_MS = 60 * 60 * 1000;
/** Time until the next pass when one pass could not remove all orphans. */
const NEXT_MS = 60_000;
/** A template with 100 versions has about 100 KB. */
const TEMPLATE_PAGE_SIZE = 50;
const WHOLE_INSTALLATION = 'installation';

/** The sweep of AgentTemplateParts. */
export function createTemplatePartsController(deps: TemplatePartsDependencies): ControllerPart {
  return {
    name: 'template-parts',
    workers: 1,
    watch: (enqueue) => {
      enqueue(WHOLE_INSTALLATION);
      return () => undefined;
    },
    reconcile: (_key, signal) => sweep(deps, signal),
  };
}

async function sweep({ api, clock, log }: TemplatePartsDependencies, signal: AbortSignal): Promise<ReconcileResult> {
  const parts = await api.list(AgentTemplateParts, { metadataOnly: true, signal });
  const old = oldParts(parts.items, clock.now());
  if (old.length === 0) return { requeueAfterMs: PASS_MS };
  // After the parts: what points to a part that was seen is seen as well.
  const templates = await api.list(AgentTemplates, { pageSize: TEMPLATE_PAGE_SIZE, signal });
  const orphans = orphansOf(old, templates.items);
  if (orphans.length === 0) return { requeueAfterMs: PASS_MS };
  log.info({ parts: orphans.length }, 'removing parts that no template points to');
  await deleteObjects(api, AgentTemplateParts, orphans, signal);
  return { requeueAfterMs: orphans.length > DELETES_AT_ONCE ? NEXT_MS : PASS_MS };
}
