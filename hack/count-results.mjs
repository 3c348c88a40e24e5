// Says how long each test level took, which tests and files were the slowest, and closes with the line that counts all
// tests. Fails when a test failed, or when a level has no result. usage: count-results.mjs FOLDER LEVEL...
//
// FOLDER has two files of each level: LEVEL.level is `{"seconds": 12, "exit": 0}`; LEVEL.json is what Jest wrote, and is not
// there for a level that is one command.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const SLOWEST_TESTS = 20;
const SLOWEST_FILES = 10;

/** What a level that is one command says as Jest would. */
function ofCommand({ exit }) {
  return exit === 0 ? { numPassedTests: 1 } : { numFailedTests: 1 };
}

/** One level: its seconds, its counts, and how long its tests and files took. */
function readLevel(folder, name) {
  const read = (file) =>
    existsSync(join(folder, file)) ? JSON.parse(readFileSync(join(folder, file), 'utf8')) : undefined;
  const ended = read(`${name}.level`);
  if (ended === undefined) return { name, seconds: 0, passed: 0, failed: 1, skipped: 0, files: [] };
  const result = read(`${name}.json`) ?? ofCommand(ended);
  // A file that does not even load has no test in it, but is a failure.
  const failed = (result.numFailedTests ?? 0) + (result.numRuntimeErrorTestSuites ?? 0);
  return {
    name,
    seconds: ended.seconds,
    passed: result.numPassedTests ?? 0,
    // Jest that fails without a failed test, as for a snapshot that nobody wrote, counts as one.
    failed: failed === 0 && ended.exit !== 0 ? 1 : failed,
    skipped: (result.numPendingTests ?? 0) + (result.numTodoTests ?? 0),
    files: (result.testResults ?? []).map(filesOf),
  };
}

function filesOf({ name, startTime, endTime, assertionResults }) {
  const path = relative(fileURLToPath(new URL('..', import.meta.url)), name);
  return {
    path,
    seconds: (endTime - startTime) / 1000,
    tests: assertionResults.map((test) => ({ path, seconds: (test.duration ?? 0) / 1000, name: test.fullName })),
  };
}

function printLevels(levels) {
  console.log(
    `\n${'Level'.padEnd(16)}${['seconds', 'passed', 'failed', 'skipped'].map((word) => word.padStart(9)).join('')}`,
  );
  for (const { name, seconds, passed, failed, skipped } of levels) {
    const numbers = [seconds, passed, failed, skipped].map((number) => String(Math.round(number)).padStart(9));
    console.log(`${name.padEnd(16)}${numbers.join('')}`);
  }
}

function printSlowest(title, entries, count) {
  console.log(`\n${title}`);
  for (const { path, seconds, name } of entries.sort((a, b) => b.seconds - a.seconds).slice(0, count)) {
    console.log(`${seconds.toFixed(1).padStart(8)} s  ${path}${name === undefined ? '' : `: ${name}`}`);
  }
}

const [folder, ...names] = process.argv.slice(2);
const levels = names.map((name) => readLevel(folder, name));
const files = levels.flatMap((level) => level.files);
const sum = (field) => levels.reduce((total, level) => total + level[field], 0);
printLevels(levels);
printSlowest(
  `The ${SLOWEST_TESTS} slowest tests`,
  files.flatMap((file) => file.tests),
  SLOWEST_TESTS,
);
printSlowest(`The ${SLOWEST_FILES} slowest files, with what they set up`, files, SLOWEST_FILES);
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
process.exitCode = sum('failed') === 0 ? 0 : 1;
