import { exceededBacklog } from './backlog-budget.js';
import type { BacklogCount } from './backlog-budget.js';

const NONE: BacklogCount = { runs: 0, bytes: 0 };
const MIB = 1_048_576;

interface Counts {
  agent?: Partial<BacklogCount>;
  box?: Partial<BacklogCount>;
  installation?: Partial<BacklogCount>;
  finishedFull?: boolean;
}

function exceeded({ agent, box, installation, finishedFull = false }: Counts) {
  const reader = {
    agent: () => ({ ...NONE, ...agent }),
    box: () => ({ ...NONE, ...box }),
    installation: () => ({ ...NONE, ...installation }),
    isFinishedFull: () => finishedFull,
  };
  return exceededBacklog(reader, { box: 'b', agent: 'a' });
}

describe('exceededBacklog', () => {
  it.each<[string, Counts, string | undefined]>([
    ['an empty installation has room', {}, undefined],
    ['an agent has room for its 5,000th run', { agent: { runs: 4_999 } }, undefined],
    ['an agent takes at most half of the runs of its Box', { agent: { runs: 5_000 } }, 'agent'],
    ['an agent takes at most half of the bytes of its Box', { agent: { bytes: 32 * MIB } }, 'agent'],
    ['a Box has room for its 10,000th run', { box: { runs: 9_999 } }, undefined],
    ['a Box holds 10,000 runs', { box: { runs: 10_000 } }, 'box'],
    ['a Box has room below 64 MiB', { box: { bytes: 64 * MIB - 1 } }, undefined],
    ['a Box holds 64 MiB', { box: { bytes: 64 * MIB } }, 'box'],
    [
      'an installation has room for its 20,000th run',
      { box: { runs: 1_000 }, installation: { runs: 19_999 } },
      undefined,
    ],
    ['an installation holds 20,000 runs', { box: { runs: 1_000 }, installation: { runs: 20_000 } }, 'installation'],
    [
      'a Box has room below its guarantee',
      { box: { runs: 999, bytes: 4 * MIB - 1 }, installation: { runs: 20_000 } },
      undefined,
    ],
    ['an installation holds more finished runs than it may', { finishedFull: true }, 'installation'],
    ['an installation holds 256 MiB', { box: { bytes: 4 * MIB }, installation: { bytes: 256 * MIB } }, 'installation'],
  ])('%s', (_name, counts, expected) => expect(exceeded(counts)).toBe(expected));

  it('asks for the counts of this Box and agent', () => {
    const asked: string[] = [];
    exceededBacklog(
      {
        installation: () => NONE,
        isFinishedFull: () => false,
        box: (box) => (asked.push(box), NONE),
        agent: (box, agent) => (asked.push(`${box}.${agent}`), NONE),
      },
      { box: 'team', agent: 'cleo' },
    );
    expect(asked).toEqual(['team', 'team.cleo']);
  });
});
