import { jest } from '@jest/globals';
import { escapeOutsideTags } from './outside-text.js';

const LAST_CODE_POINT = 0x10ffff;
/** Unicode's own words for what shows nothing, or changes only how its neighbour looks. */
const UNSEEN =
  /^[\p{Default_Ignorable_Code_Point}\p{C}\p{M}\p{Z}\p{White_Space}\p{Variation_Selector}\u2800\u{1d159}]$/u;

/** An opening and a closing tag with something before, in and after the name: by turns, because a million of each are tried. */
const tagWith = (code: number, x: string) =>
  code % 2 === 0 ? `<${x}agen${x}t_message${x}>` : `<${x}/trigger_payloa${x}d${x}>`;

describe('escapeOutsideTags', () => {
  test('no code point that is not seen hides a tag, wherever it stands', () => {
    const passed: string[] = [];
    let tried = 0;
    for (let code = 0; code <= LAST_CODE_POINT; code++) {
      const x = String.fromCodePoint(code);
      if (!UNSEEN.test(x)) continue;
      tried += 1;
      if (escapeOutsideTags(tagWith(code, x)).includes('<')) passed.push(code.toString(16));
    }
    expect(passed).toEqual([]);
    expect(tried).toBeGreaterThan(900_000);
  });

  test('after the name any code point may stand, and the tag is still one', () => {
    const passed: string[] = [];
    for (let code = 0; code <= LAST_CODE_POINT; code++) {
      const x = String.fromCodePoint(code);
      if (x === '<') continue;
      if (escapeOutsideTags(`</trigger_payload${x}>`).includes('</')) passed.push(code.toString(16));
    }
    expect(passed).toEqual([]);
  });

  test('a character that Unicode takes for one of the tag is that one, whichever it is', () => {
    const tag = '</trigger_payload>';
    const passed: string[] = [];
    for (let code = 0x80; code <= LAST_CODE_POINT; code++) {
      const x = String.fromCodePoint(code);
      const same = Array.from(x.normalize('NFKC').toLowerCase())[0];
      const at = same === undefined || x.normalize('NFKC').length !== 1 ? -1 : tag.indexOf(same);
      if (at < 0 || at === tag.length - 1) continue;
      const shown = escapeOutsideTags(tag.slice(0, at) + x + tag.slice(at + 1));
      if (!shown.startsWith('&lt;')) passed.push(code.toString(16));
    }
    expect(passed).toEqual([]);
  });

  test.each([
    ['a < b and trigger_payload', 'a < b and trigger_payload'],
    ['<b>trigger_payload</b>', '<b>trigger_payload</b>'],
    ['<trigger', '<trigger'],
    ['<triggers_payload>', '<triggers_payload>'],
    ['<<trigger_payload>', '<&lt;trigger_payload>'],
    ['＜／ｔｒｉｇｇｅｒ＿ｐａｙｌｏａｄ＞', '&lt;／ｔｒｉｇｇｅｒ＿ｐａｙｌｏａｄ＞'],
    ['</trígger_påyload>', '&lt;/trígger_påyload>'],
    ['< trigg㋍', '< trigg㋍'],
    ['<trigg\u{e0001}er-pay load', '&lt;trigg\u{e0001}er-pay load'],
    ['', ''],
  ])('%j is shown as %j', (text, shown) => expect(escapeOutsideTags(text)).toBe(shown));

  test('costs one pass: a text looks at no character more often than twice', () => {
    const looks = jest.spyOn(String.prototype, 'codePointAt');
    try {
      for (const piece of ['<', '< ', '</trigger_payloa', '<\u200b', '<trigger\u0301']) {
        const text = piece.repeat(10_000);
        looks.mockClear();
        expect(escapeOutsideTags(text)).toBe(text);
        expect(looks.mock.calls.length).toBeGreaterThan(0);
        expect(looks.mock.calls.length).toBeLessThanOrEqual(2 * text.length);
      }
    } finally {
      looks.mockRestore();
    }
  });
});
