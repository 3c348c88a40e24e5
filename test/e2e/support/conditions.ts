/** Conditions of our objects, as the API server shows them. */
import { getObject } from './install.js';

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  observedGeneration?: number;
}

/** The condition of this type that an object shows; undefined when it shows none, or when the object is not there. */
export async function conditionOf(
  type: string,
  kind: string,
  name: string,
  namespace?: string,
): Promise<Condition | undefined> {
  const object = await getObject<{ status?: { conditions?: Condition[] } }>(kind, name, namespace);
  return object?.status?.conditions?.find((condition) => condition.type === type);
}
