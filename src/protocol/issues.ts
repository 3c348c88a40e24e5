/** What zod says of a foreign value, in a text of bounded length: hostile values have any number of faults. */
import type { z } from 'zod';

/** Most faults that one message names. */
export const MAX_ISSUES = 10;
const MAX_PATH = 200;

/** `a.b: Too big; c: Invalid input`, with as many faults as help. */
export function describeIssues({ issues }: z.ZodError): string {
  return joinIssues(issues, (issue) => `${issuePath(issue)}: ${issue.message.slice(0, MAX_PATH)}`);
}

/** The first faults in words, and how many more there are. */
export function joinIssues<Issue>(issues: readonly Issue[], describe: (issue: Issue) => string): string {
  const shown = issues.slice(0, MAX_ISSUES).map(describe);
  const more = issues.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** Where the fault is. Names in it may be the sender's own, of any length. */
export function issuePath({ path }: { path: readonly PropertyKey[] }): string {
  return path
    .map((key) => String(key).slice(0, MAX_PATH))
    .join('.')
    .slice(0, MAX_PATH);
}
