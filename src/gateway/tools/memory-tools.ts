/** memory_search, memory_save, memory_delete. */
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import type { NoteStore } from './note-store.js';
import { answer, type ToolContext } from './tool-context.js';
import type { GatewayMemory } from '../../projections/agent-memory.js';

const DEFAULT_LIMIT = 20;

export class MemoryTools {
  readonly #notes: NoteStore;

  constructor(notes: NoteStore) {
    this.#notes = notes;
  }

  search(input: GatewayToolInput<'memory_search'>, { namespace, agent }: ToolContext): ToolAnswer {
    const words = (input.query ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.#notes
      .of(namespace, agent.name)
      .filter(({ text }) => words.every((word) => text.toLowerCase().includes(word)));
    const notes = found.slice(0, input.limit ?? DEFAULT_LIMIT).map(noteRecord);
    return answer({ notes, found: found.length });
  }

  async save({ text }: GatewayToolInput<'memory_save'>, context: ToolContext): Promise<ToolAnswer> {
    const note = await this.#notes.save(context, text);
    return answer({ id: note.name });
  }

  async delete({ id }: GatewayToolInput<'memory_delete'>, context: ToolContext): Promise<ToolAnswer> {
    await this.#notes.delete(context, id);
    return answer({ deleted: id });
  }
}

/** The mark is there only when it says something. */
function noteRecord({ name, text, updatedAt, untrusted }: GatewayMemory) {
  return { id: name, text, updatedAt, ...(untrusted ? { untrusted } : {}) };
}
