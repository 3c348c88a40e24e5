import { assert, boolean, integer, property, record, uniqueArray } from '../../../test/builders/properties.js';
import { assignSlots, resolveHandles, standings } from './standing.js';
import type { AgentEntry } from './standing.js';

function entry(key: string, overrides: Partial<AgentEntry> = {}): AgentEntry {
  return {
    key,
    agentId: key.replace('bw-', '').replace('/', '.'),
    createdAt: Date.parse('2026-01-01T00:00:00Z'),
    handle: key.split('/')[1] ?? key,
    holdsSlot: false,
    holdsHandle: false,
    ...overrides,
  };
}

const old = entry('bw-b/old', { createdAt: Date.parse('2026-01-01T00:00:00Z') });
const young = entry('bw-a/young', { createdAt: Date.parse('2026-01-02T00:00:00Z') });

describe('slots', () => {
  it('are held by the oldest agents', () => {
    expect([...assignSlots([old, young], 1)]).toEqual(['bw-b/old']);
    expect([...assignSlots([old, young], 0)]).toEqual([]);
    expect([...assignSlots([old, young], 5)]).toEqual(['bw-b/old', 'bw-a/young']);
  });

  it('tell the agent without one why, in words that the tools show', () => {
    const result = standings({ name: 'acme', slots: 1 }, [young, old]);
    expect(result.get('bw-b/old')).toEqual({ active: true, handle: 'old' });
    expect(result.get('bw-a/young')).toEqual({
      active: false,
      inactiveReason:
        'plan limit reached: 1 of 1 agent slots of workspace acme are in use; ' +
        'the agent does not run until a slot frees: delete an agent or raise spec.slots of the Workspace',
      handle: 'young',
    });
  });

  it('are none without a Workspace', () => {
    expect(standings({ name: 'acme', slots: undefined }, [old]).get('bw-b/old')).toEqual({
      active: false,
      inactiveReason: 'workspace acme does not exist; create it, then its agents get their slots',
      handle: 'old',
    });
  });

  it('stay with the agent that has one when a newcomer of the same second sorts before it', () => {
    const holder = entry('bw-b/x', { holdsSlot: true });
    const result = standings({ name: 'acme', slots: 1 }, [entry('bw-a/x2'), holder]);
    expect(result.get('bw-b/x')?.active).toBe(true);
    expect(result.get('bw-a/x2')?.active).toBe(false);
  });

  it('are never more than the plan has, never unused while somebody waits, and do not depend on the order', () => {
    const agents = uniqueArray(
      record({ name: integer({ min: 0, max: 30 }), second: integer({ min: 0, max: 3 }), held: boolean() }),
      { selector: ({ name }) => name },
    );
    assert(
      property(agents, integer({ min: 0, max: 10 }), (list, slots) => {
        const entries = list.map(({ name, second, held }) =>
          entry(`bw-a/${name}`, { createdAt: Date.parse(`2026-01-01T00:00:0${second}Z`), holdsSlot: held }),
        );
        const result = standings({ name: 'w', slots }, entries);
        const active = [...result.values()].filter((standing) => standing.active).length;
        expect(active).toBe(Math.min(slots, entries.length));
        const reversed = standings({ name: 'w', slots }, entries.toReversed());
        for (const [key, standing] of result) expect(reversed.get(key)).toEqual(standing);
      }),
    );
  });
});

describe('handles', () => {
  it('belong to the oldest agent that asks for them', () => {
    const first = entry('bw-b/one', { handle: 'bot' });
    const second = entry('bw-a/two', { handle: 'bot', createdAt: Date.parse('2026-01-02T00:00:00Z') });
    expect(resolveHandles([first, second]).get('bot')?.key).toBe('bw-b/one');
    const result = standings({ name: 'acme', slots: 5 }, [second, first]);
    expect(result.get('bw-b/one')).toEqual({ active: true, handle: 'bot' });
    expect(result.get('bw-a/two')).toEqual({ active: true, conflictsWith: 'b.one' });
  });

  it('stay with their holder when a newcomer of the same second sorts before it', () => {
    const holder = entry('bw-b/x', { handle: 'bot', holdsHandle: true });
    const result = standings({ name: 'acme', slots: 5 }, [entry('bw-a/y', { handle: 'bot' }), holder]);
    expect(result.get('bw-b/x')?.handle).toBe('bot');
    expect(result.get('bw-a/y')?.conflictsWith).toBe('b.x');
  });
});
