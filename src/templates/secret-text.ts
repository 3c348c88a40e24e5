/** Text that looks like a credential: a template is seen by others, so none may be in it. */

interface SecretShape {
  what: string;
  pattern: RegExp;
}

const SHAPES: readonly SecretShape[] = [
  { what: 'a private key', pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/ },
  { what: 'an API key of this service', pattern: /\bbw_[A-Za-z0-9_-]{40,}/ },
  { what: 'the URL of a trigger', pattern: /\/api\/t\/[a-z0-9.-]+\/[a-z0-9-]+\/[A-Za-z0-9_-]{40,}/ },
  { what: 'a key of a model vendor', pattern: /\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{20,}/ },
  { what: 'a GitHub token', pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})/ },
  { what: 'a GitLab token', pattern: /\bglpat-[A-Za-z0-9_-]{18,}/ },
  { what: 'a Slack token', pattern: /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/ },
  { what: 'an AWS access key', pattern: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/ },
  { what: 'a Google API key', pattern: /\bAIza[A-Za-z0-9_-]{35}/ },
  { what: 'a Hugging Face token', pattern: /\bhf_[A-Za-z0-9]{30,}/ },
  { what: 'a JSON Web Token', pattern: /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/ },
  { what: 'a bearer token', pattern: /\bBearer +(?!\$\{)[A-Za-z0-9._~+/-]{20,}/i },
  { what: 'a password in an address', pattern: /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:(?!\$\{)[^\s/@]{3,}@/i },
];

/** What kind of credential the text seems to hold; undefined when none. The text itself is never told. */
export function secretIn(text: string): string | undefined {
  return SHAPES.find(({ pattern }) => pattern.test(text))?.what;
}
