/** Headers of everything that a browser gets from the app: it loads from here alone, and nobody may frame it. */

const SAFE = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

/** The page: scripts, styles and calls of its own origin, and nothing inline. */
export const PAGE_HEADERS = {
  ...SAFE,
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
};

/** Answers that are data. */
export const DATA_HEADERS = {
  ...SAFE,
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
};
