/** What a runner says about its end: to a gateway or, when none took it, in the termination message of its container. */
import { redact } from '../observability/logger.js';
import { cutUtf8 } from '../runtime/text.js';
import type { RunOutcome } from './outcome.js';
import { isReportedReason } from './reasons.js';

const MAX_MESSAGE_BYTES = 1024;

/** Undefined for a reason that a runner may not give. No secret and no endless text gets into a status. */
export function reportedOutcome({ reason, message }: { reason: string; message: string }): RunOutcome | undefined {
  return isReportedReason(reason) ? { reason, message: cutUtf8(redact(message), MAX_MESSAGE_BYTES) } : undefined;
}
