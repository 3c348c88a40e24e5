/** The tool `fetch`: one page or text of the public web. */
import { AddressRefusedError } from '../../../net/dial.js';
import type { Dialer } from '../../../net/dial.js';
import { mediaTypeOf } from '../../../net/media-type.js';
import { FETCH_SECONDS } from '../../../protocol/tools-socket.js';
import type { ToolInput } from '../../../protocol/tools-socket.js';
import type { ToolResult } from '../../engine.js';
import type { ToolContext } from '../executor.js';
import { MAX_SHOWN_BYTES, openOutputLog } from '../output-capture.js';
import { ToolFailure } from '../tool-failure.js';
import { httpGet } from './http-get.js';
import type { HttpAnswer } from './http-get.js';
import type { ReadPage } from './page-reader.js';
import { cutUtf8 } from '../../../runtime/text.js';

/** What the tool needs of the world. */
export interface WebAccess {
  dialer: Dialer;
  readPage: ReadPage;
}

const PDF = 'application/pdf';
const HTML = /^(text\/html|application\/xhtml\+xml)$/;
const TEXT =
  /^(text\/.+|application\/((.+\+)?(json|xml|yaml|toml)|x-yaml|x-ndjson|ndjson|jsonl|javascript|ecmascript|x-javascript|x-sh|sql|graphql))$/;

/** Readable text of the page; a status that is not a success is an error with the text that came along. */
export async function fetchPage(input: ToolInput<'fetch'>, context: ToolContext): Promise<ToolResult> {
  const url = URL.parse(input.url);
  if (url === null) throw new ToolFailure('url is not an address such as https://example.com/page.');
  const limit = new AbortController();
  const cancelTimer = context.clock.after(FETCH_SECONDS * 1000, () =>
    limit.abort(new ToolFailure(`No whole answer came within ${FETCH_SECONDS} seconds.`)),
  );
  const signal = AbortSignal.any([context.signal, limit.signal]);
  try {
    const answer = await httpGet(url, context.web.dialer, signal);
    const { title, text } = await textOf(answer, context.web.readPage, signal);
    return {
      isError: answer.status >= 400,
      result: {
        url: answer.url.href,
        status: answer.status,
        contentType: answer.contentType,
        ...(title === '' ? {} : { title }),
        ...shown(text, context),
      },
    };
  } catch (error) {
    signal.throwIfAborted();
    throw explained(error, url);
  } finally {
    cancelTimer();
  }
}

async function textOf(
  answer: HttpAnswer,
  readPage: ReadPage,
  signal: AbortSignal,
): Promise<{ title: string; text: string }> {
  const mediaType = mediaTypeOf(answer.contentType);
  if (mediaType === PDF || (/^(application\/octet-stream)?$/.test(mediaType) && answer.body.indexOf('%PDF-') === 0)) {
    const { title, markdown } = await readPage({ pdf: answer.body }, signal);
    return { title, text: markdown };
  }
  if (mediaType !== '' && !TEXT.test(mediaType)) {
    throw new ToolFailure(`The answer is ${mediaType.slice(0, 100)}, and only text and PDF can be fetched.`);
  }
  if (answer.body.includes(0)) throw new ToolFailure('The answer is not text.');
  const charset = /charset="?([\w-]+)/i.exec(answer.contentType)?.[1] ?? charsetOfHtml(answer.body);
  const text = decode(answer.body, charset);
  const isHtml = HTML.test(mediaType) || (mediaType === '' && /^\s*<(!doctype html|html)/i.test(text));
  if (!isHtml) return { title: '', text };
  const page = await readPage({ html: text, url: answer.url.href }, signal);
  return { title: page.title, text: page.markdown };
}

/** What a page says about itself in its first bytes. */
function charsetOfHtml(body: Buffer): string | undefined {
  const tags = body.toString('latin1', 0, 2048).match(/<meta[^<>]+/gi) ?? [];
  return tags.map((tag) => /charset=["']?([\w-]+)/i.exec(tag)?.[1]).find((charset) => charset !== undefined);
}

function decode(body: Buffer, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    // A charset that nobody knows.
    return body.toString('utf8');
  }
}

/** Long text is cut for the model and kept whole in the workspace, as the output of commands is. */
function shown(text: string, { workspace, run, call }: ToolContext): Record<string, unknown> {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= MAX_SHOWN_BYTES) return { content: text };
  const log = openOutputLog(workspace, run, `${call}.md`);
  log.write(bytes);
  const path = log.close();
  return {
    content: cutUtf8(text, MAX_SHOWN_BYTES),
    truncated: true,
    contentBytes: bytes.length,
    ...(path === undefined ? {} : { wholeTextPath: path }),
  };
}

const FAILURES: Record<string, string> = {
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be resolved; the network of this run may be closed',
  ECONNREFUSED: 'it refused the connection',
  ECONNRESET: 'it closed the connection',
  ETIMEDOUT: 'it did not answer',
  EHOSTUNREACH: 'it cannot be reached',
  ENETUNREACH: 'it cannot be reached; the network of this run may be closed',
};

function explained(error: unknown, { host }: URL): Error {
  if (error instanceof ToolFailure) return error;
  if (error instanceof AddressRefusedError) return new ToolFailure(`${error.message}; only those can be fetched.`);
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return new ToolFailure(`${host} could not be fetched: ${FAILURES[code] ?? `the connection failed (${code})`}.`);
}
