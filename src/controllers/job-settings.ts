/** What all Jobs share: the image from the settings, the gateway's address from its Service, the CA from the installation. */
import { Services } from '../kube/core-types.js';
import type { KubeApi } from '../kube/types.js';
import type { Clock } from '../runtime/clock.js';
import type { JobSettings } from './agent-run/job.js';
import type { ControllerConfig } from './config.js';
import { gatewayServerNames } from './installation/controller.js';

export interface JobSettingsDependencies {
  api: Pick<KubeApi, 'get'>;
  clock: Pick<Clock, 'monotonic'>;
  config: Pick<ControllerConfig, 'runImage' | 'runImagePullPolicy' | 'gatewayService' | 'releaseNamespace'>;
  /** PEM bundle; undefined until the installation is set up. */
  caBundle: () => string | undefined;
}

/** A Service keeps its address for its life, but it may be made again. */
const ADDRESS_MS = 60_000;

/** Rejects with a message for the operator while the CA or the Service's address is not there. */
export function createJobSettings(deps: JobSettingsDependencies): (signal: AbortSignal) => Promise<JobSettings> {
  const { config } = deps;
  let known: { ip: string; at: number } | undefined;
  const gatewayIp = async (signal: AbortSignal) => {
    const now = deps.clock.monotonic();
    if (known !== undefined && now - known.at < ADDRESS_MS) return known.ip;
    const ref = { namespace: config.releaseNamespace, name: config.gatewayService };
    const ip = (await deps.api.get(Services, ref, { signal })).spec?.clusterIP;
    if (ip === undefined || ip === '' || ip === 'None') {
      throw new Error(`Service ${ref.namespace}/${ref.name} has no cluster IP: runs could not reach the gateway`);
    }
    known = { ip, at: now };
    return ip;
  };
  return async (signal) => {
    const gatewayCa = deps.caBundle();
    if (gatewayCa === undefined) throw new Error('the certificate authority of the installation is not there yet');
    const [gatewayServerName = ''] = gatewayServerNames(config.gatewayService, config.releaseNamespace);
    return {
      image: config.runImage,
      imagePullPolicy: config.runImagePullPolicy,
      gatewayIp: await gatewayIp(signal),
      gatewayServerName,
      gatewayCa,
    };
  };
}
