/** A bearer token in a file that somebody else renews: projected service-account tokens live about an hour. */
import { readFile } from 'node:fs/promises';
import type { Clock } from '../runtime/clock.js';

/** Kubernetes renews a projected token at 80 % of its life, at least 2 minutes before its end. */
const MAX_AGE_MS = 60_000;

/**
 * Returns a function that gives the token, read again when the last reading is older than 60 seconds. When a later
 * reading fails, the last token is used on: the API server judges whether it is still good.
 */
export function createFileToken(path: string, clock: Clock): () => Promise<string> {
  let token: string | undefined;
  let readAt = 0;
  return async () => {
    if (token !== undefined && clock.monotonic() - readAt < MAX_AGE_MS) return token;
    try {
      token = await readToken(path);
    } catch (error) {
      if (token === undefined) throw error;
    }
    readAt = clock.monotonic();
    return token;
  };
}

async function readToken(path: string): Promise<string> {
  const text = (await readFile(path, 'utf8')).trim();
  if (text === '') throw new Error(`the token file ${path} is empty`);
  return text;
}
