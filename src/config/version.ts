/** Which build this is. A test keeps the version equal to package.json; a release build brings its own, and the revision. */

// Put in by hack/build.mjs where VERSION and REVISION are set.
declare const BUILD_VERSION: string | undefined;
declare const BUILD_REVISION: string | undefined;

/** Version of the product, shown to MCP clients, to servers that we call, and by `boxwright --version`. */
export const PRODUCT_VERSION = typeof BUILD_VERSION === 'string' ? BUILD_VERSION : '0.1.0';

/** The commit that was built; `dev` in a build that nobody named. */
export const PRODUCT_REVISION = typeof BUILD_REVISION === 'string' ? BUILD_REVISION : 'dev';

/** What servers that others run are told about us: not which commit it is. */
export const USER_AGENT = `boxwright/${PRODUCT_VERSION}`;
