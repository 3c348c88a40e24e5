/** What the operator gives all pods of runs and of network probes besides: where they may run, and what others read on them. */
import { z } from 'zod';

const texts = z.record(z.string().max(317), z.string().max(1024));
const terms = z.array(z.looseObject({})).max(64);

/** Chart value `runs`, as the controller gets it. */
export const RunPods = z.strictObject({
  annotations: texts.default({}),
  labels: texts
    .refine((labels) => Object.keys(labels).every((key) => !key.startsWith('boxwright.dev/')), {
      error: 'labels of boxwright.dev/ are written by the control plane alone',
    })
    .default({}),
  nodeSelector: texts.default({}),
  tolerations: terms.default([]),
  nodeAffinity: z.looseObject({}).default({}),
  priorityClassName: z.string().max(253).default(''),
});
export type RunPods = z.output<typeof RunPods>;

/** Meshes would inject a proxy that breaks the sidecar order and the egress rules. */
const WITHOUT_MESH = { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' };

/** Metadata of a pod with our labels. Ours win. */
export function podMetadata(
  ours: Readonly<Record<string, string>>,
  pods: RunPods | undefined,
): { labels: Record<string, string>; annotations: Record<string, string> } {
  return { labels: { ...pods?.labels, ...ours }, annotations: { ...pods?.annotations, ...WITHOUT_MESH } };
}

/** Where a pod runs; `podAffinity` is what we need besides. */
export function podPlacement(
  pods: RunPods | undefined,
  podAffinity?: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const { nodeSelector = {}, tolerations = [], nodeAffinity = {}, priorityClassName = '' } = pods ?? {};
  const affinity = {
    ...(isEmpty(nodeAffinity) ? {} : { nodeAffinity }),
    ...(podAffinity === undefined ? {} : { podAffinity }),
  };
  return {
    ...(isEmpty(nodeSelector) ? {} : { nodeSelector }),
    ...(tolerations.length === 0 ? {} : { tolerations }),
    ...(isEmpty(affinity) ? {} : { affinity }),
    ...(priorityClassName === '' ? {} : { priorityClassName }),
  };
}

const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** The setting as text. */
export const runPodsSetting = z
  .string()
  .default('{}')
  .transform((text, context): RunPods => {
    const parsed = RunPods.safeParse(jsonIn(text));
    if (parsed.success) return parsed.data;
    context.addIssue({ code: 'custom', message: z.prettifyError(parsed.error) });
    return z.NEVER;
  });

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
