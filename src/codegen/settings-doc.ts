import { renderConfigTable } from '../config/env.js';
import { ControllerConfig } from '../controllers/config.js';
import { GatewayConfig } from '../gateway/config.js';
import { ApiConfig } from '../services/config.js';

/** docs/reference/settings.md: the environment variables of each process; the chart sets what an install needs. */
export function settingsDoc(): string {
  return [
    '<!-- Generated from the settings of each process by `make generate`. Do not edit. -->',
    '# Settings',
    '',
    'Each process reads its settings once, at start, and refuses to start with a wrong, missing or unknown one. The Helm',
    'chart sets all that an install needs: its values are explained in charts/boxwright/values.yaml.',
    '',
    ...[
      { title: 'boxwright api', schema: ApiConfig },
      { title: 'boxwright gateway', schema: GatewayConfig },
      { title: 'boxwright controller', schema: ControllerConfig },
    ].flatMap(({ title, schema }) => [`## \`${title}\``, '', renderConfigTable(schema)]),
  ].join('\n');
}
