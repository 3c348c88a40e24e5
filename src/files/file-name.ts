/** Names and types of published files. Pure. */
import { MAX_FILE_NAME_BYTES } from '../api/v1alpha1/agent-run.js';

/** Control and format characters (which turn text around), half surrogates, and what separates folders or lines. */
const REFUSED = /[\p{C}\p{Zl}\p{Zp}/\\]/u;

/** What is wrong with the name of a file, for the agent; undefined when it is good. */
export function whyNoFileName(name: string): string | undefined {
  if (name.trim() === '' || name === '.' || name === '..') return 'a file needs a name';
  if (Buffer.byteLength(name) > MAX_FILE_NAME_BYTES) {
    return `the name of a file has at most ${MAX_FILE_NAME_BYTES} bytes`;
  }
  return REFUSED.test(name)
    ? 'the name of a file has no slash, no backslash, no control and no invisible characters'
    : undefined;
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.split('/').findLast((part) => part !== '') ?? '';
}

const TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv; charset=utf-8',
  css: 'text/css; charset=utf-8',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  gif: 'image/gif',
  gz: 'application/gzip',
  htm: 'text/html; charset=utf-8',
  html: 'text/html; charset=utf-8',
  ics: 'text/calendar; charset=utf-8',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  jsonl: 'application/jsonl',
  log: 'text/plain; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  pdf: 'application/pdf',
  png: 'image/png',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  tgz: 'application/gzip',
  txt: 'text/plain; charset=utf-8',
  wav: 'audio/wav',
  webp: 'image/webp',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
};

/** Told from the ending of the name; `application/octet-stream` for one that says nothing. */
export function mediaTypeOfName(name: string): string {
  const dot = name.lastIndexOf('.');
  const ending = dot <= 0 ? '' : name.slice(dot + 1).toLowerCase();
  return Object.hasOwn(TYPES, ending) ? (TYPES[ending] ?? '') : 'application/octet-stream';
}
