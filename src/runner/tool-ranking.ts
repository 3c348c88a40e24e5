/** Which tools fit a query, by BM25 over their words: the same query always gives the same tools. Pure. */

/** What is read of a tool. */
export interface RankedTool {
  name: string;
  description: string;
  schema?: Record<string, unknown>;
}

/** The usual constants of BM25: how fast repeating a word stops to count, and how much a long text counts less. */
const SATURATION = 1.2;
const LENGTH_SHARE = 0.75;
/** A word of the name says more than one of the description. */
const NAME_WEIGHT = 3;

interface Document<Tool> {
  tool: Tool;
  counts: ReadonlyMap<string, number>;
  length: number;
}

/** Ranks the tools of one run; their words are read once. */
export class ToolRanking<Tool extends RankedTool> {
  readonly #documents: readonly Document<Tool>[];
  readonly #meanLength: number;
  /** In how many tools a word stands. */
  readonly #spread = new Map<string, number>();

  constructor(tools: readonly Tool[]) {
    this.#documents = tools.map((tool) => {
      const words = wordsOfTool(tool);
      return { tool, counts: countsOf(words), length: words.length };
    });
    const total = this.#documents.reduce((sum, { length }) => sum + length, 0);
    this.#meanLength = total / Math.max(1, tools.length);
    for (const { counts } of this.#documents) {
      for (const word of counts.keys()) this.#spread.set(word, (this.#spread.get(word) ?? 0) + 1);
    }
  }

  /** Tools that share a word with the query, the best first. A tool that the query names comes before all others. */
  search(query: string): Tool[] {
    const words = new Set(wordsOf(query));
    const names = new Set(query.toLowerCase().split(/[\s,;]+/));
    return this.#documents
      .map((document) => ({ tool: document.tool, score: this.#scoreOf(document, words, names) }))
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score || (a.tool.name < b.tool.name ? -1 : 1))
      .map(({ tool }) => tool);
  }

  #scoreOf(document: Document<Tool>, words: ReadonlySet<string>, names: ReadonlySet<string>): number {
    if (names.has(document.tool.name.toLowerCase())) return Number.MAX_VALUE;
    let score = 0;
    for (const word of words) score += this.#weightOf(word) * this.#frequencyOf(word, document);
    return score;
  }

  #weightOf(word: string): number {
    const spread = this.#spread.get(word) ?? 0;
    return Math.log(1 + (this.#documents.length - spread + 0.5) / (spread + 0.5));
  }

  #frequencyOf(word: string, { counts, length }: Document<Tool>): number {
    const count = counts.get(word) ?? 0;
    const relative = 1 - LENGTH_SHARE + LENGTH_SHARE * (length / this.#meanLength);
    return (count * (SATURATION + 1)) / (count + SATURATION * relative);
  }
}

function countsOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

function wordsOfTool({ name, description, schema }: RankedTool): string[] {
  const inName = wordsOf(name);
  return [
    ...Array.from({ length: NAME_WEIGHT }, () => inName).flat(),
    ...wordsOf(description),
    ...wordsOf(argumentsOf(schema).join(' ')),
  ];
}

/** Names and descriptions of the arguments. */
function argumentsOf(schema: Record<string, unknown> | undefined): string[] {
  const properties = schema?.['properties'];
  if (typeof properties !== 'object' || properties === null) return [];
  return Object.entries(properties).flatMap(([name, property]) => {
    const { description } = (property ?? {}) as { description?: unknown };
    return typeof description === 'string' ? [name, description] : [name];
  });
}

/** Words in lower case and in the singular; `createIssue` and `create_issue` are two words each. */
function wordsOf(text: string): string[] {
  const parts = text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return (parts ?? []).map(stem);
}

function stem(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;
}
