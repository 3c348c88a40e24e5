import { z } from 'zod';
import { ConfigError, loadConfig, renderConfigTable, variableName } from './env.js';

const Settings = z.object({
  publicUrl: z.url().describe('Address under which callers reach the service.'),
  port: z.coerce.number().int().min(1).max(65_535).default(8080).describe('Port of the public side.'),
  dryRun: z.stringbool().default(false).describe('Writes nothing | reads only.'),
  engine: z.enum(['scripted', 'openai']).optional().describe('What stands behind the provider.'),
});

function problems(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(Settings, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe('loadConfig', () => {
  it('reads variables, fills in defaults and leaves other variables alone', () => {
    const env = { BOXWRIGHT_PUBLIC_URL: 'https://a.example', BOXWRIGHT_DRY_RUN: 'true', PATH: '/bin' };
    expect(loadConfig(Settings, env)).toEqual({ publicUrl: 'https://a.example', port: 8080, dryRun: true });
  });

  it('takes an empty value for not set', () => {
    const env = { BOXWRIGHT_PUBLIC_URL: 'https://a.example', BOXWRIGHT_PORT: '', BOXWRIGHT_ENGINE: '' };
    expect(loadConfig(Settings, env)).toEqual({ publicUrl: 'https://a.example', port: 8080, dryRun: false });
  });

  it('names every problem at once, with what is expected', () => {
    expect(
      problems({ BOXWRIGHT_PORT: '99999', BOXWRIGHT_DRY_RUN: 'maybe', BOXWRIGHT_ENGINE: 'x', BOXWRIGHT_PROT: '1' }),
    ).toEqual([
      'BOXWRIGHT_PROT: unknown variable; known are BOXWRIGHT_PUBLIC_URL, BOXWRIGHT_PORT, BOXWRIGHT_DRY_RUN, BOXWRIGHT_ENGINE',
      'BOXWRIGHT_PUBLIC_URL: is required and not set (Address under which callers reach the service.)',
      'BOXWRIGHT_PORT: Too big: expected number to be <=65535 (Port of the public side.)',
      expect.stringMatching(
        /^BOXWRIGHT_DRY_RUN: Invalid option: expected one of "true"\|.*\(Writes nothing \| reads only\.\)$/,
      ),
      'BOXWRIGHT_ENGINE: Invalid option: expected one of "scripted"|"openai" (What stands behind the provider.)',
    ]);
  });

  it('says where a variable of a service link comes from', () => {
    const env = { BOXWRIGHT_PUBLIC_URL: 'https://a.example', BOXWRIGHT_API_PORT_8080_TCP_ADDR: '10.0.0.1' };
    expect(problems(env)).toEqual([
      expect.stringMatching(/^BOXWRIGHT_API_PORT_8080_TCP_ADDR: .*set enableServiceLinks: false on the pod/),
    ]);
  });

  it('shows a rule about several variables as it is written', () => {
    const Pair = z.object({ a: z.string().optional(), b: z.string().optional() });
    const rule = Pair.refine(
      ({ a, b }) => (a === undefined) === (b === undefined),
      'set BOXWRIGHT_A and BOXWRIGHT_B together',
    );
    expect(() => loadConfig(rule, { BOXWRIGHT_A: '1' })).toThrow('  - set BOXWRIGHT_A and BOXWRIGHT_B together');
  });

  it('never shows a value, which may be a secret', () => {
    const Secret = z.object({
      token: z.string().regex(/^t-/).describe('Token.'),
      count: z.coerce.number().describe('Count.'),
    });
    const read = () =>
      loadConfig(Secret, { BOXWRIGHT_TOKEN: 'hunter2', BOXWRIGHT_COUNT: 'hunter2', BOXWRIGHT_X: 'hunter2' });
    expect(read).toThrow(ConfigError);
    expect(read).not.toThrow('hunter2');
  });
});

it.each([
  ['port', 'BOXWRIGHT_PORT'],
  ['publicUrl', 'BOXWRIGHT_PUBLIC_URL'],
  ['runImagePullPolicy', 'BOXWRIGHT_RUN_IMAGE_PULL_POLICY'],
])('%s is %s', (key, variable) => expect(variableName(key)).toBe(variable));

it('renders the variables as a table for the docs', () => {
  expect(renderConfigTable(Settings)).toBe(
    [
      '| Variable | Default | Meaning |',
      '| --- | --- | --- |',
      '| `BOXWRIGHT_PUBLIC_URL` | required | Address under which callers reach the service. |',
      '| `BOXWRIGHT_PORT` | `8080` | Port of the public side. |',
      '| `BOXWRIGHT_DRY_RUN` | `false` | Writes nothing \\| reads only. |',
      '| `BOXWRIGHT_ENGINE` |  | What stands behind the provider. |',
      '',
    ].join('\n'),
  );
});
