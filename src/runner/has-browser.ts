/** Whether the image of this pod is the variant with a browser. Both containers of a run have the same image. */
import { existsSync } from 'node:fs';
import { BROWSER_DRIVER, BROWSER_EXECUTABLE } from '../protocol/pod.js';

export function hasBrowser(): boolean {
  return existsSync(BROWSER_EXECUTABLE) && existsSync(BROWSER_DRIVER);
}
