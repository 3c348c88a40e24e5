/** The token that the kubelet asks for the projected volume of a run pod. */
import { RUNNER_SERVICE_ACCOUNT, RUN_TOKEN_AUDIENCE } from '../../src/api/labels.js';
import type { KubeObject } from '../../src/api/meta.js';
import type { KubeTransport } from '../../src/kube/transport.js';

/** A genuine one of the API server, bound to the pod. */
export async function podToken(
  transport: Pick<KubeTransport, 'request'>,
  { metadata: { name, namespace = '', uid = '' } }: Pick<KubeObject, 'metadata'>,
  audience = RUN_TOKEN_AUDIENCE,
): Promise<string> {
  const answer = (await transport.request({
    verb: 'create',
    resource: 'serviceaccounts/token',
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${RUNNER_SERVICE_ACCOUNT}/token`,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: [audience],
        expirationSeconds: 600,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    },
  })) as KubeObject & { status: { token: string } };
  return answer.status.token;
}
