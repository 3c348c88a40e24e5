// The order in which Jest starts test files. Without times of an earlier run it takes the largest file first; but what takes
// longest are the files that wait for a time of the product, and one of those at the end would be waited for alone.
import { existsSync } from 'node:fs';
import Sequencer from '@jest/test-sequencer';

const FIRST = [
  'test/e2e/endpoint.test.ts',
  'test/e2e/detectors.test.ts',
  'test/e2e/browser.test.ts',
  'test/e2e/agent-abilities.test.ts',
  'test/e2e/cancel.test.ts',
  'test/integration/run-lifecycle.test.ts',
  'test/integration/steady-state.test.ts',
  'test/integration/refused-jobs.test.ts',
  'test/integration/clock-jumps.test.ts',
];

const gone = FIRST.filter((path) => !existsSync(path));
if (gone.length > 0) throw new Error(`test/sequencer.mjs names files that are not there: ${gone.join(', ')}`);

export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const rank = ({ path }) => {
      const index = FIRST.findIndex((name) => path.endsWith(name));
      return index === -1 ? FIRST.length : index;
    };
    return super.sort(tests).toSorted((a, b) => rank(a) - rank(b));
  }
}
