/** The program of the tool `grep` on a machine of a developer: that of the npm package which the images take it from. */
import { fileURLToPath } from 'node:url';

const PACKAGE = `@vscode/ripgrep-linux-${process.arch}`;

export const RIPGREP = fileURLToPath(new URL(`../../node_modules/${PACKAGE}/bin/rg`, import.meta.url));
