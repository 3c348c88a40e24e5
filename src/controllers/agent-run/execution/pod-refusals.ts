/** Why Kubernetes creates no pod for a Job: asked once when it takes long, and once more at the deadline. */
import type { KubeApi } from '../../../kube/types.js';
import { NO_POD_LOOK_MS } from './observe.js';
import { latestWarning } from '../../common/warnings.js';
import type { ControllerJob } from '../../../projections/job.js';

interface Asked {
  jobUid: string;
  text: string | undefined;
  /** Asked at the deadline: nothing more will be asked. */
  last: boolean;
}

export interface WaitingJob {
  /** Of the run: namespace/name. */
  key: string;
  job: ControllerJob;
  /** Milliseconds without a pod, and after how many the Job is given up. */
  ageMs: number;
  limitMs: number;
}

export class PodRefusals {
  readonly #asked = new Map<string, Asked>();

  constructor(private readonly api: Pick<KubeApi, 'list'>) {}

  /** What Kubernetes said; undefined before it is time to ask, or when it said nothing. */
  async of({ key, job, ageMs, limitMs }: WaitingJob, signal: AbortSignal): Promise<string | undefined> {
    if (ageMs < NO_POD_LOOK_MS) return undefined;
    const known = this.#asked.get(key);
    const last = ageMs >= limitMs;
    if (known?.jobUid === job.uid && (known.last || !last)) return known.text;
    const text = await latestWarning(this.api, job, signal);
    this.#asked.set(key, { jobUid: job.uid, text, last });
    return text;
  }

  /** The run is gone, or no answer is needed any more. */
  forget(key: string): void {
    this.#asked.delete(key);
  }
}
