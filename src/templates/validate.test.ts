/** Templates of much text: a few compressed bytes hold megabytes, and the process serves others meanwhile. */
import { packedFiles } from '../../test/builders/skill-files.js';
import { turnsDuring } from '../../test/builders/turns.js';
import { AgentSpec } from '../api/v1alpha1/agent.js';
import { renameMentions } from './mentions.js';
import { mapPrompts, type AgentSnapshot } from './snapshot.js';
import { checkTemplate } from './validate.js';

const SKILLS = 6;
const CONTEXT = { unknownConnector: () => undefined, needsSecrets: () => false, whyUnavailable: () => undefined };

/** Each skill has 1 MiB of files that say the same. */
function agentSaying(words: string): AgentSnapshot {
  const content = Buffer.from(words.repeat(Math.floor((256 * 1024) / words.length)));
  const files = packedFiles(new Map(['a', 'b', 'c', 'd'].map((path) => [`${path}.md`, content])));
  return {
    id: 'ta-1',
    sourceAgentId: 'box.writer',
    sourceUid: '',
    capturedAt: '',
    handle: 'writer',
    spec: AgentSpec.parse({ name: 'Writer' }),
    skills: Array.from({ length: SKILLS }, (_, n) => ({
      slug: `s-${n}`,
      spec: { name: 's', description: 'd', body: 'b', ...files },
    })),
    schedules: [],
    triggers: [],
  };
}

test('others are served while a template is checked', async () => {
  const agents = [agentSaying('Ask @writer. ')];
  const turns = await turnsDuring(async () => {
    expect((await checkTemplate({ description: 'd', agents }, CONTEXT)).problems).toEqual([]);
  });
  expect(turns).toBeGreaterThanOrEqual(5 * SKILLS);
});

test('others are served while mentions are changed for an install', async () => {
  const handles = new Map([['writer', 'author']]);
  const turns = await turnsDuring(async () => {
    const changed = await mapPrompts(agentSaying('Ask @writer. '), (text) => renameMentions(text, handles));
    expect(changed.skills).toHaveLength(SKILLS);
  });
  expect(turns).toBeGreaterThanOrEqual(SKILLS);
});

test('files of more than 64 MiB are not read', async () => {
  const agents = Array.from({ length: 11 }, () => agentSaying('Ask @ghost. '));
  const { problems } = await checkTemplate({ description: 'd', agents }, CONTEXT);
  expect(problems.map(({ message }) => message)).toEqual([
    'files of skills have more than 67108864 bytes (64 MiB) together: remove some',
  ]);
});

test('of many problems the first are told', async () => {
  const soul = Array.from({ length: 5000 }, (_, n) => `@ghost-${n} `).join('');
  const agent = { ...agentSaying('x'), spec: AgentSpec.parse({ name: 'Writer', soul: soul.slice(0, 65_000) }) };
  const { problems } = await checkTemplate({ description: 'd', agents: [agent, agent] }, CONTEXT);
  expect(problems).toHaveLength(201);
  expect(problems.at(-1)?.message).toBe('there are more problems: mend these and check again');
});
