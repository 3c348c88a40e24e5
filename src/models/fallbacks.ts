/** The models that may answer in the place of an agent's own one, from their names in its spec. */
import { Provider } from '../api/v1alpha1/common.js';
import { KNOWN_MODELS, findModel } from './catalog.js';

export interface ModelName {
  provider: Provider;
  model: string;
}

/**
 * `<provider>/<model>`; a model alone is the agent's provider's, unless only another one is known to have it. Models of servers
 * have slashes in their names as well.
 */
export function fallbacksOf(names: readonly string[], own: Provider): ModelName[] {
  return names.map((name) => {
    const slash = name.indexOf('/');
    const provider = Provider.safeParse(name.slice(0, Math.max(0, slash)));
    if (provider.success) return { provider: provider.data, model: name.slice(slash + 1) };
    const isOwn = own === 'boxwright' || findModel(own, name) !== undefined;
    const other = isOwn ? undefined : KNOWN_MODELS.find((known) => findModel(known.provider, name) !== undefined);
    return { provider: other?.provider ?? own, model: name };
  });
}
