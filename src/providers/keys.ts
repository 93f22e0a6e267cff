import { replaceUnseen } from '../core/text.js';

const mask = '[masked]';

/** Forms in which keys appear in what servers answer. The first group, where there is one, is kept. */
const keyForms: readonly RegExp[] = [
  /\b(bearer\s+)[^\s"',;]+/gi,
  /\b((?:x-)?api[ _-]?key(?:\s+provided)?["']?\s*[:=]\s*["']?)[^\s"',;)}]+/gi,
  /\b(?:sk|pk|rk|gsk|xai|pplx|hf|ghp|gho|github_pat|r8|nvapi|csk|tgp|fw|fpk)[-_][\w*.-]{6,}/gi,
  /\bAIza[\w-]{10,}/g,
  /\bAKIA[0-9A-Z]{12,}/g,
  /\beyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{32,}\b/g,
];

/** `text` with the values of `keys`, and everything that looks like a key, replaced by `[masked]`. Errs on the side of
 * masking. */
export function maskKeys(text: string, keys: readonly (string | null)[] = []): string {
  let masked = text;
  for (const key of keys) if (key !== null && key.length >= 4) masked = masked.replaceAll(key, mask);
  return keyForms.reduce(
    (rest, form) => rest.replace(form, (_whole, kept: unknown) => (typeof kept === 'string' ? kept + mask : mask)),
    masked,
  );
}

/** A server's words made fit to be shown: keys masked, one line, no control or direction characters, well-formed, at
 * most `maxLength` characters. */
export function quoteServer(text: string, keys: readonly (string | null)[], maxLength = 300): string {
  const line = replaceUnseen(maskKeys(text.slice(0, maxLength * 8), keys), () => ' ')
    .replace(/ +/g, ' ')
    .trim();
  return (line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line).toWellFormed();
}
