/** A flood of large bodies on one trigger keeps to the budget of its agent, and harms nobody else. */
import { runFlood } from '../bench/flood.js';

/** Some 650 fit into the budget. */
const HITS = 900;
/** Half of what a Box may hold. */
const AGENT_BYTES = 32 * 1024 * 1024;

test('a flood of 64 KB bodies keeps to the budget of its agent; etcd stays small and another Box fires', async () => {
  const report = await runFlood({ hits: HITS });
  expect(report).toMatchObject({ other: 0, othersAccepted: report.others, errors: [] });
  expect(report.accepted + report.turnedAway).toBe(HITS);
  expect(report.storedBytes).toBeGreaterThan(AGENT_BYTES / 2);
  // A call is accepted as long as anything is left, so the last one may stand out.
  expect(report.storedBytes).toBeLessThan(AGENT_BYTES + report.largestBytes);
  expect(report.overBudget).toBeGreaterThan(0);
  expect(report.overBudget + report.unanswered).toBe(report.turnedAway);
  // etcd keeps each version of an object until it is compacted; a waiting run is written three times at most.
  expect(report.etcdAfter - report.etcdBefore).toBeLessThanOrEqual(4 * AGENT_BYTES);
}, 900_000);
