/** Some models use one id for several calls of an answer: the SDK, which finds calls by id, would take the first for all of them. */
import { wrapLanguageModel } from 'ai';
import type { LanguageModel, LanguageModelMiddleware } from 'ai';

/** The model, with an id of its own for every call of an answer; its result goes back with that. */
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
    return { ...answer, content };
  },
};

function ownId(id: string, used: Set<string>): string {
  let own = id;
  for (let copy = 2; used.has(own); copy++) own = `${id}_${copy}`;
  used.add(own);
  return own;
}
