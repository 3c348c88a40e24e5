/** What all Jobs share: the images from the settings, the gateway's address from its Service, the CA from the installation. */
import type { KubeApi } from '../kube/types.js';
import type { Clock } from '../runtime/clock.js';
import type { JobSettings } from './agent-run/admission/job.js';
import type { ControllerConfig } from './config.js';
import { gatewayServerNames } from './installation/controller.js';
import { createServiceAddress } from './service-address.js';

export interface JobSettingsDependencies {
  api: Pick<KubeApi, 'get'>;
  clock: Pick<Clock, 'monotonic'>;
  config: Pick<
    ControllerConfig,
    'runnerImage' | 'toolsImage' | 'runImagePullPolicy' | 'runPods' | 'gatewayService' | 'releaseNamespace'
  >;
  /** PEM bundle; undefined until the installation is set up. */
  caBundle: () => string | undefined;
}

/** Rejects with a message for the operator while the CA or the Service's address is not there. */
export function createJobSettings(deps: JobSettingsDependencies): (signal: AbortSignal) => Promise<JobSettings> {
  const { config } = deps;
  const gateway = createServiceAddress(deps, { namespace: config.releaseNamespace, name: config.gatewayService });
  return async (signal) => {
    const gatewayCa = deps.caBundle();
    if (gatewayCa === undefined) throw new Error('the certificate authority of the installation is not there yet');
    const [gatewayServerName = ''] = gatewayServerNames(config.gatewayService, config.releaseNamespace);
    return {
      runnerImage: config.runnerImage,
      toolsImage: config.toolsImage,
      imagePullPolicy: config.runImagePullPolicy,
      pods: config.runPods,
      gatewayIp: (await gateway(signal)).ip,
      gatewayServerName,
      gatewayCa,
    };
  };
}
