/** Runs on a model server of the Box, through the real runner and the real gateway. */
import { LABEL_CREDENTIAL } from '../../../src/api/credentials.js';
import { Secrets } from '../../../src/kube/core-types.js';
import { startFakeProvider, type FakeAnswer, type FakeFault, type FakeProvider } from '../../builders/fake-provider.js';
import { NAMESPACE } from '../../builders/gateway-world.js';
import { PodWorld } from '../../builders/pod-world.js';

const KEY = 'sk-local-0123456789abcdef';

export interface LocalModelOptions {
  answers: readonly (FakeAnswer | FakeFault)[];
  contextWindow?: number | undefined;
  /** Fields of the agent's spec. */
  agent?: Record<string, unknown>;
}

export interface LocalModel {
  vendor: FakeProvider;
  pods: PodWorld;
  close(): Promise<void>;
}

/** A Box with an endpoint and its key, and a server that gives these answers. */
export async function startLocalModel(
  temporary: Parameters<typeof PodWorld.start>[0],
  { answers, contextWindow, agent }: LocalModelOptions,
): Promise<LocalModel> {
  const vendor = await startFakeProvider({ key: KEY, answers });
  const endpoint = {
    baseUrl: vendor.baseUrl('local'),
    model: 'small',
    secretRef: { name: 'models', key: 'API_KEY' },
    ...(contextWindow === undefined ? {} : { contextWindow }),
  };
  const pods = await PodWorld.start(temporary, {
    box: { engine: undefined, endpoint },
    ...(agent === undefined ? {} : { agent }),
  });
  pods.world.api.seed(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'models', namespace: NAMESPACE, labels: { [LABEL_CREDENTIAL]: 'true' } },
    data: { API_KEY: Buffer.from(KEY).toString('base64') },
  });
  const close = async () => {
    await pods.close();
    await pods.world.dispatcher.close();
    await vendor.close();
  };
  return { vendor, pods, close };
}
