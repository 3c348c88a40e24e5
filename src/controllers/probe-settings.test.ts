import { FakeClock } from '../../test/builders/fake-clock.js';
import { RecordingApi } from '../../test/builders/recording-api.js';
import { Services } from '../kube/core-types.js';
import { createProbeSettings } from './probe-settings.js';
import { RunPods } from './run-pods.js';

const SIGNAL = new AbortController().signal;

function setUp(apiService: object) {
  const api = new RecordingApi();
  const seed = (name: string, spec: object) =>
    api.seed(Services, { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'rel' }, spec });
  seed('boxwright-gateway', { clusterIP: '10.96.0.7' });
  seed('boxwright-api', apiService);
  const config = {
    runnerImage: 'boxwright-runner:1',
    runImagePullPolicy: 'Never',
    runPods: RunPods.parse({ priorityClassName: 'low' }),
    gatewayService: 'boxwright-gateway',
    apiService: 'boxwright-api',
    releaseNamespace: 'rel',
  } as const;
  return createProbeSettings({ api, clock: new FakeClock(), config });
}

test('a probe tries the gateway where runs call it, and the API where clients in the cluster do', async () => {
  expect(await setUp({ clusterIP: '10.96.0.8', ports: [{ name: 'http', port: 80 }] })(SIGNAL)).toEqual({
    image: 'boxwright-runner:1',
    imagePullPolicy: 'Never',
    pods: RunPods.parse({ priorityClassName: 'low' }),
    targets: [
      { name: 'gateway', host: '10.96.0.7', port: 8443 },
      { name: 'api', host: '10.96.0.8', port: 80 },
    ],
  });
});

test('a Service without an address is an error that says so', async () => {
  await expect(setUp({ clusterIP: 'None' })(SIGNAL)).rejects.toThrow('Service rel/boxwright-api has no cluster IP');
});
