/** Settings of the API process (environment `BOXWRIGHT_…`). */
import { z } from 'zod';
import { archiveUrl } from '../archive/config.js';
import { cidrList } from '../config/cidrs.js';
import { maxFinishedRuns } from '../config/max-finished-runs.js';
import { modelPricesConfigMap } from '../config/model-prices.js';
import { resyncSeconds } from '../config/resync.js';
import { textList } from '../config/text-list.js';
import { API_PORT, GATEWAY_ACCESS_DIR, INTERNAL_PORT } from '../protocol/pod.js';

const port = (fallback: number, text: string) =>
  z.coerce.number().int().min(0).max(65_535).default(fallback).describe(text);

export const ApiConfig = z.object({
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/(?<!\/)\/+$/, ''))
    .describe('Address under which clients reach the API, for example https://agents.example.com.'),
  allowedOrigins: textList.describe(
    'Origins of web pages, separated by commas, that may call the MCP endpoint besides that of the public URL, for example http://localhost:6274.',
  ),
  allowedHosts: textList.describe(
    'Names, separated by commas, by which the MCP endpoint may be called besides that of the public URL, those of the Service, localhost and IP addresses.',
  ),
  apiService: z
    .string()
    .min(1)
    .default('boxwright-api')
    .describe('Name of the Service of the API in the namespace of the installation.'),
  gatewayService: z
    .string()
    .min(1)
    .default('boxwright-gateway')
    .describe(
      'Name of the Service of the gateway in the namespace of the installation: certificates of gateway pods carry it.',
    ),
  gatewayAccess: z
    .string()
    .min(1)
    .default(GATEWAY_ACCESS_DIR)
    .describe(
      'Folder with token, which gateway pods take from API pods, and ca.crt, their certificate authority. Without them a working run is shown as it is stored.',
    ),
  trustedProxies: cidrList.describe(
    'Address ranges of proxies in front of the API, separated by commas: their X-Forwarded-For says where a call came from.',
  ),
  releaseNamespace: z
    .string()
    .min(1)
    .describe('Namespace of the installation: the keyring and the other API pods are there.'),
  podUid: z.string().min(1).describe('UID of this pod: it is not its own peer.'),
  podName: z.string().min(1).describe('Name of this pod.'),
  podIp: z.string().optional().describe('Address of this pod.'),
  appDir: z
    .string()
    .min(1)
    .default('/app/dist/app')
    .describe('Folder with the files of the web application; without them none is served.'),
  modelPricesConfigMap,
  archiveUrl,
  apiPort: port(API_PORT, 'Port of the public side: MCP endpoint, trigger URLs and web application.'),
  internalPort: port(INTERNAL_PORT, 'Port for health, metrics and calls between API pods.'),
  maxFinishedRuns,
  resyncSeconds,
  logLevel: z.enum(['error', 'warn', 'info', 'debug']).default('info').describe('Lowest level of the logs.'),
});
export type ApiConfig = z.output<typeof ApiConfig>;
