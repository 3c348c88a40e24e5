import { CONDITION_REASONS } from '../api/condition-reasons.js';
import type { ConditionReasons, ReasonInfo } from '../api/condition-reasons.js';
import { KEPT_REASONS, QUEUE_REASONS, RUN_REASONS, STAGE_REASONS } from '../run/reasons.js';

/** docs/reasons.md: every reason of a run and of a condition of any other kind, its cause and the next step. */
export function reasonsDoc(): string {
  return [
    '<!-- Generated from src/run/reasons.ts and src/api/condition-reasons.ts by `make generate`. Do not edit. -->',
    '# Reasons',
    '',
    '`kubectl get agentruns` shows those of runs in the column REASON; `kubectl describe` shows conditions, with a message that',
    'has the details. No run waits or ends without one of them.',
    '',
    '## While a run waits (status `running`)',
    '',
    ...table(QUEUE_REASONS),
    '',
    '## While a run works, and how it ended',
    '',
    ...table(RUN_REASONS),
    '',
    '## Stages in the conditions of a run',
    '',
    ...table(STAGE_REASONS),
    '',
    '## While a deleted run or agent is kept (conditions `Archived` and `Ready`)',
    '',
    ...table(KEPT_REASONS),
    '',
    ...conditionSections(CONDITION_REASONS),
  ].join('\n');
}

/** One section for the kinds, one table for all their conditions. */
function conditionSections(all: readonly ConditionReasons[]): string[] {
  return [...Map.groupBy(all, ({ kinds }) => kinds)].flatMap(([kinds, groups]) => [
    `## Conditions: ${kinds}`,
    '',
    '| Condition | Reason | Cause | Next step |',
    '| --- | --- | --- | --- |',
    ...groups.flatMap(({ condition, reasons }) => rows(reasons).map((row) => `| ${condition} ${row}`)),
    '',
  ]);
}

function table(reasons: Record<string, ReasonInfo>): string[] {
  return ['| Reason | Cause | Next step |', '| --- | --- | --- |', ...rows(reasons)];
}

function rows(reasons: Readonly<Record<string, ReasonInfo>>): string[] {
  return Object.entries(reasons).map(([name, info]) => `| \`${name}\` | ${info.cause} | ${info.nextStep} |`);
}
