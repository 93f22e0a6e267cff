import { isRecord, type Json } from '../core/json.js';
import type { KeyPath } from './schema.js';

const secretText =
  /\b(?:sk|pk|rk|xai|gsk|ghp|gho|ghs|github_pat|glpat|AIza|hf|xox[a-z])[-_]?[A-Za-z0-9_-]{12,}|\beyJ[\w-]{10,}\.[\w.-]+/g;
const userInfo = /(:\/\/[^\s/@:]*:)[^\s/@]+@/g;
const authorization = /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi;
const secretName = /authorization|cookie|secret|token$|password|passwd|api[-_]?key|^key$/i;

/** `text` with whatever looks like a key, a password in an address or a credential header replaced by `***`. */
export function maskText(text: string): string {
  return text.replace(secretText, '***').replace(userInfo, '$1***@').replace(authorization, '$1 ***');
}

/** A setting as it may be shown: values of headers and of names that speak of secrets are replaced whole, other texts
 * are searched. */
export function maskValue(value: unknown, path: KeyPath): Json {
  if (typeof value === 'string') return isSecret(path) ? '***' : maskText(value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, index) => maskValue(item, [...path, index]));
  if (!isRecord(value)) return null;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskValue(item, [...path, key])]));
}

function isSecret(path: KeyPath): boolean {
  return path.at(-2) === 'headers' || secretName.test(String(path.at(-1) ?? ''));
}
