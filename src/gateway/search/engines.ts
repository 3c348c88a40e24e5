/** The search engines that agents can have: how each is asked, and what its answer says. By the vendors' documents. Pure. */
import { z } from 'zod';
import type { SearchEngineName } from '../../api/v1alpha1/box.js';

/** One hit, as its engine wrote it. */
export interface Hit {
  title: string;
  url: string;
  snippet: string;
}

export interface SearchQuery {
  query: string;
  limit: number;
}

export interface EngineRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** It is posted. */
  body?: string;
}

export interface SearchEngine {
  /** For people and models. */
  title: string;
  /** Its own address; the operator names that of one without. */
  baseUrl?: string;
  /** The key of a Secret that holds its API key; it wants none when absent. */
  secretKey?: string;
  request(baseUrl: string, query: SearchQuery, key: string | undefined): EngineRequest;
  /** Undefined when it is no answer of this engine. */
  hitsIn(answer: unknown): Hit[] | undefined;
}

/** Longest query and most words of one; Brave refuses more. */
const MAX_QUERY_CHARACTERS = 400;
const MAX_QUERY_WORDS = 50;

const text = z.string().nullish().catch('');
const BraveAnswer = z.object({
  web: z.object({ results: z.array(z.object({ title: text, url: text, description: text })) }).optional(),
});
const Results = z.object({ results: z.array(z.object({ title: text, url: text, content: text })) });

export const SEARCH_ENGINES: Readonly<Record<SearchEngineName, SearchEngine>> = {
  brave: {
    title: 'Brave Search',
    baseUrl: 'https://api.search.brave.com/res/v1',
    secretKey: 'BRAVE_API_KEY',
    request: (baseUrl, { query, limit }, key = '') => {
      const words = query.split(/\s+/).slice(0, MAX_QUERY_WORDS).join(' ').slice(0, MAX_QUERY_CHARACTERS);
      const asked = new URLSearchParams({ q: words, count: String(limit), text_decorations: 'false' });
      return { url: `${baseUrl}/web/search?${asked.toString()}`, headers: { 'x-subscription-token': key } };
    },
    hitsIn: (answer) => {
      const parsed = BraveAnswer.safeParse(answer);
      if (!parsed.success) return undefined;
      // Without any hit the part about the web is not there.
      return (parsed.data.web?.results ?? []).map(({ description, ...hit }) => hitOf({ ...hit, snippet: description }));
    },
  },
  tavily: {
    title: 'Tavily',
    baseUrl: 'https://api.tavily.com',
    secretKey: 'TAVILY_API_KEY',
    request: (baseUrl, { query, limit }, key = '') => ({
      url: `${baseUrl}/search`,
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ query, max_results: limit, search_depth: 'basic' }),
    }),
    hitsIn: hitsOfResults,
  },
  searxng: {
    title: 'SearXNG',
    request: (baseUrl, { query }) => ({
      url: `${baseUrl}/search?${new URLSearchParams({ q: query, format: 'json' }).toString()}`,
      headers: {},
    }),
    hitsIn: hitsOfResults,
  },
};

function hitsOfResults(answer: unknown): Hit[] | undefined {
  const parsed = Results.safeParse(answer);
  return parsed.success
    ? parsed.data.results.map(({ content, ...hit }) => hitOf({ ...hit, snippet: content }))
    : undefined;
}

function hitOf({ title, url, snippet }: { [Field in keyof Hit]?: Hit[Field] | null | undefined }): Hit {
  return { title: title ?? '', url: url ?? '', snippet: snippet ?? '' };
}
