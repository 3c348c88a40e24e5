/**
 * The connectors that the product ships: public remote MCP servers of their vendors, in the shape of `remotes` of the MCP
 * registry's server.json. People add further ones as Connector objects.
 */
import type { z } from 'zod';
import { ConnectorSpec } from '../api/v1alpha1/connector.js';

export interface ShippedConnector {
  slug: string;
  spec: z.output<typeof ConnectorSpec>;
}

interface Entry {
  name: string;
  category: string;
  description: string;
  url: string;
  homepage: string;
  auth?: 'apiKey' | 'oauth';
  /** Name of the secret that the header carries. */
  secret?: string;
  /** `Authorization: Bearer` when absent. */
  header?: string;
}

const ENTRIES: Readonly<Record<string, Entry>> = {
  apify: {
    name: 'Apify',
    category: 'web',
    description: 'Run ready-made scrapers and automations (Actors) and read their results.',
    url: 'https://mcp.apify.com/',
    homepage: 'https://docs.apify.com/platform/integrations/mcp',
    auth: 'apiKey',
    secret: 'APIFY_TOKEN',
  },
  'aws-knowledge': {
    name: 'AWS Knowledge',
    category: 'documentation',
    description: 'Search AWS documentation, API references and architecture guidance.',
    url: 'https://knowledge-mcp.global.api.aws/',
    homepage: 'https://awslabs.github.io/mcp/servers/aws-knowledge-mcp-server',
  },
  'cloudflare-docs': {
    name: 'Cloudflare Docs',
    category: 'documentation',
    description: 'Search the documentation of Cloudflare.',
    url: 'https://docs.mcp.cloudflare.com/mcp',
    homepage: 'https://developers.cloudflare.com/agents/model-context-protocol/mcp-servers-for-cloudflare/',
  },
  context7: {
    name: 'Context7',
    category: 'documentation',
    description: 'Current, version-specific documentation and examples of programming libraries.',
    url: 'https://mcp.context7.com/mcp',
    homepage: 'https://context7.com/dashboard',
    auth: 'apiKey',
    secret: 'CONTEXT7_API_KEY',
    header: 'CONTEXT7_API_KEY',
  },
  deepwiki: {
    name: 'DeepWiki',
    category: 'documentation',
    description: 'Ask questions about any public GitHub repository.',
    url: 'https://mcp.deepwiki.com/mcp',
    homepage: 'https://docs.devin.ai/work-with-devin/deepwiki-mcp',
  },
  exa: {
    name: 'Exa',
    category: 'search',
    description: 'Search the web by meaning and read pages.',
    url: 'https://mcp.exa.ai/mcp',
    homepage: 'https://dashboard.exa.ai/api-keys',
    auth: 'apiKey',
    secret: 'EXA_API_KEY',
    header: 'x-api-key',
  },
  firecrawl: {
    name: 'Firecrawl',
    category: 'web',
    description: 'Scrape and crawl web sites into clean text.',
    url: 'https://mcp.firecrawl.dev/v2/mcp',
    homepage: 'https://docs.firecrawl.dev/mcp-server',
    auth: 'apiKey',
    secret: 'FIRECRAWL_API_KEY',
  },
  github: {
    name: 'GitHub',
    category: 'development',
    description: 'Repositories, issues, pull requests, code search and Actions of GitHub.',
    url: 'https://api.githubcopilot.com/mcp/',
    homepage: 'https://github.com/settings/personal-access-tokens',
    auth: 'apiKey',
    secret: 'GITHUB_TOKEN',
  },
  huggingface: {
    name: 'Hugging Face',
    category: 'development',
    description: 'Search models, datasets, papers and Spaces of the Hugging Face Hub.',
    url: 'https://huggingface.co/mcp',
    homepage: 'https://huggingface.co/settings/tokens',
    auth: 'apiKey',
    secret: 'HF_TOKEN',
  },
  jina: {
    name: 'Jina AI',
    category: 'search',
    description: 'Search the web, read pages as clean text, rank and embed texts.',
    url: 'https://mcp.jina.ai/v1',
    homepage: 'https://jina.ai/api-dashboard/',
    auth: 'apiKey',
    secret: 'JINA_API_KEY',
  },
  linear: {
    name: 'Linear',
    category: 'productivity',
    description: 'Issues, projects, cycles and comments of Linear.',
    url: 'https://mcp.linear.app/mcp',
    homepage: 'https://linear.app/docs/mcp',
    auth: 'apiKey',
    secret: 'LINEAR_API_KEY',
  },
  'microsoft-learn': {
    name: 'Microsoft Learn',
    category: 'documentation',
    description: 'Search the documentation of Azure, .NET, Microsoft 365 and other Microsoft products.',
    url: 'https://learn.microsoft.com/api/mcp',
    homepage: 'https://learn.microsoft.com/training/support/mcp',
  },
  neon: {
    name: 'Neon',
    category: 'databases',
    description: 'Serverless Postgres: projects, branches and SQL queries.',
    url: 'https://mcp.neon.tech/mcp',
    homepage: 'https://neon.com/docs/manage/api-keys',
    auth: 'apiKey',
    secret: 'NEON_API_KEY',
  },
  notion: {
    name: 'Notion',
    category: 'productivity',
    description: 'Search, read and write pages and databases of a Notion workspace.',
    url: 'https://mcp.notion.com/mcp',
    homepage: 'https://developers.notion.com/docs/mcp',
    auth: 'oauth',
    secret: 'NOTION_MCP_ACCESS_TOKEN',
  },
  sentry: {
    name: 'Sentry',
    category: 'observability',
    description: 'Errors, issues and traces of Sentry projects.',
    url: 'https://mcp.sentry.dev/mcp',
    homepage: 'https://docs.sentry.io/product/sentry-mcp/',
    auth: 'oauth',
    secret: 'SENTRY_ACCESS_TOKEN',
  },
  stripe: {
    name: 'Stripe',
    category: 'payments',
    description: 'Customers, payments, invoices and subscriptions of Stripe, and its documentation.',
    url: 'https://mcp.stripe.com/',
    homepage: 'https://docs.stripe.com/mcp',
    auth: 'apiKey',
    secret: 'STRIPE_API_KEY',
  },
  supabase: {
    name: 'Supabase',
    category: 'databases',
    description: 'Projects, tables, SQL, logs and edge functions of Supabase.',
    url: 'https://mcp.supabase.com/mcp',
    homepage: 'https://supabase.com/dashboard/account/tokens',
    auth: 'apiKey',
    secret: 'SUPABASE_ACCESS_TOKEN',
  },
  tavily: {
    name: 'Tavily',
    category: 'search',
    description: 'Search the web and extract pages, made for agents.',
    url: 'https://mcp.tavily.com/mcp/',
    homepage: 'https://docs.tavily.com/documentation/mcp',
    auth: 'apiKey',
    secret: 'TAVILY_API_KEY',
  },
};

/** By slug. */
export const SHIPPED_CONNECTORS: readonly ShippedConnector[] = Object.entries(ENTRIES).map(([slug, entry]) => ({
  slug,
  spec: ConnectorSpec.parse({
    name: entry.name,
    category: entry.category,
    description: entry.description,
    auth: entry.auth ?? 'none',
    remote: { type: 'streamable-http', url: entry.url, headers: headersOf(entry) },
    secrets: entry.secret === undefined ? [] : [entry.secret],
    homepage: entry.homepage,
  }),
}));

function headersOf({ secret, header }: Entry): { name: string; value: string }[] {
  if (secret === undefined) return [];
  return header === undefined
    ? [{ name: 'Authorization', value: `Bearer \${${secret}}` }]
    : [{ name: header, value: `\${${secret}}` }];
}
