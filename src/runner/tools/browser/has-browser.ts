/** Whether the image of this container is the one with a browser. */
import { existsSync } from 'node:fs';
import { BROWSER_DRIVER, BROWSER_EXECUTABLE } from '../../../protocol/pod.js';

export function hasBrowser(): boolean {
  return existsSync(BROWSER_EXECUTABLE) && existsSync(BROWSER_DRIVER);
}
