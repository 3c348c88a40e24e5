/** Work on many things, some of them at a time. */

/** Begins in the order of the items. Works on all of them, however many fail; then rejects with the first failure. */
export async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  atOnce: number,
): Promise<void> {
  let first: { error: unknown } | undefined;
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item).catch((error: unknown) => (first ??= { error }));
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (first !== undefined) throw first.error;
}
