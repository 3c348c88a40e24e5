import { makeAgent } from '../../test/builders/run-objects.js';
import { agentCredentialsInformer, projectApiAgent, projectControllerAgent, projectGatewayAgent } from './agent.js';

const agent = makeAgent({
  soul: 'the soul',
  description: 'the description',
  mcpServers: [{ name: 'docs', transport: 'http', url: 'https://docs.example.com/mcp', enabled: true }],
});

test('only the gateway, which answers the claim of a run, caches the system prompt', () => {
  expect(projectGatewayAgent(agent).spec.soul).toBe('the soul');
  for (const projected of [
    projectApiAgent(agent),
    projectControllerAgent(agent),
    agentCredentialsInformer.project(agent),
  ])
    expect(JSON.stringify(projected)).not.toContain('the soul');
});

test('the controller drops old system prompts', () => {
  const revisions = [{ revision: 1, soul: 'the old soul' }];
  const projected = projectControllerAgent({ ...agent, status: { active: true, revisions } as never });
  expect(projected.status).toEqual({ active: true });
});

test.each([
  ['none', {}, false],
  ['a connector', { connectors: ['github'] }, true],
  ['a server without a reference', { mcpServers: agent.spec.mcpServers }, false],
  [
    'a server with a reference',
    {
      mcpServers: [
        { name: 'a', transport: 'http', url: 'https://a.example.com', headers: [{ name: 'K', value: '${KEY}' }] },
      ],
    },
    true,
  ],
])('credentials are looked up for an agent with %s', (_name, spec, uses) => {
  expect(agentCredentialsInformer.project(makeAgent(spec)).usesCredentials).toBe(uses);
});
