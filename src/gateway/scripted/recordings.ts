/** Recordings of runs, in ConfigMaps of the namespace of the run that replays them. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { MAX_TRANSCRIPT_INFLATED_BYTES } from '../../api/v1alpha1/agent-run-chunk.js';
import type { RunRecording } from '../../api/v1alpha1/agent-run.js';
import { ConfigMaps } from '../../kube/core-types.js';
import { orUndefined } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { afterStep } from '../../runtime/event-loop.js';
import { DamagedChunkError, parseEvents } from '../../transcript/codec.js';
import type { ScriptedReply } from './engine.js';
import type { ChatRequest } from './openai.js';
import { RecordingError, recordingOf, replayed, replayFailed, type Recording } from './recording.js';

/** Key of the ConfigMap: the chunks of a transcript as they are stored, one after the other. */
export const RECORDING_KEY = 'recording.jsonl.gz';

const inflate = promisify(gunzip);

export class Recordings {
  constructor(private readonly api: Pick<KubeApi, 'get'>) {}

  /**
   * What answers in the place of a model. The recording is read anew for every answer: a gateway that serves many such runs
   * holds none of them. Rejects only when the API server does.
   */
  replay(namespace: string, recording: RunRecording): (request: ChatRequest) => Promise<ScriptedReply> {
    return async (request) => {
      const name = recording.configMap;
      try {
        return replayed(request, await this.#read(namespace, name), recording);
      } catch (error) {
        if (!(error instanceof RecordingError)) throw error;
        return replayFailed(`ConfigMap ${name} cannot be replayed: ${error.message}.`);
      }
    };
  }

  async #read(namespace: string, name: string): Promise<Recording> {
    const found = await orUndefined(this.api.get(ConfigMaps, { namespace, name }));
    if (found === undefined) throw new RecordingError('it is not in this namespace');
    const packed = found.binaryData?.[RECORDING_KEY];
    if (packed === undefined) throw new RecordingError(`it has no key ${RECORDING_KEY}`);
    const text = await textOf(packed);
    await afterStep(text.length);
    try {
      return recordingOf(parseEvents(text));
    } catch (error) {
      if (error instanceof DamagedChunkError) throw new RecordingError(error.message);
      throw error;
    }
  }
}

async function textOf(packed: string): Promise<Buffer> {
  try {
    return await inflate(Buffer.from(packed, 'base64'), { maxOutputLength: MAX_TRANSCRIPT_INFLATED_BYTES });
  } catch {
    throw new RecordingError(`${RECORDING_KEY} is no gzip of at most 4 MiB`);
  }
}
