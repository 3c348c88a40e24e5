import { INDEX } from '../caches.js';
import type { ScopeDeps } from '../scope.js';
import type { TemplateView } from '../views.js';

/**
 * How often the template was installed: what is counted, and the installs whose mark the controller has not taken over yet
 * (src/api/install-count.ts). No request.
 */
export function installsOf({ caches }: Pick<ScopeDeps, 'caches'>, template: TemplateView): number {
  const counted = new Set(template.counting);
  const uncounted = caches.Agent.byIndex(INDEX.uncountedInstalls, template.uid).filter(({ uid }) => !counted.has(uid));
  return template.installs + uncounted.length;
}
