/** What the scheduler says of a pod that it finds no node for. */

/**
 * Whether the scheduler names the volume of the agent, or the node that holds it, as what is in the way: other agents may
 * still find room.
 */
export function isAboutVolume(unschedulable: string): boolean {
  return /persistent ?volume|volume node affinity|pod affinity rules/i.test(unschedulable);
}
