/** The values of the Helm chart as a schema: charts/boxwright/values.schema.json comes from here; unknown keys are refused. */
import { z } from 'zod';
import { SearchEngineName } from '../api/v1alpha1/box.js';
import { Provider } from '../api/v1alpha1/common.js';

/** A range of IPv4 or IPv6 addresses. */
const CIDR =
  /^(((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\/(3[0-2]|[12]?[0-9])|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}\/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$/;
/** What a user name of Kubernetes consists of: nothing that would end a text in a rule of admission. */
const USER_NAME = /^[A-Za-z0-9][A-Za-z0-9:._@/+-]{0,252}$/;
const Quantity = z.union([z.string(), z.number()]);
const Resources = z.strictObject({
  requests: z.record(z.string(), Quantity).optional(),
  limits: z.record(z.string(), Quantity).optional(),
});
const Texts = z.record(z.string(), z.string());
const objects = z.array(z.looseObject({}));

/** What each Deployment of the control plane has. */
const Process = {
  replicas: z.int().min(1).max(50).describe('Pods of this process.'),
  resources: Resources,
  nodeSelector: Texts.describe('Labels of the nodes on which its pods run.'),
  tolerations: objects.describe('Taints of nodes that its pods tolerate.'),
  affinity: z.looseObject({}).describe('Affinity of its pods.'),
  topologySpreadConstraints: objects.describe('How its pods are spread; over nodes, softly, when empty.'),
  priorityClassName: z.string().max(253).describe('PriorityClass of its pods.'),
  podAnnotations: Texts.describe('Further annotations of its pods.'),
  podLabels: Texts.describe('Further labels of its pods.'),
  serviceAccount: z.strictObject({ annotations: Texts.describe('Annotations of its service account.') }),
  extraEnv: objects.describe('Further environment of its container.'),
  extraVolumes: objects.describe('Further volumes of its pods.'),
  extraVolumeMounts: objects.describe('Further mounts of its container.'),
};

/** For the processes that share their work among all pods. */
const Autoscaling = z
  .strictObject({
    enabled: z.boolean(),
    minReplicas: z.int().min(1).max(50),
    maxReplicas: z.int().min(1).max(50),
    targetCPUUtilizationPercentage: z.int().min(1).max(100),
  })
  .describe('A HorizontalPodAutoscaler by CPU, in the place of replicas.');

export const ChartValues = z.strictObject({
  publicUrl: z
    .string()
    .regex(/^(https?:\/\/[^\s/]+(\/[^\s]*)?)?$/)
    .describe('Address under which clients reach the API. Required for an install.'),
  image: z.strictObject({
    repository: z.string().min(1).describe('Image of the control plane; with -runner and -tools those of run pods.'),
    tag: z.string().describe('Tag of all three; the appVersion of the chart when empty.'),
    runner: z.string().max(512).describe('Whole name of another image for the container runner of run pods.'),
    tools: z.string().max(512).describe('Whole name of another image for the container tools of run pods.'),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
    pullSecrets: z.array(z.string()),
    runPullSecrets: z.array(z.string()).describe('Pull secrets of run pods, in the namespace of each Box.'),
  }),
  logLevel: z.enum(['error', 'warn', 'info', 'debug']),
  api: z.strictObject({
    ...Process,
    autoscaling: Autoscaling,
    service: z.strictObject({
      annotations: Texts,
      loadBalancerClass: z.string().max(253).describe('Only for type LoadBalancer.'),
      type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
      port: z.int().min(1).max(65_535),
      nodePort: z.int().min(0).max(65_535),
    }),
    allowedOrigins: z
      .array(z.string().regex(/^(null|[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\s/,]*)$/))
      .describe('Origins of web pages that may call the MCP endpoint, besides that of publicUrl.'),
    allowedHosts: z
      .array(z.string().regex(/^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/))
      .describe('Further host names by which the MCP endpoint may be called.'),
    trustedProxies: z.array(z.string().regex(CIDR)).describe('Ranges of proxies whose X-Forwarded-For is believed.'),
    ingress: z.strictObject({
      enabled: z.boolean(),
      className: z.string(),
      host: z.string(),
      tlsSecretName: z.string(),
      annotations: z.record(z.string(), z.string()),
      certManager: z
        .strictObject({ issuer: z.string().max(253), kind: z.enum(['ClusterIssuer', 'Issuer']) })
        .describe('Issuer of cert-manager that makes the TLS Secret; none when empty.'),
      triggers: z
        .strictObject({ enabled: z.boolean(), annotations: Texts })
        .describe('A second Ingress for trigger URLs alone, so that they stay out of access logs.'),
    }),
    httpRoute: z
      .strictObject({
        enabled: z.boolean(),
        parentRefs: objects.describe('Gateways that serve it.'),
        hostnames: z.array(z.string().max(253)).describe('That of publicUrl when empty.'),
        annotations: Texts,
        labels: Texts,
      })
      .describe('An HTTPRoute of the Gateway API, instead of or beside the Ingress.'),
  }),
  gateway: z.strictObject({
    ...Process,
    autoscaling: Autoscaling,
    modelCredentialsSecret: z.string().describe('Secret of the release namespace with the keys of model providers.'),
    modelBaseUrls: z
      .partialRecord(Provider.exclude(['boxwright']), z.string().regex(/^https?:\/\/[^\s?#@]+$/))
      .describe('Base URLs of vendors that differ from their own.'),
    webSearch: z
      .strictObject({
        engine: z.union([SearchEngineName, z.literal('')]).describe('Empty means none.'),
        baseUrl: z
          .string()
          .regex(/^(https?:\/\/[^\s?#@]+)?$/)
          .describe('Address of the engine; empty means its own.'),
      })
      .describe('Search engine of Boxes that name none.'),
    proxy: z
      .strictObject({
        url: z.string().regex(/^(https?:\/\/[^\s/]+\/?)?$/),
        noProxy: z
          .array(z.string().regex(/^[^\s,]+$/))
          .describe('Hosts that are called directly; a leading dot means all below.'),
      })
      .describe('HTTP proxy for calls of model providers and search engines.'),
    modelPricesConfigMap: z.string().min(1).describe('ConfigMap of the release namespace with prices of models.'),
  }),
  controller: z.strictObject({
    ...Process,
    maxRunning: z.int().min(1).describe('Runs of the installation that may work at once.'),
    retention: z.strictObject({
      runsPerAgent: z.int().min(1).describe('Finished runs of an agent that are kept for maxAgeHours.'),
      minAgeHours: z.int().min(1).describe('No run is removed for the number of its agent before this age.'),
      maxAgeHours: z.int().min(1).describe('Finished runs are removed after this age.'),
      maxFinished: z.int().min(1).describe('Finished runs of the installation.'),
      boxMebibytes: z.int().min(1).describe('Stored inputs and transcripts of finished runs, each Box.'),
      installationMebibytes: z.int().min(1).describe('Stored inputs and transcripts of finished runs.'),
    }),
  }),
  runs: z
    .strictObject({
      annotations: Texts,
      labels: Texts,
      nodeSelector: Texts,
      tolerations: objects,
      nodeAffinity: z.looseObject({}),
      priorityClassName: z.string().max(253),
    })
    .describe('What the pods of runs and of network probes have besides.'),
  archive: z.strictObject({
    postgres: z.strictObject({
      secretName: z
        .string()
        .max(253)
        .describe(
          'Secret of the release namespace whose key `url` is the URL of a PostgreSQL database; none when empty.',
        ),
      readKey: z
        .string()
        .max(253)
        .describe('Key of that Secret with the URL for API and gateway: a user who may only select is enough.'),
    }),
  }),
  metrics: z.strictObject({
    podMonitor: z.strictObject({
      enabled: z.boolean().describe('Makes a PodMonitor; needs the CRDs of the Prometheus operator.'),
      labels: z.record(z.string(), z.string()).describe('Labels by which the Prometheus selects it.'),
      interval: z.string().regex(/^\d+(ms|s|m)$/),
    }),
    prometheusRule: z.strictObject({
      enabled: z.boolean().describe('Makes a PrometheusRule with the alerts of docs/operations.md.'),
      labels: z.record(z.string(), z.string()).describe('Labels by which the Prometheus selects it.'),
      runbookUrl: z
        .string()
        .describe('Address of docs/runbooks.md for your people: runbook_url of the alerts begins with it.'),
      queuedHours: z.number().positive().describe('Alert when a run waits for longer.'),
    }),
    grafanaDashboard: z.strictObject({
      enabled: z.boolean().describe("Makes a ConfigMap with the dashboard, for the sidecar of Grafana's chart."),
      labels: Texts.describe('Labels by which the sidecar finds it.'),
      annotations: Texts.describe('For example the folder of the dashboard.'),
    }),
  }),
  extraCaBundle: z
    .strictObject({ configMap: z.string().max(253), key: z.string().min(1).max(253) })
    .describe('ConfigMap of the release namespace with further certificate authorities in PEM; none when empty.'),
  clusterCidrs: z.array(z.string().regex(CIDR)).describe('Ranges of the cluster that runs must never reach.'),
  networkPolicy: z.strictObject({
    enabled: z.boolean().describe('Makes NetworkPolicies around the pods of the control plane.'),
    metricsNamespaces: z
      .array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/))
      .describe('Namespaces whose pods may reach port 8081; all but those of Boxes and Workspaces when empty.'),
    egress: z
      .strictObject({
        api: z.array(z.looseObject({})),
        gateway: z.array(z.looseObject({})),
        controller: z.array(z.looseObject({})),
      })
      .describe('Rules of NetworkPolicy for what each process may connect to; open when empty.'),
  }),
  admission: z.strictObject({
    podCreators: z.array(z.string().regex(USER_NAME)).min(1).describe('User names that create the pods of Jobs.'),
    systemUserPrefixes: z
      .array(z.string().regex(USER_NAME))
      .min(1)
      .describe('User names of built-in controllers, or prefixes that end with a colon.'),
    pullSecretUsers: z
      .array(z.string())
      .min(1)
      .describe('User names that may put pull secrets on the service account of runs.'),
  }),
  crds: z.strictObject({ install: z.boolean() }),
  global: z.looseObject({}).optional().describe('Set by parent charts.'),
});

/**
 * The JSON Schema that Helm checks. No value has to be there: `helm upgrade --reuse-values` brings those of an older chart
 * alone, and the templates fill in what it did not know.
 */
export function chartValuesSchema(): object {
  return z.toJSONSchema(ChartValues, {
    target: 'draft-7',
    io: 'input',
    reused: 'inline',
    override: ({ jsonSchema }) => void delete jsonSchema.required,
  });
}

/** One value with its place. */
interface DefaultValue {
  path: string[];
  value: unknown;
}

/**
 * Every value of charts/boxwright/values.yaml with its path, for the templates. Maps that users fill, such as annotations, are
 * one value: an entry that somebody took out does not come back.
 */
export function chartDefaults(values: unknown): DefaultValue[] {
  return leaves(ChartValues, values, []);
}

function leaves(schema: z.ZodType, value: unknown, path: string[]): DefaultValue[] {
  const isTree = schema instanceof z.ZodObject && schema !== Resources && schema.def.catchall instanceof z.ZodNever;
  if (!isTree) return [{ path, value }];
  return Object.entries(value as object).flatMap(([key, child]) =>
    leaves(schema.shape[key] as z.ZodType, child, [...path, key]),
  );
}
