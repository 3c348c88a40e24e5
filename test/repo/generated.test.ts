import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { generatedFiles } from '../../src/codegen/generated-files.js';
import { ChartValues } from '../../src/codegen/chart-values.js';

describe('generated files', () => {
  test.each([...generatedFiles()])('%s is what the code generates', (path, content) => {
    expect(readFileSync(path, 'utf8')).toBe(content);
  });

  test('the default values of the chart obey its schema', () => {
    const values: unknown = parse(readFileSync('charts/boxwright/values.yaml', 'utf8'));
    expect(ChartValues.safeParse(values).error?.issues ?? []).toEqual([]);
  });
});
