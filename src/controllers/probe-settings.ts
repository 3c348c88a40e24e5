/** What all network probes share: the image, and the addresses that they try. */
import { API_PORT, GATEWAY_PORT } from '../protocol/pod.js';
import type { ProbeSettings } from './box/probe-job.js';
import type { ControllerConfig } from './config.js';
import { createServiceAddress } from './service-address.js';
import type { JobSettingsDependencies } from './job-settings.js';

export interface ProbeSettingsDependencies extends Pick<JobSettingsDependencies, 'api' | 'clock'> {
  config: Pick<
    ControllerConfig,
    'runnerImage' | 'runImagePullPolicy' | 'runPods' | 'gatewayService' | 'apiService' | 'releaseNamespace'
  >;
}

/** Rejects with a message for the operator while a Service of the installation has no address. */
export function createProbeSettings(deps: ProbeSettingsDependencies): (signal: AbortSignal) => Promise<ProbeSettings> {
  const { config } = deps;
  const gateway = createServiceAddress(deps, { namespace: config.releaseNamespace, name: config.gatewayService });
  const api = createServiceAddress(deps, { namespace: config.releaseNamespace, name: config.apiService });
  return async (signal) => {
    const [gatewayAddress, apiAddress] = await Promise.all([gateway(signal), api(signal)]);
    return {
      image: config.runnerImage,
      imagePullPolicy: config.runImagePullPolicy,
      pods: config.runPods,
      targets: [
        { name: 'gateway', host: gatewayAddress.ip, port: GATEWAY_PORT },
        { name: 'api', host: apiAddress.ip, port: apiAddress.port ?? API_PORT },
      ],
    };
  };
}
