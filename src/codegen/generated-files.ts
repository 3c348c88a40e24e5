/** Path -> content of every generated file. Nothing is written, so that a test can compare it with what is committed. */
import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { toCustomResourceDefinition } from '../api/crd.js';
import { ALL_KINDS } from '../api/v1alpha1/index.js';
import { renderToolsDoc } from '../mcp/docs.js';
import { TOOLS } from '../mcp/registry.js';
import { chartDefaults, chartValuesSchema } from './chart-values.js';
import { grafanaDashboard } from './grafana-dashboard.js';
import { reasonsDoc } from './reasons-doc.js';
import { resourcesDoc } from './resources-doc.js';
import { settingsDoc } from './settings-doc.js';

const YAML_HEADER = '# Generated from src/api by `make generate`. Do not edit.\n';

/** Every generated file by its path from the root of the repository. */
export function generatedFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const definition of ALL_KINDS) {
    const name = `${definition.group}_${definition.plural}.yaml`;
    const text =
      YAML_HEADER + stringify(toCustomResourceDefinition(definition), { lineWidth: 0, aliasDuplicateObjects: false });
    files.set(`crds/${name}`, text);
    files.set(`charts/boxwright/files/crds/${name}`, text);
  }
  files.set('charts/boxwright/values.schema.json', `${JSON.stringify(chartValuesSchema(), null, 2)}\n`);
  files.set('charts/boxwright/files/dashboard.json', `${JSON.stringify(grafanaDashboard(), null, 2)}\n`);
  const values: unknown = parse(readFileSync('charts/boxwright/values.yaml', 'utf8'));
  files.set(
    'charts/boxwright/files/defaults.yaml',
    `# Generated from values.yaml by \`make generate\`. Do not edit.\n${stringify({ defaults: chartDefaults(values) })}`,
  );
  files.set('docs/reasons.md', reasonsDoc());
  files.set('docs/reference/tools.md', renderToolsDoc(TOOLS));
  files.set('docs/reference/settings.md', settingsDoc());
  files.set('docs/reference/resources.md', resourcesDoc());
  return files;
}
