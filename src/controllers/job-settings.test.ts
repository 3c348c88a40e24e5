import { FakeClock } from '../../test/builders/fake-clock.js';
import { RecordingApi } from '../../test/builders/recording-api.js';
import { Services } from '../kube/core-types.js';
import { createJobSettings } from './job-settings.js';
import { RunPods } from './run-pods.js';

const SIGNAL = new AbortController().signal;

function setUp(clusterIP?: string, ca: string | null = 'PEM') {
  const api = new RecordingApi();
  const clock = new FakeClock();
  api.seed(Services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'boxwright-gateway', namespace: 'boxwright' },
    spec: clusterIP === undefined ? {} : { clusterIP },
  });
  const config = {
    runnerImage: 'boxwright-runner:1',
    toolsImage: 'boxwright-tools:1',
    runImagePullPolicy: 'Never',
    runPods: RunPods.parse({ priorityClassName: 'low' }),
    gatewayService: 'boxwright-gateway',
    releaseNamespace: 'boxwright',
  } as const;
  return { api, clock, read: createJobSettings({ api, clock, config, caBundle: () => ca ?? undefined }) };
}

test('the gateway is reached by its address and verified by the name of its Service', async () => {
  const { read } = setUp('10.96.0.7');
  expect(await read(SIGNAL)).toEqual({
    runnerImage: 'boxwright-runner:1',
    toolsImage: 'boxwright-tools:1',
    imagePullPolicy: 'Never',
    pods: RunPods.parse({ priorityClassName: 'low' }),
    gatewayIp: '10.96.0.7',
    gatewayServerName: 'boxwright-gateway.boxwright.svc',
    gatewayCa: 'PEM',
  });
});

test('the Service is read once a minute at most', async () => {
  const { api, clock, read } = setUp('10.96.0.7');
  for (let i = 0; i < 3; i++) await read(SIGNAL);
  expect(api.reads).toHaveLength(1);
  await clock.advance(60_000);
  await read(SIGNAL);
  expect(api.reads).toHaveLength(2);
});

test.each([[undefined], ['None'], ['']])('a Service without an address (%s) is an error that says so', async (ip) => {
  await expect(setUp(ip).read(SIGNAL)).rejects.toThrow('Service boxwright/boxwright-gateway has no cluster IP');
});

test('no Job is made before the certificate authority is there', async () => {
  const { api, read } = setUp('10.96.0.7', null);
  await expect(read(SIGNAL)).rejects.toThrow('certificate authority of the installation is not there yet');
  expect(api.reads).toEqual([]);
});
