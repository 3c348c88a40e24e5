/** Settings of the gateway process. */
import { z } from 'zod';
import { SearchEngineName } from '../api/v1alpha1/box.js';
import { Provider } from '../api/v1alpha1/common.js';
import { archiveUrl } from '../archive/config.js';
import { maxFinishedRuns } from '../config/max-finished-runs.js';
import { resyncSeconds } from '../config/resync.js';
import { modelPricesConfigMap } from '../config/model-prices.js';
import { textList } from '../config/text-list.js';
import { cidrList } from '../config/cidrs.js';
import { GATEWAY_PORT, INTERNAL_PORT } from '../protocol/pod.js';

const port = (fallback: number, text: string) =>
  z.coerce.number().int().min(0).max(65_535).default(fallback).describe(text);

const BaseUrls = z.partialRecord(
  Provider.exclude(['boxwright']),
  z
    .string()
    .regex(/^https?:\/\/[^\s?#@]+$/)
    .transform((url) => url.replace(/(?<!\/)\/+$/, '')),
);

function parseBaseUrls(text: string, context: z.RefinementCtx): z.output<typeof BaseUrls> {
  const parsed = BaseUrls.safeParse(jsonIn(text));
  if (parsed.success) return parsed.data;
  context.addIssue({ code: 'custom', message: 'must be a JSON object of provider names and URLs' });
  return z.NEVER;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const GatewayConfig = z.object({
  releaseNamespace: z.string().min(1).describe('Namespace of the installation.'),
  podName: z.string().min(1).describe('Name of this pod.'),
  podUid: z.string().min(1).describe('UID of this pod: the claim of a run names it as the owner.'),
  podIp: z.string().min(1).describe('Address of this pod: runners call it directly.'),
  tlsSecretName: z
    .string()
    .min(1)
    .default('boxwright-gateway-tls')
    .describe('Secret of the installation with tls.crt and tls.key.'),
  gatewaySelector: z
    .string()
    .min(1)
    .default('app.kubernetes.io/name=boxwright,app.kubernetes.io/component=gateway')
    .describe('Labels of the gateway pods in the namespace of the installation.'),
  kubeconfig: z.string().optional().describe('Path of a kubeconfig; the service account of the pod when absent.'),
  resyncSeconds,
  logLevel: z.enum(['error', 'warn', 'info', 'debug']).default('info').describe('Lowest level that is logged.'),
  modelCredentialsSecret: z
    .string()
    .optional()
    .describe('Secret of the installation with the keys of model providers, for Boxes that name none of their own.'),
  modelBaseUrls: z
    .string()
    .default('{}')
    .transform(parseBaseUrls)
    .describe(
      'JSON object: base URLs of model providers that differ from their own, for example of a private endpoint; spec.vendors of a Box wins.',
    ),
  modelPricesConfigMap,
  webSearchEngine: SearchEngineName.optional().describe(
    'Search engine for Boxes that name none and have egress mode internet: brave, tavily or searxng. Its key is BRAVE_API_KEY or TAVILY_API_KEY of the Secret with the keys of model providers.',
  ),
  webSearchBaseUrl: z
    .string()
    .regex(/^https?:\/\/[^\s?#@]+$/)
    .optional()
    .describe('Address of that search engine; its own when absent, but searxng has none.'),
  httpsProxy: z
    .string()
    .regex(/^https?:\/\/[^\s/]+\/?$/)
    .optional()
    .describe('HTTP proxy for calls of model providers and search engines, by https. MCP servers are called directly.'),
  noProxy: textList.describe(
    'Hosts that are called without the proxy, separated by commas; with a leading dot all below. Names in the cluster always are.',
  ),
  archiveUrl,
  maxFinishedRuns,
  clusterCidrs: cidrList.describe(
    'Ranges of nodes, pods and services that MCP servers of users must not be in, separated by commas; private ranges are refused anyway.',
  ),
  port: port(GATEWAY_PORT, 'Port of the runs (TLS).'),
  internalPort: port(INTERNAL_PORT, 'Port of probes and metrics.'),
});
export type GatewayConfig = z.output<typeof GatewayConfig>;
