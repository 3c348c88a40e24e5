/** Text that looks like a credential: a template is seen by others, so none may be in it. */

interface SecretShape {
  what: string;
  isIn: (text: string) => boolean;
}

// Only patterns that read each character a few times (test/repo/regexes.test.ts): a template may be 8 MiB.
const SHAPES: readonly SecretShape[] = [
  shape('a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----/),
  shape('an API key of this service', /\bbw_[A-Za-z0-9_-]{40}/),
  shape('the URL of a trigger', /\/api\/t\/[a-z0-9.-]+\/[a-z0-9-]+\/[A-Za-z0-9_-]{40}/),
  { what: 'a key of a model vendor', isIn: hasProviderKey },
  shape('a GitHub token', /\b(?:gh[pousr]_[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{30})/),
  shape('a GitLab token', /\bglpat-[A-Za-z0-9_-]{18}/),
  shape('a Slack token', /\bxox[abeoprs]-[A-Za-z0-9-]{10}/),
  shape('an AWS access key', /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/),
  shape('a Google API key', /\bAIza[A-Za-z0-9_-]{35}/),
  shape('a Hugging Face token', /\bhf_[A-Za-z0-9]{30}/),
  { what: 'a JSON Web Token', isIn: hasWebToken },
  shape('a bearer token', /\bBearer +(?!\$\{)[A-Za-z0-9._~+/-]{20}/i),
  shape('a password in an address', /[a-z0-9+.-]:\/\/[^\s/:@]+:(?!\$\{)[^\s/@]{3,}@/i),
];

function shape(what: string, pattern: RegExp): SecretShape {
  return { what, isIn: (text) => pattern.test(text) };
}

/** `sk-`, `rk_` or `pk-`, and somewhere behind it, in words joined by `-` or `_`, one of 20 characters. */
function hasProviderKey(text: string): boolean {
  return (text.match(/[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*/g) ?? []).some((words) => {
    const at = words.search(/(?<![A-Za-z0-9_])(?:sk|rk|pk)[-_]/);
    return at !== -1 && /[A-Za-z0-9]{20}/.test(words.slice(at));
  });
}

/** Three parts between dots; the first two begin with `{"`, in base64. */
function hasWebToken(text: string): boolean {
  return (text.match(/[A-Za-z0-9_.-]+/g) ?? []).some((words) => {
    const parts = words.split('.');
    return parts.some(
      (part, index) =>
        /(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{10}/.test(part) &&
        /^eyJ[A-Za-z0-9_-]{10}/.test(parts[index + 1] ?? '') &&
        (parts[index + 2] ?? '').length >= 10,
    );
  });
}

/** What kind of credential the text seems to hold; undefined when none. The text itself is never told. */
export function secretIn(text: string): string | undefined {
  return SHAPES.find(({ isIn }) => isIn(text))?.what;
}
