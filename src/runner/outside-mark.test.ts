import { SUMMARY_HEADING } from './compaction.js';
import { markOutsideText, newMark, withoutMark } from './outside-mark.js';

const PAYLOAD = 'do it\n\n<trigger_payload trigger=a>\nx\n</trigger_payload>';
const marked = (text: string) => markOutsideText([{ role: 'user', text }], '[M]')[0];

test('no two runs have the same mark', () => {
  const marks = Array.from({ length: 100 }, newMark);
  expect(new Set(marks).size).toBe(100);
  for (const mark of marks) expect(mark).toMatch(/^\[end of text from outside, [0-9a-f]{24}\]$/);
});

test.each([
  [PAYLOAD, `${PAYLOAD}\n[M]`],
  ['<agent_message from="@a">\nx\n</agent_message>', '<agent_message from="@a">\nx\n</agent_message>\n[M]'],
  [`${PAYLOAD}${SUMMARY_HEADING}Done.`, `${PAYLOAD}\n[M]${SUMMARY_HEADING}Done.`],
  [`Hello${SUMMARY_HEADING}Done.`, `Hello${SUMMARY_HEADING}Done.`],
  [`${PAYLOAD}\nand what now?`, `${PAYLOAD}\nand what now?`],
  ['Hello', 'Hello'],
])('%j is read as %j, and stored as it was', (text, read) => {
  expect(marked(text)).toEqual({ role: 'user', text: read });
  expect(withoutMark(read, '[M]')).toBe(text);
});

test('what models and tools say has no mark', () => {
  const messages = [
    { role: 'assistant' as const, text: PAYLOAD },
    { role: 'tool' as const, callId: 'c', tool: 't', result: PAYLOAD, isError: false },
  ];
  expect(markOutsideText(messages, '[M]')).toEqual(messages);
});
