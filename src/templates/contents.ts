/** What a template points to. Pure. */
import type { AgentTemplate, TemplateContent } from '../api/v1alpha1/agent-template.js';

/** Every content that a template points to, each once. */
export function contentsOf({ spec }: { spec: Pick<AgentTemplate['spec'], 'draft' | 'published'> }): TemplateContent[] {
  const all = new Map([spec.draft, ...spec.published].map((ref) => [ref.content, ref]));
  return [...all.values()];
}
