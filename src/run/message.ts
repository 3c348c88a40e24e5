/** The message of a run, inline or compressed. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { MAX_MESSAGE_BYTES, type AgentRun } from '../api/v1alpha1/agent-run.js';

const inflate = promisify(gunzip);

/** The stored message is not what was accepted; says what is wrong, without its content. */
export class DamagedInputError extends Error {
  override readonly name = 'DamagedInputError';
}

/** The text of `spec.message` or `spec.input`. Rejects with {@link DamagedInputError}. */
export async function messageOf(spec: Pick<AgentRun['spec'], 'message' | 'input'>): Promise<string> {
  if (spec.message !== undefined) return spec.message;
  const { input } = spec;
  if (input === undefined) throw new DamagedInputError('the run has neither spec.message nor spec.input');
  if (input.data === undefined) throw new DamagedInputError('the data of spec.input is gone');
  let text: Buffer;
  try {
    text = await inflate(Buffer.from(input.data, 'base64'), { maxOutputLength: MAX_MESSAGE_BYTES });
  } catch {
    throw new DamagedInputError('spec.input.data is not gzip of at most 128 KiB');
  }
  if (text.length !== input.bytes)
    throw new DamagedInputError('spec.input.data has another size than spec.input.bytes');
  if (createHash('sha256').update(text).digest('hex') !== input.sha256) {
    throw new DamagedInputError('spec.input.data does not match spec.input.sha256');
  }
  return text.toString('utf8');
}

/** Stored size of the message of a run: of the text in the object, or of the compressed input. */
export function storedInputBytes(run: AgentRun): number {
  if (run.spec.message !== undefined) return Buffer.byteLength(run.spec.message);
  return run.spec.input?.data?.length ?? 0;
}
