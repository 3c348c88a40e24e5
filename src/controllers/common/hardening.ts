/** What every namespace of ours has, of a Box or of a Workspace: the strictest Pod Security level and a policy that denies all. */

/** Labels of the namespace. */
export const POD_SECURITY_LABELS: Readonly<Record<string, string>> = Object.fromEntries(
  ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
);

export const RESOURCE_QUOTA = 'boxwright-quota';
export const DEFAULT_DENY_POLICY = 'boxwright-default-deny';

/** Nothing in and nothing out, for every pod. */
export const DEFAULT_DENY = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };
