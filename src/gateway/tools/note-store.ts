/**
 * The notes of agents: AgentMemory objects. The informer's projections, overlaid with own writes
 * until the watch brings them, so that an agent finds what it has just saved.
 */
import { createHash } from 'node:crypto';
import { API_VERSION } from '../../api/define-resource.js';
import { ANNOTATION_CREATED_AT, ANNOTATION_REQUESTED_BY, LABEL_AGENT } from '../../api/labels.js';
import { objectKey, type ObjectMeta } from '../../api/meta.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { AgentMemories, MAX_MEMORIES, MAX_MEMORY_BYTES } from '../../api/v1alpha1/agent-memory.js';
import { isAlreadyExists, isNotFound } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import { compare } from '../../runtime/compare.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { ToolRefusal, type ToolContext } from './tool-context.js';
import { isUntrusted } from '../../run/trust.js';
import { projectGatewayMemory } from '../../projections/agent-memory.js';
import type { GatewayMemory } from '../../projections/agent-memory.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';

export interface NoteStoreOptions {
  api: Pick<KubeApi, 'get' | 'create' | 'delete'>;
  cache: Pick<Cache<GatewayMemory>, 'get' | 'byIndex' | 'onChange'>;
  clock: Clock;
}

export class NoteStore {
  readonly #options: NoteStoreOptions;
  /** Own writes that the watch has not brought yet; null = deleted. */
  readonly #newer = new Map<string, GatewayMemory | null>();

  constructor(options: NoteStoreOptions) {
    this.#options = options;
    options.cache.onChange(({ key }) => this.#newer.delete(key));
  }

  /** All notes of an agent, the newest first. */
  of(namespace: string, agent: string): GatewayMemory[] {
    const key = agentKey(namespace, agent);
    const notes = new Map(this.#options.cache.byIndex(BY_AGENT, key).map((note) => [note.name, note]));
    for (const note of this.#newer.values())
      if (note !== null && agentKey(note.namespace, note.agent) === key) notes.set(note.name, note);
    return [...notes.values()]
      .filter((note) => !note.deleting && this.#newer.get(objectKey(note)) !== null)
      .sort((a, b) => (a.updatedAt === b.updatedAt ? compare(b.name, a.name) : compare(b.updatedAt, a.updatedAt)));
  }

  /** Saves a note. Throws a {@link ToolRefusal}. A repeated call finds the note that it made. */
  async save(context: ToolContext, text: string): Promise<GatewayMemory> {
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_MEMORY_BYTES) {
      throw new ToolRefusal(`the note has ${bytes} bytes; at most ${MAX_MEMORY_BYTES} are possible: shorten it`);
    }
    const { namespace, agent } = context;
    const name = noteName(context);
    const known = this.of(namespace, agent.name);
    if (known.length >= MAX_MEMORIES && !known.some((note) => note.name === name)) {
      throw new ToolRefusal(`you have ${MAX_MEMORIES} notes, which is the limit: delete some that are not needed`);
    }
    const note = projectGatewayMemory(await this.#create(context, name, text));
    this.#newer.set(objectKey(note), note);
    return note;
  }

  /** Deletes a note of the agent. Throws a {@link ToolRefusal}; one that is gone meanwhile counts as deleted. */
  async delete({ namespace, agent, run }: ToolContext, id: string): Promise<void> {
    const note = this.of(namespace, agent.name).find(({ name }) => name === id);
    if (note === undefined) throw new ToolRefusal(`there is no note ${id}: memory_search shows the ids`);
    if (isUntrusted(run) && !note.untrusted) {
      throw new ToolRefusal('a run that came from outside cannot delete this note: it was saved by a trusted run');
    }
    const ref = { namespace, name: id };
    this.#newer.set(objectKey(ref), null);
    try {
      await this.#options.api.delete(AgentMemories, ref, { uid: note.uid });
    } catch (error) {
      if (isNotFound(error)) return;
      this.#newer.delete(objectKey(ref));
      throw error;
    }
  }

  async #create(context: ToolContext, name: string, text: string) {
    const { api, clock } = this.#options;
    const { namespace, agent, run } = context;
    const now = isoNow(clock);
    const metadata: ObjectMeta = {
      namespace,
      name,
      labels: { [LABEL_AGENT]: agent.name },
      annotations: { [ANNOTATION_REQUESTED_BY]: `run:${run.metadata.name}`, [ANNOTATION_CREATED_AT]: now },
      ownerReferences: [{ apiVersion: API_VERSION, kind: Agents.kind, name: agent.name, uid: agent.uid }],
    };
    const spec = {
      agent: agent.name,
      text,
      updatedAt: now,
      run: run.metadata.name,
      ...(isUntrusted(run) ? { untrusted: true } : {}),
    };
    try {
      return await api.create(AgentMemories, { apiVersion: API_VERSION, kind: AgentMemories.kind, metadata, spec });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return await api.get(AgentMemories, { namespace, name });
    }
  }
}

/** The same call of the same run gives the same name. */
function noteName({ agent, run, call }: ToolContext): string {
  const digest = createHash('sha256')
    .update(`${run.metadata.uid ?? ''} ${call}`)
    .digest('hex');
  return `${agent.name}-${digest.slice(0, 20)}`;
}
