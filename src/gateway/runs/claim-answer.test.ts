import { AgentSpec } from '../../api/v1alpha1/agent.js';
import { BoxSpec } from '../../api/v1alpha1/box.js';
import { contextWindowOf } from './claim-answer.js';
import { projectGatewayAgent } from '../../projections/agent.js';
import { projectGatewayBox } from '../../projections/box.js';

const agent = (spec: object) =>
  projectGatewayAgent({
    apiVersion: '',
    kind: '',
    metadata: { name: 'a' },
    spec: AgentSpec.parse({ name: 'A', ...spec }),
  });
const box = (spec: object) =>
  projectGatewayBox({
    apiVersion: '',
    kind: '',
    metadata: { name: 'b' },
    spec: BoxSpec.parse({ workspace: 'w', ...spec }),
  });
const endpoint = { baseUrl: 'http://vllm:8000/v1', contextWindow: 32_768 };

test.each([
  ['of a known model', { provider: 'anthropic', model: 'claude-haiku-4-5' }, {}, 200_000],
  ['of a model that is not known', { provider: 'anthropic', model: 'claude-next' }, {}, undefined],
  ["of the Box's own endpoint", {}, { endpoint }, 32_768],
  ['of an endpoint that does not say', {}, { endpoint: { baseUrl: endpoint.baseUrl } }, undefined],
  ['of the scripted engine', {}, { engine: 'scripted', endpoint }, undefined],
])('the context window %s', (_what, agentSpec, boxSpec, expected) => {
  expect(contextWindowOf(agent(agentSpec), box(boxSpec))).toBe(expected);
});
