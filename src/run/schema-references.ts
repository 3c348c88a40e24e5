/** References of a JSON Schema: where they lead, and how often they have one value looked at. Pure. */

type Json = Readonly<Record<string, unknown>>;

/** What one value may cost; schemas that people write stay below a hundred. */
const MOST_CHECKS = 1_000;

/**
 * What is wrong with the references, as the end of a sentence that begins with their schema; undefined when nothing is. A
 * schema that leads back to itself within one value is checked for ever, and one in which each of a row refers twice to the
 * next is checked 2 to the power of their number.
 */
export function faultOfReferences(root: Json): string | undefined {
  try {
    new References(root).walk(root);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

class Fault extends Error {}

class References {
  /** Checks of one value by the node, all that it refers to included; 0 while they are counted. */
  readonly #checks = new Map<Json, number>();

  constructor(private readonly root: Json) {}

  walk(node: Json): void {
    this.#count(node);
    for (const inner of innerOf(node)) this.walk(inner);
  }

  #count(node: Json): number {
    const known = this.#checks.get(node);
    if (known === 0) throw new Fault('refers to itself without going into the value');
    if (known !== undefined) return known;
    this.#checks.set(node, 0);
    let checks = 1;
    for (const same of this.#ofTheSameValue(node)) checks += this.#count(same);
    if (checks > MOST_CHECKS) throw new Fault(`checks one value more than ${MOST_CHECKS} times`);
    this.#checks.set(node, checks);
    return checks;
  }

  #ofTheSameValue(node: Json): Json[] {
    const { $ref: ref } = node;
    const lists = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => (node[key] as Json[] | undefined) ?? []);
    return typeof ref === 'string' ? [...lists, this.#target(ref)] : lists;
  }

  #target(ref: string): Json {
    if (!ref.startsWith('#')) throw new Fault('refers to another document, which is not possible');
    const [where, name, ...rest] = ref.slice(1).split('/').filter(Boolean);
    if (where === undefined) return this.root;
    const definitions = (this.root['$defs'] ?? {}) as Record<string, Json>;
    const key = (name ?? '').replaceAll('~1', '/').replaceAll('~0', '~');
    const target = Object.hasOwn(definitions, key) ? definitions[key] : undefined;
    if (where !== '$defs' || target === undefined || rest.length > 0)
      throw new Fault(`refers to ${ref.slice(0, 100)}, which is not there`);
    return target;
  }
}

function innerOf(node: Json): Json[] {
  const maps = ['properties', '$defs'].flatMap((key) => Object.values((node[key] ?? {}) as Record<string, Json>));
  const lists = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => (node[key] as Json[] | undefined) ?? []);
  const single = ['items', 'additionalProperties'].map((key) => node[key]);
  return [...maps, ...lists, ...single.filter((value): value is Json => typeof value === 'object' && value !== null)];
}
