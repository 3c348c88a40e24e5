/**
 * What the answers of an OpenAI-compatible server say about it: can it be reached with the key, has it the model, and does
 * the model call tools? Pure. Agents need tools, and a server that runs without its tool-call parser answers everything else.
 */
import type { EndpointResult } from '../../api/v1alpha1/box.js';
import { objectIn, parseObject } from '../providers/dialect.js';
import { quoted, sayingOf } from '../providers/provider-errors.js';

export interface EndpointVerdict {
  result: EndpointResult;
  /** For the person who wrote the Box. */
  message: string;
}

/** What is asked, for messages; `secret` is taken out of what the server says. */
export interface AskedEndpoint {
  /** Without a slash at the end. */
  baseUrl: string;
  /** `spec.endpoint.model`. */
  model: string | undefined;
  /** `key API_KEY of Secret ...`; undefined when none was sent. */
  keyIs: string | undefined;
  secret: string;
}

/** `text` is undefined when the answer was longer than anybody needs. */
export interface EndpointAnswer {
  status: number;
  text: string | undefined;
}

/** The model to try, and what the server lists; undefined when it lists nothing that can be read. */
export interface ModelToTry {
  model: string;
  listed: readonly string[] | undefined;
}

/** The server is there and cannot answer now. */
const BUSY: ReadonlySet<number> = new Set([408, 429, 502, 503, 504, 529]);
const SHOWN_MODELS = 10;
const SHOWN_WORDS = 200;

/** The tool of the probe. */
export const PROBE_TOOL = 'report_ready';

/** One short call as runs make them: the model is free to call the tool, and asked to. */
export function toolCallRequest(model: string): object {
  return {
    model,
    messages: [
      {
        role: 'system',
        content: 'You check whether calls of tools work. You answer by calling a tool, never in words.',
      },
      { role: 'user', content: `Call the tool ${PROBE_TOOL} once, with word set to "ready".` },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: PROBE_TOOL,
          description: 'Reports that calls of tools work.',
          parameters: {
            type: 'object',
            properties: { word: { type: 'string', description: 'The word "ready".' } },
            required: ['word'],
          },
        },
      },
    ],
    tool_choice: 'auto',
    stream: false,
  };
}

/** From the answer of `/models`. A server that has no such list is fine as long as the Box names the model. */
export function modelToTry(asked: AskedEndpoint, answer: EndpointAnswer): ModelToTry | EndpointVerdict {
  const url = `${asked.baseUrl}/models`;
  const { status } = answer;
  if (status === 401 || status === 403) return refused(asked, url, answer);
  if (BUSY.has(status) || status === 500) return unavailable(`${answered(asked, url, answer)}; it is tried again`);
  const listed = status === 200 ? modelsIn(answer.text) : undefined;
  const model = asked.model ?? listed?.[0];
  if (model !== undefined) return { model, listed };
  const what = listed === undefined ? answered(asked, url, answer) : `${url} lists no model`;
  const how = 'name one in spec.endpoint.model, or check that spec.endpoint.baseUrl ends with its version, such as /v1';
  return { result: 'ModelNotFound', message: `${what}: ${how}` };
}

/** From the answer to {@link toolCallRequest}. */
export function toolCallVerdict(asked: AskedEndpoint, tried: ModelToTry, answer: EndpointAnswer): EndpointVerdict {
  const url = `${asked.baseUrl}/chat/completions`;
  const { status } = answer;
  if (status === 200) return readToolCall(asked, tried, answer);
  if (status === 401 || status === 403) return refused(asked, url, answer);
  if (BUSY.has(status)) return unavailable(`${answered(asked, url, answer)}; it is tried again`);
  if (status === 404 || status < 400) {
    const how = 'check spec.endpoint.baseUrl, which ends with its version, such as /v1, and spec.endpoint.model';
    const message = `${answered(asked, url, answer)} for model ${tried.model}: ${how}.${listing(tried.listed)}`;
    return { result: 'ModelNotFound', message };
  }
  const message = `${answered(asked, url, answer)}; the request had a tool, as those of agents have. ${WHAT_TOOLS_NEED}`;
  return { result: 'ToolCallsRefused', message };
}

/** No answer came; `why` is a code of the connection, or how long it was waited for. */
export function noAnswer({ baseUrl }: AskedEndpoint, why: string): EndpointVerdict {
  return unavailable(
    `${baseUrl} gave no answer (${why}): check spec.endpoint.baseUrl, and that the gateway can reach it; it is tried again`,
  );
}

const WHAT_TOOLS_NEED =
  'Tools need --enable-auto-tool-choice and the right --tool-call-parser on vLLM, --jinja on llama-server, and a model that can call them.';

function readToolCall(
  { baseUrl, secret }: AskedEndpoint,
  { model }: ModelToTry,
  { text = '' }: EndpointAnswer,
): EndpointVerdict {
  const where = `model ${model} at ${baseUrl}`;
  const parsed = parseObject(text);
  if (parsed === undefined) {
    return unavailable(`${where} answered something that is not JSON: check spec.endpoint.baseUrl; it is tried again`);
  }
  const choices = parsed['choices'];
  const message = objectIn(objectIn(Array.isArray(choices) ? choices[0] : undefined)['message']);
  const calls = message['tool_calls'];
  const called = objectIn(objectIn(Array.isArray(calls) ? calls[0] : undefined)['function']);
  if (called['name'] === PROBE_TOOL && parseObject(String(called['arguments'])) !== undefined) {
    return { result: 'ToolCallsWork', message: `${where} answered with a call of a tool, as agents need it` };
  }
  const { content } = message;
  const said = typeof content === 'string' ? quoted(content, secret).slice(0, SHOWN_WORDS) : '';
  const instead =
    called['name'] === undefined
      ? `answered in words instead of calling the tool${said === '' ? '' : `: "${said}"`}`
      : 'called the tool with arguments or a name that nobody gave it';
  return { result: 'NoToolCall', message: `${where} ${instead}. ${WHAT_TOOLS_NEED}` };
}

function refused(asked: AskedEndpoint, url: string, answer: EndpointAnswer): EndpointVerdict {
  const how =
    asked.keyIs === undefined
      ? 'it wants a key: set spec.endpoint.secretRef of the Box'
      : `check ${asked.keyIs}: it may be wrong, or without access`;
  return { result: 'EndpointRefused', message: `${answered(asked, url, answer)}; ${how}` };
}

function answered({ secret }: AskedEndpoint, url: string, { status, text }: EndpointAnswer): string {
  const said = sayingOf({ text: text ?? '', secret });
  return `${url} answered HTTP ${status}${said === '' ? '' : ` (${said})`}`;
}

function unavailable(message: string): EndpointVerdict {
  return { result: 'EndpointUnavailable', message };
}

function listing(listed: readonly string[] | undefined): string {
  if (listed === undefined || listed.length === 0) return '';
  const more = listed.length > SHOWN_MODELS ? ' and more' : '';
  return ` It lists ${listed.slice(0, SHOWN_MODELS).join(', ')}${more}.`;
}

/** Ids in a list of models (OpenAI API reference, List models). */
function modelsIn(text: string | undefined): readonly string[] | undefined {
  const data = parseObject(text ?? '')?.['data'];
  if (!Array.isArray(data)) return undefined;
  return data.flatMap((model) => {
    const id = objectIn(model)['id'];
    return typeof id === 'string' && /^[\x21-\x7e]{1,128}$/.test(id) ? [id] : [];
  });
}
