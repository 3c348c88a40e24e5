import type { ScopeDeps } from '../scope.js';
import type { TemplateProjection } from '../../projections/agent-template.js';
import { UNCOUNTED_BY_TEMPLATE } from '../../projections/agent.js';

/**
 * How often the template was installed: what is counted, and the installs whose mark the controller has not taken over yet
 * (src/api/install-count.ts). No request.
 */
export function installsOf({ caches }: Pick<ScopeDeps, 'caches'>, template: TemplateProjection): number {
  const counted = new Set(template.counting);
  const uncounted = caches.Agent.byIndex(UNCOUNTED_BY_TEMPLATE, template.uid).filter(({ uid }) => !counted.has(uid));
  return template.installs + uncounted.length;
}
