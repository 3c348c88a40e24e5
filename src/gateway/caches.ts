/** What the gateway watches, as projections; Secrets and chunks are never watched. */
import type { KubeObject } from '../api/meta.js';
import type { Informer, InformerOptions } from '../kube/types.js';
import type { Problem } from '../observability/probes.js';
import { agentCredentialsInformer, gatewayAgentInformer } from '../projections/agent.js';
import type { AgentCredentials, GatewayAgent } from '../projections/agent.js';
import { gatewayMemoryInformer } from '../projections/agent-memory.js';
import type { GatewayMemory } from '../projections/agent-memory.js';
import { gatewayRunInformer } from '../projections/agent-run.js';
import type { GatewayRun } from '../projections/agent-run.js';
import { gatewaySkillInformer } from '../projections/agent-skill.js';
import type { GatewaySkill } from '../projections/agent-skill.js';
import { gatewayBoxInformer } from '../projections/box.js';
import type { GatewayBox } from '../projections/box.js';
import { gatewayConnectorInformer } from '../projections/connector.js';
import type { GatewayConnector } from '../projections/connector.js';
import { gatewayJobInformer } from '../projections/job.js';
import type { GatewayJob } from '../projections/job.js';
import { gatewayRunPodInformer, peerPodInformer } from '../projections/pod.js';
import type { GatewayRunPod, PeerPod } from '../projections/pod.js';
import type { Runnable } from '../runtime/manager.js';

export interface GatewayCaches {
  runs: Informer<GatewayRun>;
  pods: Informer<GatewayRunPod>;
  jobs: Informer<GatewayJob>;
  agents: Informer<GatewayAgent>;
  credentials: Informer<AgentCredentials>;
  boxes: Informer<GatewayBox>;
  connectors: Informer<GatewayConnector>;
  notes: Informer<GatewayMemory>;
  skills: Informer<GatewaySkill>;
  gateways: Informer<PeerPod>;
}

/** Makes an informer that is not started yet. */
export type InformerFactory = <T extends KubeObject, P>(options: InformerOptions<T, P>) => Informer<P>;

export interface GatewayPodSelection {
  releaseNamespace: string;
  gatewaySelector: string;
}

export function createGatewayCaches(informer: InformerFactory, own: GatewayPodSelection): GatewayCaches {
  return {
    runs: informer(gatewayRunInformer),
    pods: informer(gatewayRunPodInformer),
    jobs: informer(gatewayJobInformer),
    credentials: informer(agentCredentialsInformer),
    agents: informer(gatewayAgentInformer),
    boxes: informer(gatewayBoxInformer),
    connectors: informer(gatewayConnectorInformer),
    notes: informer(gatewayMemoryInformer),
    skills: informer(gatewaySkillInformer),
    gateways: informer(peerPodInformer(own.releaseNamespace, own.gatewaySelector)),
  };
}

/** Starts all watches; the start resolves when each has its first full list. */
export function cachesRunnable(caches: GatewayCaches): Runnable {
  const all = Object.values(caches) as Informer<unknown>[];
  return {
    name: 'caches',
    start: async () => {
      for (const informer of all) informer.start();
      await Promise.all(all.map((informer) => informer.synced));
    },
    stop: async () => {
      await Promise.all(all.map((informer) => informer.stop()));
    },
  };
}

/** Watches that are behind, for the readiness of the pod. */
export function cacheProblems(caches: GatewayCaches): Problem[] {
  return Object.entries(caches).flatMap(([name, informer]) =>
    (informer as Informer<unknown>).isHealthy()
      ? []
      : [{ check: `informer ${name}`, message: 'the watch is behind or was never filled' }],
  );
}
