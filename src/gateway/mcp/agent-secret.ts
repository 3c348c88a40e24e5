/**
 * Secret `<agent>-secrets`, read for each use and kept nowhere: what its references stand for, when the Secret
 * says that they may be used so. Values appear in no message.
 */
import {
  ANNOTATION_EXPOSE,
  ANNOTATION_HOSTS,
  LABEL_CREDENTIAL,
  parseHosts,
  replaceReferences,
  secretNameOf,
} from '../../api/credentials.js';
import { Secrets, type Secret } from '../../kube/core-types.js';
import { isNotFound } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';

/** A reference cannot be used; the message says what to do. */
export class SecretRefusal extends Error {
  override readonly name = 'SecretRefusal';
}

/** Values that were filled in, so that they can be kept from coming back. */
export interface Filled {
  fill(text: string, escape?: (value: string) => string): string;
  readonly values: readonly string[];
}

/** For texts without a reference. */
export const NO_SECRET: Filled = { fill: (text) => text, values: [] };

export interface AgentName {
  namespace: string;
  name: string;
}

export class AgentSecrets {
  constructor(private readonly api: Pick<KubeApi, 'get'>) {}

  /** For a server at that host. Throws {@link SecretRefusal}. */
  async forHost(agent: AgentName, host: string): Promise<Filled> {
    const secret = await this.#read(agent);
    if (!parseHosts(secret?.metadata.annotations?.[ANNOTATION_HOSTS]).includes(host)) {
      throw new SecretRefusal(
        `${where(agent)} may not be sent to ${host}: add ${host} to its annotation ${ANNOTATION_HOSTS}`,
      );
    }
    return filledFrom(secret, agent);
  }

  /** For a program in the pods of the agent. Throws {@link SecretRefusal}. */
  async forTools(agent: AgentName): Promise<Filled> {
    const secret = await this.#read(agent);
    if (secret?.metadata.annotations?.[ANNOTATION_EXPOSE] !== 'true') {
      throw new SecretRefusal(
        `${where(agent)} may not be handed to the tools of a run: annotate it ${ANNOTATION_EXPOSE}=true if the code of the agent may have its values`,
      );
    }
    return filledFrom(secret, agent);
  }

  async #read(agent: AgentName): Promise<Secret> {
    let secret: Secret;
    try {
      secret = await this.api.get(Secrets, { namespace: agent.namespace, name: secretNameOf(agent.name) });
    } catch (error) {
      if (isNotFound(error)) throw new SecretRefusal(`there is no ${where(agent)}: create it`);
      throw error;
    }
    if (secret.metadata.labels?.[LABEL_CREDENTIAL] !== 'true') {
      throw new SecretRefusal(`${where(agent)} may not be read: label it ${LABEL_CREDENTIAL}=true`);
    }
    return secret;
  }
}

function filledFrom(secret: Secret, agent: AgentName): Filled {
  const values: string[] = [];
  return {
    values,
    fill: (text, escape = (value) => value) =>
      replaceReferences(text, (name) => {
        const value = Buffer.from(secret.data?.[name] ?? '', 'base64')
          .toString('utf8')
          .trim();
        if (value === '') throw new SecretRefusal(`there is no key ${name} in ${where(agent)}: add it`);
        // Anything else would break a header, or out of it.
        if (!/^[\x20-\x7e]+$/.test(value)) {
          throw new SecretRefusal(`key ${name} of ${where(agent)} holds characters that no credential has`);
        }
        values.push(value);
        return escape(value);
      }),
  };
}

function where({ namespace, name }: AgentName): string {
  return `Secret ${secretNameOf(name)} in namespace ${namespace}`;
}
