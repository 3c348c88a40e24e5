import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { isUntrusted, startsUntrusted } from './trust.js';

const spec: AgentRun['spec'] = { agent: 'helper', message: 'go' };
const parent = { name: 'caller', uid: 'u', depth: 1, agents: ['boss'], waits: true };
const trusted: Pick<AgentRun, 'status'> = { status: { phase: 'done' } };
const untrusted: Pick<AgentRun, 'status'> = { status: { phase: 'done', untrusted: true } };

test.each<[string, Partial<AgentRun['spec']>, Pick<AgentRun, 'status'> | undefined, boolean, boolean]>([
  ['that was made by hand', {}, undefined, false, false],
  ['of a chat', { trigger: { origin: 'chat' } }, undefined, false, false],
  ['of a schedule', { trigger: { origin: 'schedule', name: 'daily' } }, undefined, false, false],
  ['of a webhook', { trigger: { origin: 'trigger', name: 'hook' } }, undefined, false, true],
  ['of a webhook, after a trusted one', { trigger: { origin: 'trigger' } }, trusted, false, true],
  ['that a trusted run called', { parent }, undefined, false, false],
  ['that an untrusted run called', { parent: { ...parent, untrusted: true } }, undefined, false, true],
  ['after a trusted one', { trigger: { origin: 'chat' } }, trusted, false, false],
  ['after an untrusted one', { trigger: { origin: 'chat' } }, untrusted, false, true],
  ['after a trusted one, of a session that cannot be read whole', {}, trusted, true, false],
  ['of a session whose previous run cannot be read', {}, undefined, true, true],
])('a run %s: %j after %j (unread: %p) starts untrusted: %p', (_what, own, previous, isIncomplete, expected) => {
  expect(startsUntrusted({ run: { spec: { ...spec, ...own } }, previous, isIncomplete })).toBe(expected);
});

test('after the claim the status says it', () => {
  expect([isUntrusted({}), isUntrusted(trusted), isUntrusted(untrusted)]).toEqual([false, false, true]);
});
