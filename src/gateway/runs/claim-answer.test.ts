import { recordingLog } from '../../../test/builders/log.js';
import { AgentSpec } from '../../api/v1alpha1/agent.js';
import { BoxSpec } from '../../api/v1alpha1/box.js';
import { CatalogSource } from '../../models/catalog-source.js';
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
/** With a ConfigMap in front of the built-in catalogue. */
const FILE = 'anthropic/claude-own: { contextWindow: 123456 }\nanthropic/claude-opus-5: { contextWindow: 200000 }';
const catalog = new CatalogSource(
  {
    get: () =>
      Promise.resolve({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { 'prices.yaml': FILE } }),
  },
  { namespace: 'n', name: 'm' },
  recordingLog().log,
);
const endpoint = { baseUrl: 'http://vllm:8000/v1', contextWindow: 32_768 };

test.each([
  ['of a known model', { provider: 'anthropic', model: 'claude-haiku-4-5' }, {}, 200_000],
  ['that only the ConfigMap knows', { provider: 'anthropic', model: 'claude-own-2026-11-01' }, {}, 123_456],
  ['of the ConfigMap before that of the catalogue', { provider: 'anthropic', model: 'claude-opus-5' }, {}, 200_000],
  ['of a model that is not known', { provider: 'anthropic', model: 'claude-next' }, {}, undefined],
  ["of the Box's own endpoint", {}, { endpoint }, 32_768],
  ['of an endpoint that does not say', {}, { endpoint: { baseUrl: endpoint.baseUrl } }, undefined],
  ['of the scripted engine', {}, { engine: 'scripted', endpoint }, undefined],
])('the context window %s', async (_what, agentSpec, boxSpec, expected) => {
  expect(await contextWindowOf({ agent: agent(agentSpec), box: box(boxSpec) }, catalog)).toBe(expected);
});
