/**
 * Credentials of an agent's connectors and MCP servers: keys of one Secret beside the agent. Specs hold
 * references, never values; only the gateway reads the Secret.
 */

/** On the Secret: it may be read as credentials of the agent. */
export const LABEL_CREDENTIAL = 'boxwright.dev/credential';
/** Keys of model vendors in the Secret that a Box or the installation names for them. */
export const PROVIDER_KEYS = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  google: 'GOOGLE_API_KEY',
  mistral: 'MISTRAL_API_KEY',
  xai: 'XAI_API_KEY',
  deepseek: 'DEEPSEEK_API_KEY',
} as const;

/** On the Secret: the hosts that its values may go to, separated by commas. */
export const ANNOTATION_HOSTS = 'boxwright.dev/hosts';

/** On the Secret: its values may also be handed to stdio MCP servers in the pods of the agent, whose code then has them. */
export const ANNOTATION_EXPOSE = 'boxwright.dev/expose-to-tools';

/** Most names that are told of one Secret. */
export const MAX_SECRET_NAMES = 100;

/** Name of the Secret of an agent, in the namespace of its Box. */
export function secretNameOf(agent: string): string {
  return `${agent}-secrets`;
}

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]{0,63})\}/g;
const WHOLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** Whether a key of the Secret can be referred to. */
export function isSecretName(text: string): boolean {
  return WHOLE_NAME.test(text);
}

/** The names in `${NAME}` references of texts, sorted, each once. */
function referencesIn(texts: readonly string[]): string[] {
  const names = texts.flatMap((text) => [...text.matchAll(REFERENCE)].map(([, name]) => name ?? ''));
  return [...new Set(names)].sort();
}

/** What a server or connector may hold references in. */
export interface Referring {
  url?: string | undefined;
  headers?: readonly { value: string }[] | undefined;
  args?: readonly string[] | undefined;
  env?: readonly { value: string }[] | undefined;
}

/** The names that a server or connector refers to. */
export function referencesOf({ url, headers, args, env }: Referring): string[] {
  const values = [...(headers ?? []), ...(env ?? [])].map(({ value }) => value);
  return referencesIn([...(url === undefined ? [] : [url]), ...values, ...(args ?? [])]);
}

/** Whether runs of the agent may need a Secret: a connector may hold references, a server of its own says so. */
export function usesCredentials({
  connectors = [],
  mcpServers = [],
}: {
  connectors?: readonly string[] | undefined;
  mcpServers?: readonly Referring[] | undefined;
}): boolean {
  return connectors.length > 0 || mcpServers.some((server) => referencesOf(server).length > 0);
}

/** The text with its references replaced. `valueOf` gives the value of a name. */
export function replaceReferences(text: string, valueOf: (name: string) => string): string {
  return text.replace(REFERENCE, (_whole, name: string) => valueOf(name));
}

/** The host of an address, or undefined when it has none that is fixed. */
export function hostOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  // A reference in it stands for no host.
  return /[${}]/.test(hostname) ? undefined : hostname;
}

/** The hosts of the annotation. */
export function parseHosts(annotation: string | undefined): string[] {
  const hosts = (annotation ?? '').split(',').map((host) => host.trim().toLowerCase());
  return [...new Set(hosts.filter((host) => host !== ''))].sort();
}
