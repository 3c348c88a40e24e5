import { z } from 'zod';
import { AGE_COLUMN, defineResource, dnsLabelName, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { BUDGET_RULES, Budgets, Conditions, FoldedTotals, Folding, Provider } from './common.js';

const seconds = (fallback: number, max: number, text: string) =>
  z.int().min(1).max(max).default(fallback).describe(`${text} Seconds.`);

/** Every way to hang has a bound; a run that meets one ends or returns to the queue with a named reason. */
export const RunBounds = z
  .object({
    executionSeconds: seconds(1800, 86_400, 'Longest execution of a run, counted from its claim.'),
    podCreatedSeconds: seconds(120, 3600, 'Longest time from Job to pod; then back to the queue.'),
    unschedulableSeconds: seconds(900, 86_400, 'Longest time a pod may wait for a node; then back to the queue.'),
    imagePullSeconds: seconds(300, 3600, 'Longest time for pulling images.'),
    containerCreateSeconds: seconds(120, 3600, 'Longest time for creating containers.'),
    claimSeconds: seconds(120, 3600, 'Longest time from the start of the container to its claim of the run.'),
    modelCallSeconds: seconds(
      600,
      3600,
      'Longest call of a model with all its tries, and the waiting between them; the run then ends as ModelError.',
    ),
    heartbeatSeconds: seconds(90, 3600, 'Longest silence of a run.'),
    terminationSeconds: seconds(60, 600, 'Longest time for a pod to end after its outcome or cancellation.'),
  })
  .prefault({})
  .describe('Bounds of each stage of a run.');

const usdPerMillion = (text: string) =>
  z
    .string()
    .max(24)
    .regex(/^\d{1,6}(\.\d{1,6})?$/)
    .describe(`US dollars for a million ${text}, for example "0.25".`);

const baseUrl = (text: string) =>
  z
    .string()
    .max(512)
    .regex(/^https?:\/\/[^\s?#@]+$/)
    .describe(text);

const providerAddress = (example: string) =>
  z
    .object({ baseUrl: baseUrl(`Base URL with the version, for example ${example}.`) })
    .optional()
    .describe('Address at which this Box reaches the provider.');

/** Where the providers are for one Box: a private endpoint, or a proxy that all calls must take. */
export const VendorAddresses = z
  .object({
    anthropic: providerAddress('https://llm-proxy.example.com/anthropic/v1'),
    openai: providerAddress('https://llm-proxy.example.com/openai/v1'),
    google: providerAddress('https://llm-proxy.example.com/google/v1beta'),
    mistral: providerAddress('https://llm-proxy.example.com/mistral/v1'),
    xai: providerAddress('https://llm-proxy.example.com/xai/v1'),
    deepseek: providerAddress('https://llm-proxy.example.com/deepseek/v1'),
  })
  .describe(
    "Providers that this Box reaches at another address than the installation does. They are shown a key of `credentialsSecret` alone: the installation's own key never goes to an address of a Box.",
  );

export const ModelEndpoint = z
  .object({
    baseUrl: baseUrl('Base URL with the version, for example http://vllm.models.svc:8000/v1.'),
    secretRef: z
      .object({
        name: z
          .string()
          .min(1)
          .max(253)
          .describe('Secret in the namespace of the Box, labelled boxwright.dev/credential=true.'),
        key: z.string().min(1).max(253).default('API_KEY').describe('The key of the Secret that holds the API key.'),
      })
      .optional()
      .describe('The API key of the endpoint; none is sent when absent.'),
    model: z.string().min(1).max(128).optional().describe('Model of agents that name none.'),
    contextWindow: z.int().min(1024).max(100_000_000).optional().describe('Tokens that its models can read.'),
    prices: z
      .object({ inputUsd: usdPerMillion('input tokens'), outputUsd: usdPerMillion('output tokens') })
      .optional()
      .describe('What its tokens cost; "0" is a price. The cost of its runs is unknown when absent.'),
  })
  .describe(
    'An OpenAI-compatible server (vLLM, Ollama, llama-server) behind provider `boxwright`, instead of `engine`.',
  );

/** Search engines that the gateway can ask (src/gateway/search/engines.ts). */
export const SearchEngineName = z.enum(['brave', 'tavily', 'searxng']);
export type SearchEngineName = z.output<typeof SearchEngineName>;
/** Searches of one run where nobody says another number. */
export const DEFAULT_SEARCHES_PER_RUN = 50;

/** The search engine behind the tool web_search of a Box's agents. */
export const WebSearch = z
  .object({
    engine: z
      .enum([...SearchEngineName.options, 'none'])
      .describe(
        '`brave` and `tavily` need a key (BRAVE_API_KEY, TAVILY_API_KEY) in credentialsSecret, `searxng` a baseUrl; `none`: the agents of this Box have no web_search, whatever the installation has.',
      ),
    baseUrl: baseUrl(
      'Address of a SearXNG of your own, for example http://searxng.search.svc:8080, or of a proxy; it is shown a key of `credentialsSecret` alone.',
    ).optional(),
    searchesPerRun: z.int().min(1).max(1000).default(DEFAULT_SEARCHES_PER_RUN).describe('Most searches of one run.'),
  })
  .describe(
    'The search engine behind the tool web_search; that of the installation when absent, if egress.mode is `internet`.',
  );

/** Exceptions from the rule that addresses which users set are public and https. */
const TrustedHost = z
  .object({
    host: z
      .string()
      .min(1)
      .max(259)
      .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?|\[[0-9a-f:]+\])(:\d{1,5})?$/)
      .describe(
        'Host as in the address of the MCP server, with the port unless it is the usual one: mcp.corp.internal:8443.',
      ),
    http: z
      .boolean()
      .default(false)
      .describe('Whether plain http is allowed too; credentials then travel unprotected.'),
    ca: z.string().max(32_768).optional().describe('PEM certificates to trust instead of the public ones.'),
  })
  .describe('One host that may be private or in the cluster.');

export const UntrustedRuns = z
  .object({
    memory: z
      .enum(['write', 'refuse'])
      .default('write')
      .describe(
        'Notes: `write` saves them with a mark that later runs see; `refuse` takes memory_save and memory_delete away.',
      ),
    selfImprovement: z
      .enum(['propose', 'refuse', 'allow'])
      .default('propose')
      .describe(
        'Changes of the agent itself (soul, skills, MCP servers): `propose` asks a person first, `refuse` takes the tools away, `allow` treats them as those of any run.',
      ),
    callAgents: z.enum(['box', 'refuse']).default('box').describe('Calls of other agents: those of this Box, or none.'),
  })
  .prefault({})
  .describe('What runs that came from outside, and those that they call, may do that outlives them.');

export const BoxSpec = z.object({
  workspace: z.string().min(1).max(57).describe('The Workspace that this Box belongs to. Immutable.'),
  displayName: z.string().max(128).optional().describe('Name shown to people; the object name when absent.'),
  engine: z
    .enum(['scripted'])
    .optional()
    .describe(
      'What stands behind provider `boxwright`: `scripted` is the deterministic engine that needs no key and no network.',
    ),
  endpoint: ModelEndpoint.optional(),
  vendors: VendorAddresses.optional(),
  webSearch: WebSearch.optional(),
  budget: Budgets,
  credentialsSecret: z
    .string()
    .min(1)
    .max(253)
    .optional()
    .describe(
      "Secret in the namespace of the Box with the keys of model providers (ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY, MISTRAL_API_KEY, XAI_API_KEY, DEEPSEEK_API_KEY) and of its search engine, labelled boxwright.dev/credential=true; the installation's own when absent.",
    ),
  maxRunning: z
    .int()
    .min(1)
    .max(10_000)
    .default(20)
    .describe('Runs of this Box that may work at once; further ones queue.'),
  maxRunningPerAgent: z
    .int()
    .min(1)
    .max(10_000)
    .default(5)
    .describe('Runs of one agent that may work at once; further ones queue.'),
  weight: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'Share of free places when Boxes compete: one of weight 2 starts twice as many runs as one of weight 1. 1 when absent.',
    ),
  paused: z
    .boolean()
    .optional()
    .describe('True: no further run of this Box starts; runs are accepted and wait, working ones go on.'),
  kueueQueueName: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .optional()
    .describe(
      'LocalQueue of Kueue in the namespace of this Box: Jobs are created suspended and Kueue starts them. Its controller must be named in admission.systemUserPrefixes of the chart.',
    ),
  bounds: RunBounds,
  egress: z
    .object({
      mode: z
        .enum(['none', 'internet'])
        .default('none')
        .describe('`none`: no network beyond the gateway, not even DNS. `internet`: public addresses only.'),
      requireEnforcement: z
        .boolean()
        .default(true)
        .describe(
          'Whether runs wait until a probe has shown that the network enforces the policies (condition NetworkEnforced). `false`: runs start in any case and may reach the cluster and its networks when nothing stops them.',
        ),
      trustedHosts: z
        .array(TrustedHost)
        .max(32)
        .optional()
        .describe(
          'Hosts of MCP servers that the gateway may connect to for agents of this Box although their addresses are private or in the cluster. All others must be public and https.',
        ),
    })
    .prefault({})
    .describe('What the pods of runs may reach, and the gateway for them.'),
  untrusted: UntrustedRuns,
  image: z
    .string()
    .max(512)
    .optional()
    .describe(
      "Image of the container `tools` of run pods, made from the installation's image boxwright-tools, for example with more command-line tools; the installation's own when absent.",
    ),
  imagePullSecrets: z
    .array(z.string().min(1).max(253))
    .max(16)
    .optional()
    .describe(
      "Secrets of type kubernetes.io/dockerconfigjson in the namespace of the Box, with which the images of run pods are pulled; those of the chart's image.runPullSecrets when absent.",
    ),
  runtimeClassName: z.string().max(253).optional().describe('RuntimeClass of run pods, for example gvisor.'),
  hostUsers: z
    .boolean()
    .optional()
    .describe(
      'hostUsers of run pods. `false`: always in user namespaces of their own; pods do not start on nodes that have none. `true`: never. When absent: where every node reports them and there is no runtimeClassName.',
    ),
  resources: z
    .object({
      memory: z.string().max(16).default('512Mi').describe('Memory limit of the tools container.'),
      runnerMemory: z
        .string()
        .max(16)
        .default('256Mi')
        .describe(
          'Memory limit of the runner container, which holds the conversation; a run that needs more ends with OOMKilled.',
        ),
      cpu: z.string().max(16).default('1').describe('CPU limit of the tools container.'),
      ephemeralStorage: z.string().max(16).default('2Gi').describe('Local disk of a run pod.'),
    })
    .prefault({})
    .describe('Resources of a run pod.'),
  workspaceVolume: z
    .object({
      mode: z
        .enum(['auto', 'persistent', 'ephemeral'])
        .default('auto')
        .describe(
          '`persistent`: the files of an agent are kept between its runs on a volume of its own; runs wait while there is no StorageClass. `ephemeral`: they go with the pod of a run. `auto`: persistent where the cluster has a StorageClass for it.',
        ),
      size: z.string().max(16).default('5Gi').describe('Size of volumes that are made from now on.'),
      storageClassName: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('StorageClass of volumes that are made from now on; the default one of the cluster when absent.'),
    })
    .prefault({})
    .describe('Where /workspace of the agents is; condition WorkspacePersistent of an agent says what came out of it.'),
  quota: z
    .object({
      pods: z.int().min(1).max(10_000).default(50).describe('Pods in the namespace.'),
      memory: z.string().max(16).default('64Gi').describe('Sum of memory limits in the namespace.'),
      cpu: z.string().max(16).default('64').describe('Sum of CPU limits in the namespace.'),
      volumes: z.int().min(0).max(10_000).default(200).describe('Volume claims in the namespace.'),
      storage: z.string().max(16).default('1Ti').describe('Sum of the sizes of volume claims in the namespace.'),
    })
    .prefault({})
    .describe('ResourceQuota of the namespace.'),
});

/** Condition NetworkEnforced holds the verdict; this is what it stands on. */
export const NetworkProbe = z
  .object({
    digest: z.string().max(64).describe('Digest of the policies and targets that were probed.'),
    jobUid: z.string().max(64).describe('UID of the Job whose report was read.'),
    probedAt: z.string().max(32).describe('When its report was read.'),
    result: z
      .enum(['Enforced', 'NetworkNotEnforced', 'GatewayUnreachable', 'ProbeFailed'])
      .describe('What it said; ProbeFailed leaves an earlier verdict as it is.'),
  })
  .describe('The latest network probe.');
export type NetworkProbe = z.output<typeof NetworkProbe>;

/** What the probe of a Box's own endpoint found; the first one is good. */
export const ENDPOINT_RESULTS = [
  'ToolCallsWork',
  'KeyNotUsable',
  'EndpointUnavailable',
  'EndpointRefused',
  'ModelNotFound',
  'ToolCallsRefused',
  'NoToolCall',
] as const;
export type EndpointResult = (typeof ENDPOINT_RESULTS)[number];

/** Condition EndpointReady says the same; this is what it stands on. Written by the gateway. */
export const EndpointProbe = z
  .object({
    digest: z.string().max(64).describe('Digest of what of spec.endpoint was probed.'),
    keyVersion: z
      .string()
      .max(64)
      .describe('resourceVersion of the Secret whose key was sent; empty when there was none. Never the key.'),
    probedAt: z.string().max(32).describe('When this was found; a failure that stays the same is not written again.'),
    result: z.enum(ENDPOINT_RESULTS).describe('What the probe of the endpoint found.'),
    message: z.string().max(1024).describe('The same for a person.'),
  })
  .describe('The latest probe of spec.endpoint: a list of its models, and one call with a tool.');
export type EndpointProbe = z.output<typeof EndpointProbe>;

export const BoxStatus = z.object({
  conditions: Conditions,
  namespace: z.string().max(63).optional().describe('The hardened namespace of this Box.'),
  agents: z.int().min(0).optional().describe('Number of Agents in this Box.'),
  running: z.int().min(0).optional().describe('Number of runs that hold a Job.'),
  queued: z.int().min(0).optional().describe('Number of runs that wait in the queue.'),
  networkProbe: NetworkProbe.optional(),
  endpointProbe: EndpointProbe.optional(),
  availableProviders: z
    .array(Provider)
    .max(Provider.options.length)
    .optional()
    .describe(
      'Providers that runs of this Box can call, as the gateway saw their keys within the last minute; never a key.',
    ),
  folded: FoldedTotals,
  folding: Folding,
});

/** A group of agents = one hardened namespace `bw-<box>`. */
export const Boxes = defineResource({
  kind: 'Box',
  plural: 'boxes',
  namespaced: false,
  description: 'A group of agents in one hardened namespace, with its limits, network rules and model endpoint.',
  spec: BoxSpec,
  status: BoxStatus,
  columns: [
    {
      name: 'Workspace',
      jsonPath: '.spec.workspace',
      type: 'string',
      description: 'The Workspace that it belongs to.',
    },
    { name: 'Namespace', jsonPath: '.status.namespace', type: 'string', description: 'Namespace of the Box.' },
    { name: 'Agents', jsonPath: '.status.agents', type: 'integer', description: 'Number of Agents in this Box.' },
    { name: 'Running', jsonPath: '.status.running', type: 'integer', description: 'Number of runs that hold a Job.' },
    {
      name: 'Ready',
      jsonPath: ".status.conditions[?(@.type=='Ready')].status",
      type: 'string',
      description: 'Whether runs can start here.',
    },
    AGE_COLUMN,
  ],
  rules: [
    dnsLabelName('Box', 60),
    ...BUDGET_RULES,
    {
      rule: `!self.metadata.name.startsWith('ws-')`,
      message: 'metadata.name of Box must not begin with ws-: that prefix belongs to workspace namespaces',
    },
    {
      rule: `!has(self.spec.engine) || !has(self.spec.endpoint)`,
      message: 'spec.engine and spec.endpoint exclude each other: one model stands behind provider boxwright',
      fieldPath: '.spec.endpoint',
    },
    {
      rule: `!has(self.spec.webSearch) || self.spec.webSearch.engine != 'searxng' || has(self.spec.webSearch.baseUrl)`,
      message: 'spec.webSearch.baseUrl is required for engine searxng: it has no address of its own',
      fieldPath: '.spec.webSearch',
    },
    immutableSpecField('workspace', 'spec.workspace cannot be changed: create another Box'),
  ],
});
export type Box = Resource<z.output<typeof BoxSpec>, z.output<typeof BoxStatus>>;
