import { CONTINUE } from '../../runtime/steps.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { PublishDelay } from './publish-delay.js';
import { publishCounts } from './publish-counts.js';

interface Counts {
  running?: number;
  queued?: number;
  namespace?: string;
}

describe('counts in a status', () => {
  function setup(status: Counts) {
    const clock = new FakeClock();
    return { clock, publishDelay: new PublishDelay(clock), draft: { status } };
  }

  it('are written at once the first time, beside what others wrote', () => {
    const { publishDelay, draft } = setup({ namespace: 'bw-a' });
    expect(publishCounts<Counts>(publishDelay, 'a', draft, { running: 0, queued: 0 })).toEqual(CONTINUE);
    expect(draft.status).toEqual({ namespace: 'bw-a', running: 0, queued: 0 });
  });

  it('are written 5 s after the first difference, however often it changes meanwhile', async () => {
    const { clock, publishDelay, draft } = setup({ running: 0, queued: 0 });
    expect(publishCounts<Counts>(publishDelay, 'a', draft, { running: 1 })).toEqual({
      stop: false,
      requeueAfterMs: 5000,
    });
    await clock.advance(3000);
    expect(publishCounts<Counts>(publishDelay, 'a', draft, { running: 7 })).toEqual({
      stop: false,
      requeueAfterMs: 2000,
    });
    expect(draft.status).toEqual({ running: 0, queued: 0 });
    await clock.advance(2000);
    expect(publishCounts<Counts>(publishDelay, 'a', draft, { running: 3 })).toEqual(CONTINUE);
    expect(draft.status).toEqual({ running: 3, queued: 0 });
  });

  it('are not written when they end where they began', async () => {
    const { clock, publishDelay, draft } = setup({ running: 0 });
    publishCounts<Counts>(publishDelay, 'a', draft, { running: 1 });
    await clock.advance(4000);
    expect(publishCounts<Counts>(publishDelay, 'a', draft, { running: 0 })).toEqual(CONTINUE);
    await clock.advance(4000);
    expect(publishCounts<Counts>(publishDelay, 'a', draft, { running: 1 })).toEqual({
      stop: false,
      requeueAfterMs: 5000,
    });
    expect(draft.status).toEqual({ running: 0 });
  });
});
