/** What the gateway watches, as projections; Secrets and chunks are never watched. */
import type { Informer, InformerFactory } from '../kube/types.js';
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
import { API_PODS, gatewayRunPodInformer, peerPodInformer } from '../projections/pod.js';
import type { GatewayRunPod, PeerPod } from '../projections/pod.js';

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
  apis: Informer<PeerPod>;
}

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
    apis: informer(peerPodInformer(own.releaseNamespace, API_PODS)),
  };
}
