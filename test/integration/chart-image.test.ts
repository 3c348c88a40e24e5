/** What the chart says about the images, rendered without a cluster. */
import { renderChart } from '../builders/chart.js';

interface Container {
  name: string;
  image: string;
  env?: { name: string; value?: string }[];
}

interface Manifest {
  kind: string;
  metadata: { name: string };
  spec?: { template?: { spec?: { containers?: Container[]; imagePullSecrets?: { name: string }[] } } };
}

test('every pod of the chart may pull its image from a private registry, that of the uninstall hook too', async () => {
  const manifests = await renderChart<Manifest>(['image.pullSecrets={regcred,other}']);

  const pods = manifests.flatMap(({ metadata: { name }, spec }) => {
    const pod = spec?.template?.spec;
    return pod === undefined ? [] : [{ name, secrets: pod.imagePullSecrets }];
  });

  const secrets = [{ name: 'regcred' }, { name: 'other' }];
  expect(pods).toEqual([
    { name: 'boxwright-api', secrets },
    { name: 'boxwright-controller', secrets },
    { name: 'boxwright-gateway', secrets },
    { name: 'boxwright-uninstall', secrets },
  ]);
});

/** The images in which processes of the control plane run, and those that it gives to run pods. */
async function imagesOf(values: string[]): Promise<{ pods: string[]; runner: string; tools: string }> {
  const manifests = await renderChart<Manifest>(values);
  const containers = manifests.flatMap(({ spec }) => spec?.template?.spec?.containers ?? []);
  const env = containers.find(({ name }) => name === 'controller')?.env ?? [];
  const valueOf = (name: string) => env.find((entry) => entry.name === name)?.value ?? '';
  return {
    pods: [...new Set(containers.map(({ image }) => image))],
    runner: valueOf('BOXWRIGHT_RUNNER_IMAGE'),
    tools: valueOf('BOXWRIGHT_TOOLS_IMAGE'),
  };
}

test('the search engine of the installation is a setting of the gateway, and SearXNG needs an address', async () => {
  const searchOf = async (...values: string[]) => {
    const manifests = await renderChart<Manifest>(values);
    const containers = manifests.flatMap(({ spec }) => spec?.template?.spec?.containers ?? []);
    const env = containers.find(({ name }) => name === 'gateway')?.env ?? [];
    return env.filter(({ name }) => name.includes('WEB_SEARCH')).map(({ value }) => value);
  };
  expect(await searchOf()).toEqual(['', '']);
  expect(await searchOf('gateway.webSearch.engine=brave')).toEqual(['brave', '']);
  const url = 'gateway.webSearch.baseUrl=http://searxng.search.svc:8080';
  expect(await searchOf('gateway.webSearch.engine=searxng', url)).toEqual([
    'searxng',
    'http://searxng.search.svc:8080',
  ]);
  await expect(searchOf('gateway.webSearch.engine=searxng')).rejects.toThrow('gateway.webSearch.baseUrl is required');
});

test('one repository and one tag name the images of the control plane and of both containers of run pods', async () => {
  expect(await imagesOf(['image.repository=reg.example.com/boxwright', 'image.tag=1.2.3'])).toEqual({
    pods: ['reg.example.com/boxwright:1.2.3'],
    runner: 'reg.example.com/boxwright-runner:1.2.3',
    tools: 'reg.example.com/boxwright-tools:1.2.3',
  });
  expect(await imagesOf([])).toEqual({
    pods: ['boxwright:0.1.0'],
    runner: 'boxwright-runner:0.1.0',
    tools: 'boxwright-tools:0.1.0',
  });
});

test('the images of run pods can have whole names of their own', async () => {
  const own = ['image.tag=1.2.3', 'image.tools=other.example.com/tools:9', 'image.runner=other.example.com/runner:8'];
  expect(await imagesOf(own)).toEqual({
    pods: ['boxwright:1.2.3'],
    runner: 'other.example.com/runner:8',
    tools: 'other.example.com/tools:9',
  });
});
