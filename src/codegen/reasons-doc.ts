import { KEPT_REASONS, QUEUE_REASONS, RUN_REASONS } from '../run/reasons.js';
import type { ReasonInfo } from '../run/reasons.js';

/** docs/reasons.md: every value of an AgentRun's status.reason, its cause and the next step. */
export function reasonsDoc(): string {
  return [
    '<!-- Generated from src/run/reasons.ts by `make generate`. Do not edit. -->',
    '# Reasons of runs',
    '',
    '`kubectl get agentruns` shows these in the column REASON; `kubectl describe agentrun` shows the message with the details.',
    'No run waits or ends without one of them.',
    '',
    '## While a run waits (status `running`)',
    '',
    ...table(QUEUE_REASONS),
    '',
    '## While a run works, and how it ended',
    '',
    ...table(RUN_REASONS),
    '',
    '## While a deleted run or agent is kept (conditions `Archived` and `Ready`)',
    '',
    ...table(KEPT_REASONS),
    '',
  ].join('\n');
}

function table(reasons: Record<string, ReasonInfo>): string[] {
  return [
    '| Reason | Cause | Next step |',
    '| --- | --- | --- |',
    ...Object.entries(reasons).map(([name, info]) => `| \`${name}\` | ${info.cause} | ${info.nextStep} |`),
  ];
}
