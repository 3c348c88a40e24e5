/**
 * No regular expression of the product can be made to read a text more than a bounded number of times: they see what
 * others wrote, and the event loop waits for them.
 */
import { globSync, readFileSync } from 'node:fs';
import { parseSync } from '@swc/core';
import { countSteps, hostileTexts } from './support/regex-steps.js';

const LENGTH = 200;
/** Steps for each character that nobody looks into. */
const FEW = 15;
/** Twice the text takes twice the steps; four times, if each character is read again for each in front of it. */
const MOST_GROWTH = 3;
const LIMIT = 1_000_000;

/** Where the steps of a pattern grow faster than the text; undefined when nowhere. */
function weakness(pattern: RegExp): string | undefined {
  const longer = hostileTexts(pattern, 2 * LENGTH);
  for (const text of hostileTexts(pattern, LENGTH)) {
    const twice = longer.next().value as string;
    const steps = countSteps(pattern, text, LIMIT);
    if (steps <= FEW * text.length) continue;
    const grown = countSteps(pattern, twice, LIMIT);
    if (grown >= Math.min(LIMIT, MOST_GROWTH * steps))
      return `${steps} steps become ${grown} for twice ${JSON.stringify(text.slice(0, 40))}`;
  }
  return undefined;
}

/** The literals of all modules, and the modules that make a pattern in another way. */
function patternsOf(files: readonly string[]): { patterns: Map<string, RegExp>; makers: string[] } {
  const patterns = new Map<string, RegExp>();
  const makers: string[] = [];
  const visit = (file: string, node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) return node.forEach((inner) => visit(file, inner));
    const { type, pattern, flags, callee } = node as Record<string, unknown>;
    if (type === 'RegExpLiteral') {
      const literal = new RegExp(String(pattern), String(flags));
      patterns.set(`${literal}`, literal);
    }
    const isCall = type === 'NewExpression' || type === 'CallExpression';
    if (isCall && (callee as { value?: unknown }).value === 'RegExp') makers.push(file);
    for (const inner of Object.values(node)) visit(file, inner);
  };
  for (const file of files)
    visit(file, parseSync(readFileSync(file, 'utf8'), { syntax: 'typescript', target: 'es2024' }));
  return { patterns, makers };
}

const FILES = globSync('src/**/*.ts').filter((file) => !file.endsWith('.test.ts') && !file.startsWith('src/codegen/'));
const { patterns, makers } = patternsOf(FILES);

test('every pattern is a literal, which this test sees', () => {
  expect(makers).toEqual([]);
  expect(patterns.size).toBeGreaterThan(100);
});

test.each([...patterns.entries()])('%s takes steps in proportion to the text', (_source, pattern) => {
  expect(weakness(pattern)).toBeUndefined();
});

/** Each of them stood in the product once, and stopped it. */
test.each([
  /^\s*\/(shell|files|say)(?:[ \t]+(.*?))?\s*$/,
  /<\s*\/?\s*(?:trigger_payload|agent_message)/i,
  /\b(?:sk|xai|gsk|pk|rk|key|AIza)[-_A-Za-z0-9]*[-_*.A-Za-z0-9]{8,}|\S*\*{3,}\S*/g,
  /\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{20,}/,
  /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/,
  /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g,
  /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:(?!\$\{)[^\s/@]{3,}@/i,
  /((?:Invalid|Unsupported|Duplicate) value: )("(?:[^"\\]|\\.)*"|[[{].*[\]}])/gs,
  /<meta[^>]+charset=["']?([\w-]+)/i,
  /\{([^{}]*,[^{}]*)\}/,
  /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/,
  /\/+$/,
  /\s+$/g,
  /^(a+)+$/,
])('this test refuses %s', (pattern) => {
  expect(weakness(pattern)).toBeDefined();
});

test('steps are counted as a matcher takes them', () => {
  expect(countSteps(/^a+$/, 'a'.repeat(100), LIMIT)).toBeLessThan(400);
  expect(countSteps(/a+b/, 'a'.repeat(100), LIMIT)).toBeGreaterThan(5000);
  expect(countSteps(/^(a+)+$/, `${'a'.repeat(40)}!`, LIMIT)).toBe(LIMIT + 1);
});
