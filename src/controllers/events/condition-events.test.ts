import type { Condition } from '../../api/v1alpha1/common.js';
import { conditionEvents } from './condition-events.js';
import type { ConditionedFacts } from './condition-events.js';

const NOW = Date.parse('2026-01-01T00:10:00.000Z');
const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();

/** `Type=Status/Reason`; the message is the reason in small letters. */
function conditions(texts: readonly string[], seconds = 2): Condition[] {
  return texts.map((text) => {
    const [type = '', status = '', reason = ''] = text.split(/[=/]/);
    const message = reason === 'Ready' ? '' : `${reason.toLowerCase()}.`;
    return { type, status: status as Condition['status'], reason, message, lastTransitionTime: ago(seconds) };
  });
}

const box = (texts?: readonly string[], seconds?: number): ConditionedFacts => ({
  metadata: { name: 'dev', uid: 'uid-dev' },
  ...(texts === undefined ? {} : { status: { conditions: conditions(texts, seconds) } }),
});

/** `<type> <reason>: <note>` of every event. */
function told(previous: ConditionedFacts | undefined, current: ConditionedFacts): string[] {
  const events = conditionEvents({ kind: 'Box', previous, current }, NOW);
  return events.map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
}

it.each<[string, string[] | undefined, string[], string[]]>([
  ['good at first', undefined, ['Ready=True/Ready'], []],
  ['bad at first', undefined, ['Ready=False/NamespaceExists'], ['Warning NamespaceExists: namespaceexists.']],
  ['good, then bad', ['Ready=True/Ready'], ['Ready=False/Gone'], ['Warning Gone: gone.']],
  ['bad, then good', ['Ready=False/Gone'], ['Ready=True/Ready'], ['Normal Ready: Condition Ready is True.']],
  ['bad for another reason', ['Ready=False/Gone'], ['Ready=False/Worse'], ['Warning Worse: worse.']],
  ['bad for the same reason', ['Ready=False/Gone'], ['Ready=False/Gone'], []],
  ['good for another reason', ['A=True/One'], ['A=True/Two'], []],
  ['under way at first', undefined, ['Ready=False/NetworkProbing'], []],
  ['good, then under way', ['Ready=True/Ready'], ['Ready=False/NetworkProbing'], []],
  ['under way, then good', ['A=Unknown/NetworkProbing'], ['A=True/Enforced'], ['Normal Enforced: enforced.']],
  ['under way, then bad', ['A=False/NetworkProbing'], ['A=False/Open'], ['Warning Open: open.']],
  ['unknown for no good reason', ['A=True/Enforced'], ['A=Unknown/ProbeFailed'], ['Warning ProbeFailed: probefailed.']],
  ['wanted so', undefined, ['WorkspacePersistent=False/Ephemeral'], []],
  ['gone', ['EndpointReady=False/Refused'], [], []],
  ['a negative one that comes', [], ['HandleConflict=True/HandleTaken'], ['Warning HandleTaken: handletaken.']],
  [
    'a negative one that goes',
    ['HandleConflict=True/HandleTaken'],
    [],
    ['Normal HandleTakenResolved: Condition HandleConflict is gone.'],
  ],
  ['what Ready says as well', ['Revoked=False/InForce'], ['Revoked=True/SpecRevoked'], []],
])('a condition that is %s', (_what, before, after, events) => {
  expect(told(box(before), box(after))).toEqual(events);
});

it('that follows from another one and says the same is not told twice', () => {
  const previous = box(['NetworkEnforced=True/Enforced', 'Ready=True/Ready']);
  const current = box(['NetworkEnforced=False/Open', 'Ready=False/Open']);
  expect(told(previous, current)).toEqual(['Warning Open: open.']);
});

it('is told with its object, and the time of its turn', () => {
  const previous = box(['Ready=True/Ready'], 100);
  const event = {
    subject: { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Box', name: 'dev', uid: 'uid-dev' },
    action: 'ConditionTurned',
    type: 'Warning',
    reason: 'Gone',
    note: 'gone.',
    at: ago(2),
  };
  expect(conditionEvents({ kind: 'Box', previous, current: box(['Ready=False/Gone']) }, NOW)).toEqual([event]);
});

it('of another reason is told of now, since the condition has the time of the first one', () => {
  const change = { kind: 'Box', previous: box(['Ready=False/Gone'], 100), current: box(['Ready=False/Worse'], 100) };
  expect(conditionEvents(change, NOW).map(({ at }) => at)).toEqual([ago(0)]);
});

it('of an object that is seen for the first time is told when it turned bad within the last minute', () => {
  expect(told(undefined, box(['Ready=False/Gone'], 60))).toEqual(['Warning Gone: gone.']);
  expect(told(undefined, box(['Ready=False/Gone'], 61))).toEqual([]);
  expect(told(undefined, box(['Ready=True/Ready'], 1))).toEqual([]);
});

it('is not told at a resync', () => {
  const same = box(['Ready=False/Gone']);
  expect(told(same, same)).toEqual([]);
});
