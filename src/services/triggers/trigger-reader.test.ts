import { McpHarness } from '../../../test/builders/mcp-harness.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { createTriggerReader } from './trigger-reader.js';

const signal = new AbortController().signal;

describe('TriggerReader', () => {
  function setup() {
    const harness = new McpHarness();
    harness.seedTrigger('acme-box', 'greeter', 'hook');
    harness.api.clearRecords();
    const asked: (string | undefined)[] = [];
    const ensureKey = (keyId: string | undefined) => {
      asked.push(keyId);
      return Promise.resolve();
    };
    const reader = createTriggerReader({ caches: harness.caches, api: harness.api, ensureKey });
    const find = (agent = 'greeter', box = 'acme-box') => reader.find({ box, agent }, 'hook', signal);
    return { harness, find, asked };
  }

  test('finds trigger and agent without a request', async () => {
    const { harness, find, asked } = setup();
    expect(await find()).toMatchObject({
      agent: { box: 'acme-box', agent: 'greeter' },
      slug: 'hook',
      enabled: true,
      methods: ['POST'],
      body: 'do it',
      keyId: 'k1',
    });
    expect(asked).toEqual(['k1']);
    expect(harness.requests()).toEqual([]);
  });

  test('knows nothing of an unknown agent, Box or trigger, without a request', async () => {
    const { harness, find } = setup();
    expect(await find('nobody')).toBeUndefined();
    expect(await find('greeter', 'nowhere')).toBeUndefined();
    expect(harness.requests()).toEqual([]);
  });

  test('an agent or trigger that is being deleted is gone', async () => {
    const metadata = { deletionTimestamp: '2026-05-01T10:00:00Z' };
    const one = setup();
    one.harness.seedAgent('acme-box', 'greeter', { metadata });
    expect(await one.find()).toBeUndefined();
    const two = setup();
    two.harness.seedTrigger('acme-box', 'greeter', 'hook', { metadata });
    expect(await two.find()).toBeUndefined();
  });

  test('while a watch is behind, both are read live', async () => {
    const { harness, find } = setup();
    Object.assign(harness.caches.AgentTrigger, { isHealthy: () => false });
    expect(await find()).toMatchObject({ slug: 'hook' });
    expect(harness.requests()).toEqual(['get agents', 'get agenttriggers']);
    harness.api.vanish(AgentTriggers, 'bw-acme-box/greeter.hook');
    expect(await find()).toBeUndefined();
  });
});
