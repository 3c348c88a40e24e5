/** What the chart says about the image, rendered without a cluster. */
import { renderChart } from '../builders/chart.js';

interface Manifest {
  kind: string;
  metadata: { name: string };
  spec?: { template?: { spec?: { imagePullSecrets?: { name: string }[] } } };
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
