/**
 * Calls as some servers send them, which the SDK would lose. It finds calls by id, so that of several with one id it would take the
 * first for all; and it makes none after an end that it does not know, such as `eos` of a server of one's own.
 */
import { wrapLanguageModel } from 'ai';
import type { LanguageModel, LanguageModelMiddleware } from 'ai';

/** The model, with an id of its own for every call of an answer, and an end that lets them be made; results go back with that id. */
export function withOwnCallIds(model: Exclude<LanguageModel, string>) {
  return wrapLanguageModel({ model, middleware: OWN_CALL_IDS });
}

const OWN_CALL_IDS: LanguageModelMiddleware = {
  specificationVersion: 'v4',
  wrapGenerate: async ({ doGenerate }) => {
    const answer = await doGenerate();
    const used = new Set<string>();
    const content = answer.content.map((part) =>
      part.type === 'tool-call' ? { ...part, toolCallId: ownId(part.toolCallId, used) } : part,
    );
    const hasCalls = content.some(({ type }) => type === 'tool-call');
    const { finishReason } = answer;
    const isOdd = hasCalls && finishReason.unified === 'other';
    return { ...answer, content, ...(isOdd ? { finishReason: { ...finishReason, unified: 'tool-calls' } } : {}) };
  },
};

function ownId(id: string, used: Set<string>): string {
  let own = id;
  for (let copy = 2; used.has(own); copy++) own = `${id}_${copy}`;
  used.add(own);
  return own;
}
