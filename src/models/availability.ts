/** Which providers a Box can reach, in the words that tools show (DESIGN 5). */
import type { Provider } from '../api/v1alpha1/common.js';

/** What of a Box decides it. */
export interface BoxModels {
  name: string;
  engine?: string | undefined;
  /** The OpenAI-compatible server of the Box. */
  endpoint?: object | undefined;
  /** Secret of the Box with the keys of vendors. */
  credentialsSecret?: string | undefined;
}

/** Why no run of that Box can use the provider, with what to do; undefined when runs can. */
export function whyUnavailable(box: BoxModels, provider: Provider): string | undefined {
  if (provider !== 'boxwright') {
    if (box.credentialsSecret !== undefined) return undefined;
    return `Box ${box.name} has no key for provider ${provider}: runs will end with the error ModelNotConfigured`;
  }
  if (box.engine !== undefined || box.endpoint !== undefined) return undefined;
  return `nothing stands behind provider boxwright in Box ${box.name}: runs will end with the error ModelNotConfigured until an administrator sets spec.engine of the Box`;
}

/** The line that would make the provider available, for list_models. */
export function howToConfigure(box: BoxModels, provider: Provider): string {
  const line = `kubectl patch box ${box.name} --type merge -p '{"spec":{"engine":"scripted"}}'`;
  return provider === 'boxwright'
    ? `nothing stands behind provider boxwright in Box ${box.name}; run: ${line}`
    : `this installation has no credentials for provider ${provider}; use provider boxwright${box.engine === undefined && box.endpoint === undefined ? `, after: ${line}` : ''}`;
}
