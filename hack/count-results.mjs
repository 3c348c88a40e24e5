// Sums the results of all test levels and prints the closing line. usage: count-results.mjs FOLDER
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
let [passed, failed, skipped] = [0, 0, 0];
for (const name of readdirSync(folder)) {
  const result = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  passed += result.numPassedTests ?? 0;
  // A file that does not even load has no test in it, but is a failure.
  failed += (result.numFailedTests ?? 0) + (result.numRuntimeErrorTestSuites ?? 0);
  skipped += (result.numPendingTests ?? 0) + (result.numTodoTests ?? 0);
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
