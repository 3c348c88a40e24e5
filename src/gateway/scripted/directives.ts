/**
 * The script of the scripted engine: directives in the last message of the person, one a line. They are read
 * only from the text before a `<trigger_payload>` or `<agent_message>` block: what a caller of a webhook or another agent
 * sends can hold no directive, whatever closing tags it imitates (spec 4.3.3).
 */

export type Directive =
  | { kind: 'tool'; tool: string; input: Record<string, unknown> }
  | { kind: 'say'; text: string }
  | { kind: 'wait'; ms: number }
  | { kind: 'fail'; text: string }
  /** A line that begins like a directive, but cannot be one. */
  | { kind: 'wrong'; text: string };

/** Longest `/wait`. */
export const MAX_WAIT_MS = 600_000;

const FOREIGN = /<\s*(?:\/\s*)?(?:trigger_payload|agent_message)/i;
/** Of a line without white space around it. */
const LINE = /^\/(shell|files|say|wait|fail|ask|approve|call|tool)(?:[ \t](.*))?$/;

/** The directives of a message, in order. Other lines, also ones that begin with a slash, are text. */
export function parseDirectives(message: string): Directive[] {
  return trusted(message)
    .split(/\r?\n/)
    .flatMap((line) => {
      const [, name, rest = ''] = LINE.exec(line.trim()) ?? [];
      return name === undefined ? [] : [directiveOf(name, rest.replace(/^[ \t]+/, ''))];
    });
}

/** The part of a message that the person wrote: everything before the first tag of foreign text. */
function trusted(message: string): string {
  const at = FOREIGN.exec(message)?.index;
  return at === undefined ? message : message.slice(0, at);
}

function directiveOf(name: string, rest: string): Directive {
  if (rest === '') return wrong(`/${name} needs an argument`);
  return DIRECTIVES[name]?.(rest) ?? wrong(`there is no directive /${name}`);
}

const DIRECTIVES: Record<string, (rest: string) => Directive> = {
  shell: (command) => call('shell', { command }),
  files: filesDirective,
  tool: toolDirective,
  call: callDirective,
  ask: askDirective,
  approve: (question) => call('ask_user', { question, choices: ['approve', 'deny'] }),
  wait: waitDirective,
  say: (text) => ({ kind: 'say', text }),
  fail: (text) => ({ kind: 'fail', text }),
};

function call(tool: string, input: Record<string, unknown>): Directive {
  return { kind: 'tool', tool, input };
}

/** `/ask Which one? | red | blue`: what stands behind a bar is a choice. */
function askDirective(rest: string): Directive {
  const [question = '', ...choices] = rest.split('|').map((part) => part.trim());
  return call('ask_user', choices.length === 0 ? { question } : { question, choices });
}

/** `/call @writer Draft a text`, and `/call @writer & Draft a text` when nobody waits for the answer. */
function callDirective(rest: string): Directive {
  const [, handle, task] = /^@([-a-z0-9]{1,36})\s+(\S.*)$/.exec(rest) ?? [];
  if (handle === undefined || task === undefined) return wrong('write it as /call @handle what it should do');
  const isBackground = /^&\s/.test(task);
  return call('call_agent', { handle, message: isBackground ? task.slice(1).trimStart() : task, wait: !isBackground });
}

function toolDirective(rest: string): Directive {
  return named(rest, /^([a-zA-Z0-9_-]{1,128})(?:\s+(\{.*\}))?$/, 'write it as /tool NAME {"argument": "value"}');
}

function filesDirective(rest: string): Directive {
  return named(rest, /^([a-z]+)(?:\s+(\{.*\}))?$/, 'write it as /files read {"path": "notes.txt"}');
}

function named(rest: string, pattern: RegExp, usage: string): Directive {
  const [, tool, json = '{}'] = pattern.exec(rest) ?? [];
  if (tool === undefined) return wrong(usage);
  try {
    return call(tool, JSON.parse(json) as Record<string, unknown>);
  } catch {
    return wrong(`${usage}: the part in braces is not JSON`);
  }
}

function waitDirective(rest: string): Directive {
  const [, digits, unit] = /^(\d{1,7})(ms|s|m)?$/.exec(rest) ?? [];
  const ms = Number(digits) * (unit === 'ms' ? 1 : unit === 'm' ? 60_000 : 1000);
  if (digits === undefined || ms > MAX_WAIT_MS) return wrong('write it as /wait 5s, at most 10m');
  return { kind: 'wait', ms };
}

function wrong(text: string): Directive {
  return { kind: 'wrong', text };
}

/** One answer of the model. */
export interface ScriptStep {
  waitMs: number;
  text: string;
  call?: { tool: string; input: Record<string, unknown> };
  /** The call fails with this message. */
  failure?: string;
}

/**
 * The answers that a script makes: one for each tool call, and a last one without. A text alone would end the agent's
 * loop, so what is said before a tool call goes with it.
 */
export function stepsOf(directives: readonly Directive[]): ScriptStep[] {
  const steps: ScriptStep[] = [];
  let next: ScriptStep = { waitMs: 0, text: '' };
  for (const directive of directives) {
    if (directive.kind === 'wait') next = { ...next, waitMs: next.waitMs + directive.ms };
    else if (directive.kind === 'say') next = { ...next, text: join(next.text, directive.text) };
    else if (directive.kind === 'tool') {
      steps.push({ ...next, call: { tool: directive.tool, input: directive.input } });
      next = { waitMs: 0, text: '' };
    } else if (directive.kind === 'fail') return [...steps, { ...next, failure: directive.text }];
    else return [...steps, { ...next, text: join(next.text, `I cannot follow the script: ${directive.text}.`) }];
  }
  return [...steps, next];
}

function join(before: string, text: string): string {
  return before === '' ? text : `${before}\n${text}`;
}
