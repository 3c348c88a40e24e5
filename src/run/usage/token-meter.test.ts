import { TokenMeter, tokensIn } from './token-meter.js';

/** Counts of the vocabulary o200k for the same texts. */
const COUNTED: readonly (readonly [name: string, text: string, tokens: number])[] = [
  [
    'prose',
    'The gateway judges silence, because it hears the runs. Its clock stands still while the API server cannot check tokens, and begins anew when a gateway pod takes the run over: a run does not pay for an outage of ours. Every stage but waiting has a deadline, and the settings of the Box say how long it is.',
    66,
  ],
  [
    'TypeScript',
    'export function periodsOf(at: string): { day: string; month: string } {\n  const iso = new Date(at).toISOString();\n  return { day: iso.slice(0, DAY), month: iso.slice(0, MONTH) };\n}\n\nfor (const run of runs()) {\n  if (counted.has(uidOf(run)) || isReleased(run)) continue;\n  const held = this.#held(run);\n  if (held !== undefined && isIn(held.at, period)) add(held.amount);\n}\n',
    107,
  ],
  [
    'Python',
    "def read_config(path, *, strict=False):\n    with open(path, encoding='utf-8') as handle:\n        values = json.load(handle)\n    for name, value in sorted(values.items()):\n        if strict and not isinstance(value, str):\n            raise TypeError(f'{name} must be a text, not {type(value).__name__}')\n    return {name: str(value) for name, value in values.items()}\n",
    87,
  ],
  [
    'Go',
    'func (s *Server) Serve(ctx context.Context, l net.Listener) error {\n\tfor {\n\t\tconn, err := l.Accept()\n\t\tif err != nil {\n\t\t\treturn fmt.Errorf("accept: %w", err)\n\t\t}\n\t\tgo s.handle(ctx, conn)\n\t}\n}\n',
    59,
  ],
  [
    'a log',
    '2026-01-01T00:00:12.345Z INFO  gateway: answered route=/internal/v1/runs/:namespace/:run/events status=200 seconds=0.0123\n2026-01-01T00:00:13.001Z WARN  gateway: a call failed route=/gateway/:provider status=503 type=Unavailable\n',
    76,
  ],
  [
    'JSON',
    '{\n  "run": "helper-1",\n  "steps": 12,\n  "usage": {\n    "inputTokens": 12034,\n    "outputTokens": 880,\n    "costUsd": "0.032868"\n  },\n  "toolCalls": [\n    {\n      "tool": "read",\n      "isError": false,\n      "durationMs": 12\n    }\n  ]\n}',
    87,
  ],
  ['Chinese', '控制平面会记录每一次运行的结果，并在失败时给出原因。模型调用可以重复，工具调用不可以。', 28],
];

test.each(COUNTED)('%s is measured within 15 %', (_name, text, tokens) => {
  const measured = tokensIn(text);
  expect(measured / tokens).toBeGreaterThan(0.85);
  expect(measured / tokens).toBeLessThan(1.15);
});

test('a text in pieces is as long as in one', () => {
  const text = 'function measure(text: string): number {\n  return text.length / 4; // about 1234 of them\n}\n';
  const meter = new TokenMeter();
  for (const character of text) meter.add(character);
  expect(meter.tokens).toBe(tokensIn(text));
});

test('the bytes of a picture are not its tokens; names, numbers and nesting of JSON count', () => {
  const picture = 'iVBORw0KGgoAAAANSUhEUgAA'.repeat(10_000);
  expect(tokensIn({ type: 'image', data: picture })).toBeLessThan(6_000);
  expect(tokensIn({ type: 'image', url: `data:image/png;base64,${picture}` })).toBeLessThan(6_000);
  expect(tokensIn({ path: 'src/main.ts', line: 12, ok: true })).toBeGreaterThan(10);
  expect(tokensIn('')).toBe(0);
});
