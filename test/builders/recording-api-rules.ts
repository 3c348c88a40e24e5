/** Patches and selectors as pure functions, for the API server in memory. */

/** RFC 7386. Server-side apply is treated the same: fields are merged, lists replaced, no owners. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = applyMergePatch(result[key], value);
  }
  return result;
}

interface JsonPatchOperation {
  op: 'add' | 'remove' | 'replace' | 'test';
  path: string;
  value?: unknown;
}

/** RFC 6902 without move and copy. A failed test throws, as the API server answers 422. */
export function applyJsonPatch(target: unknown, patch: unknown): unknown {
  const root = { document: target };
  for (const operation of patch as JsonPatchOperation[]) {
    const path = ['document', ...operation.path.split('/').slice(1).map(unescapePointer)];
    const last = path.pop() as string;
    let parent: unknown = root;
    for (const part of path) parent = (parent as Record<string, unknown>)[part];
    if (parent === null || typeof parent !== 'object') throw new Error(`json patch: no parent for ${operation.path}`);
    applyOperation(parent as Record<string, unknown>, last, operation);
  }
  return root.document;
}

function applyOperation(parent: Record<string, unknown> | unknown[], key: string, operation: JsonPatchOperation): void {
  if (operation.op === 'test') {
    const actual = (parent as Record<string, unknown>)[key];
    if (JSON.stringify(actual) !== JSON.stringify(operation.value)) {
      throw new Error(`json patch: test of ${operation.path} failed`);
    }
    return;
  }
  if (Array.isArray(parent)) {
    const index = key === '-' ? parent.length : Number(key);
    if (operation.op === 'add') parent.splice(index, 0, operation.value);
    else if (operation.op === 'remove') parent.splice(index, 1);
    else parent[index] = operation.value;
    return;
  }
  if (operation.op === 'remove') delete parent[key];
  else parent[key] = operation.value;
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** `a=b,c!=d,e,!f`: the forms that we use. */
export function matchesLabels(labels: Record<string, string>, selector: string | undefined): boolean {
  return (selector ?? '')
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [, key = '', operator, value] = /^(!?[^=!]+)(?:(!=|==?)(.*))?$/.exec(part) ?? [];
      if (operator === undefined) return key.startsWith('!') ? !(key.slice(1) in labels) : key in labels;
      return operator === '!=' ? labels[key] !== value : labels[key] === value;
    });
}

/** `metadata.name=a,status.phase!=b`. */
export function matchesFields(object: unknown, selector: string | undefined): boolean {
  return (selector ?? '')
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [, path = '', operator, value] = /^([^=!]+)(!=|==?)(.*)$/.exec(part) ?? [];
      const actual = asText(path.split('.').reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), object));
      return operator === '!=' ? actual !== value : actual === value;
    });
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
