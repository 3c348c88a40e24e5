/** The termination message: the outcome of a run whose end no gateway heard. */
import { MAX_TERMINATION_MESSAGE_BYTES } from '../protocol/run.js';
import type { FinishRequest, TerminationMessage } from '../protocol/run.js';
import { cutUtf8 } from '../runtime/text.js';

const MAX_MESSAGE_BYTES = 512;

/** JSON of at most 3 KiB; the output is cut to what fits. `steps` is the runner's own count. */
export function renderTermination(outcome: FinishRequest['outcome'], steps: number): string {
  const render = (output: string | null) => {
    const content: TerminationMessage = {
      v: 1,
      reason: outcome.reason,
      message: cutUtf8(outcome.message, MAX_MESSAGE_BYTES),
      output,
      outputTruncated: output !== outcome.output,
      steps,
    };
    return JSON.stringify(content);
  };
  let size = MAX_TERMINATION_MESSAGE_BYTES;
  for (;;) {
    // An output of control characters grows six times in JSON, so the size is found by trying.
    const text = render(outcome.output === null ? null : cutUtf8(outcome.output, size));
    if (Buffer.byteLength(text) <= MAX_TERMINATION_MESSAGE_BYTES) return text;
    size = Math.floor(size * 0.9);
  }
}
