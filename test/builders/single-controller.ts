/** One controller process on an API server of its own, with what the chart makes before it starts. */
import { createLogger } from '../../src/observability/logger.js';
import { startApiServer } from './api-server.js';
import type { TestApiServer } from './api-server.js';
import { createRelease, startReplica } from './controller-replica.js';
import type { ReplicaOptions } from './controller-replica.js';

export interface SingleController {
  server: TestApiServer;
  stop(): Promise<void>;
}

/** `errors` gets what the controller logs as an error, and the loss of its lead. */
export async function startSingleController(
  options: Pick<ReplicaOptions, 'releaseNamespace' | 'config' | 'registry'> & { errors: string[] },
): Promise<SingleController> {
  const { errors, ...more } = options;
  const server = await startApiServer({ own: true });
  await server.applyCrds();
  await createRelease(server, more.releaseNamespace);
  const log = createLogger('test', 'error', { write: (line) => errors.push(line) });
  const onLost = (error: Error) => void errors.push(String(error));
  const controller = await startReplica({ server, podName: 'controller-0', log, onLost, ...more });
  return {
    server,
    stop: async () => {
      await controller.stop();
      await server.stop();
    },
  };
}
