/** The Helm chart as it would be installed, without a cluster. */
import { parseAllDocuments } from 'yaml';
import { findTools } from './kubectl.js';

/** The manifests of the chart in namespace bw-system; `values` as `--set` takes them. Throws with Helm's words. */
export async function renderChart<T>(values: readonly string[]): Promise<T[]> {
  const tools = await findTools();
  const place = ['template', 'boxwright', 'charts/boxwright', '-n', 'bw-system', '--kube-version', '1.34.0'];
  const sets = ['publicUrl=http://localhost', ...values].flatMap((value) => ['--set', value]);
  const rendered = await tools.helm([...place, ...sets]);
  if (!rendered.ok) throw new Error(rendered.stderr);
  return parseAllDocuments(rendered.stdout).flatMap((document) => (document.toJS() as T | null) ?? []);
}
