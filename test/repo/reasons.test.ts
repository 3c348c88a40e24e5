/** Every reason that a condition may show is in the closed lists that docs/reasons.md is made from. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CONDITION_REASONS, isConditionReason } from '../../src/api/condition-reasons.js';
import type { ReasonInfo } from '../../src/api/condition-reasons.js';
import { KEPT_REASONS, QUEUE_REASONS, RUN_REASONS, STAGE_REASONS } from '../../src/run/reasons.js';

const LISTS = ['src/api/condition-reasons.ts', 'src/run/reasons.ts'];
const OF_RUNS = { ...QUEUE_REASONS, ...RUN_REASONS, ...STAGE_REASONS, ...KEPT_REASONS };
/** What the kubelet says about a container that waits; it is a part of messages. */
const OF_CONTAINERS = ['ContainerCreating'];

const sources = execFileSync('git', ['ls-files', 'src'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !LISTS.includes(path));

describe('reasons', () => {
  test('those that the control plane writes are in a list', () => {
    const known = new Set([...Object.keys(OF_RUNS), ...OF_CONTAINERS]);
    const writers = sources.filter((path) => !path.startsWith('src/runner/'));
    const unknown = writers.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/\breason: '([A-Z]\w*)'/g)]
        .map(([, reason = '']) => reason)
        .filter((reason) => !known.has(reason) && !isConditionReason(reason))
        .map((reason) => `${path}: ${reason}`),
    );
    expect(unknown).toEqual([]);
  });

  test('each one of the lists is used', () => {
    const code = sources.map((path) => readFileSync(path, 'utf8')).join('\n');
    const names = [...Object.keys(OF_RUNS), ...CONDITION_REASONS.flatMap(({ reasons }) => Object.keys(reasons))];
    expect(names.filter((name) => !code.includes(`'${name}'`) && !code.includes(`QUEUE_REASONS.${name}`))).toEqual([]);
  });

  test('each has a cause and a next step, as sentences', () => {
    const infos: [string, ReasonInfo][] = [
      ...Object.entries(OF_RUNS),
      ...CONDITION_REASONS.flatMap(({ reasons }) => Object.entries<ReasonInfo>(reasons)),
    ];
    const wrong = infos.filter(([, info]) => !info.cause.endsWith('.') || !info.nextStep.endsWith('.'));
    expect(wrong.map(([name]) => name)).toEqual([]);
  });
});
