import { CONTINUE } from '../../runtime/steps.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { CountMirror } from './count-mirror.js';
import { mirrorCounts } from './mirror-counts.js';

interface Counts {
  running?: number;
  queued?: number;
  namespace?: string;
}

describe('counts in a status', () => {
  function setup(status: Counts) {
    const clock = new FakeClock();
    return { clock, mirror: new CountMirror(clock), draft: { status } };
  }

  it('are written at once the first time, beside what others wrote', () => {
    const { mirror, draft } = setup({ namespace: 'bw-a' });
    expect(mirrorCounts<Counts>(mirror, 'a', draft, { running: 0, queued: 0 })).toEqual(CONTINUE);
    expect(draft.status).toEqual({ namespace: 'bw-a', running: 0, queued: 0 });
  });

  it('are written 5 s after the first difference, however often it changes meanwhile', async () => {
    const { clock, mirror, draft } = setup({ running: 0, queued: 0 });
    expect(mirrorCounts<Counts>(mirror, 'a', draft, { running: 1 })).toEqual({ stop: false, requeueAfterMs: 5000 });
    await clock.advance(3000);
    expect(mirrorCounts<Counts>(mirror, 'a', draft, { running: 7 })).toEqual({ stop: false, requeueAfterMs: 2000 });
    expect(draft.status).toEqual({ running: 0, queued: 0 });
    await clock.advance(2000);
    expect(mirrorCounts<Counts>(mirror, 'a', draft, { running: 3 })).toEqual(CONTINUE);
    expect(draft.status).toEqual({ running: 3, queued: 0 });
  });

  it('are not written when they end where they began', async () => {
    const { clock, mirror, draft } = setup({ running: 0 });
    mirrorCounts<Counts>(mirror, 'a', draft, { running: 1 });
    await clock.advance(4000);
    expect(mirrorCounts<Counts>(mirror, 'a', draft, { running: 0 })).toEqual(CONTINUE);
    await clock.advance(4000);
    expect(mirrorCounts<Counts>(mirror, 'a', draft, { running: 1 })).toEqual({ stop: false, requeueAfterMs: 5000 });
    expect(draft.status).toEqual({ running: 0 });
  });
});
