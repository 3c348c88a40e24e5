/** How an answer of a played vendor names runs: their ids are made when they start. */

/** Stands for the ids of all runs that the conversation names. */
export const RUN_IDS = '$RUN_IDS';

/** The value with the ids in the place of the mark. */
export function withRunIds<T>(value: T, conversation: string): T {
  const text = JSON.stringify(value);
  if (!text.includes(RUN_IDS)) return value;
  const ids = [...conversation.matchAll(/runId[\\": ]{1,12}([-a-z0-9]{1,63})/g)].map(([, id]) => id);
  return JSON.parse(text.replaceAll(`"${RUN_IDS}"`, JSON.stringify([...new Set(ids)]))) as T;
}
