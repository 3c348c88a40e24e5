/** Pods and Deployments of the control plane, for tests that take parts of it away. */
import { eventually, getObject, kubectl, kubectlOk, RELEASE_NAMESPACE } from './install.js';

/** Names of the running pods of a component of the control plane. */
export async function podsOf(component: string): Promise<string[]> {
  const names = await kubectlOk([
    'get',
    'pods',
    '-n',
    RELEASE_NAMESPACE,
    '-l',
    `app.kubernetes.io/component=${component}`,
    '--field-selector=status.phase=Running',
    '-o',
    'jsonpath={.items[*].metadata.name}',
  ]);
  return names.split(' ').filter((name) => name !== '');
}

/** Scales a Deployment of the control plane and waits until it is so. */
export async function scaled(deployment: string, replicas: number): Promise<void> {
  await kubectlOk(['-n', RELEASE_NAMESPACE, 'scale', `deployment/${deployment}`, `--replicas=${replicas}`]);
  await eventually(`${deployment} has ${replicas} pods`, async () => {
    const state = await getObject<{ status: { readyReplicas?: number; replicas?: number } }>(
      'deployment',
      deployment,
      RELEASE_NAMESPACE,
    );
    return (state?.status.readyReplicas ?? 0) === replicas && (state?.status.replicas ?? 0) === replicas;
  });
}

/** Deletes a pod without waiting for its grace. */
export async function kill(namespace: string, pod: string): Promise<void> {
  await kubectl(['delete', 'pod', pod, '-n', namespace, '--grace-period=0', '--force']);
}
