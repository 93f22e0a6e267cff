import type { Event } from '../../core/event.js';
import { isRecord } from '../../core/json.js';

const mark = '[redacted]';

/** How keys and tokens look. Each begins with letters that nothing else begins with, so that hashes and other long words stay. */
const forms: readonly RegExp[] = [
  /\bsk-(?:ant-|or-|proj-|svcacct-|admin-)?[A-Za-z0-9_-]{16,}/g,
  /\b(?:gsk|pplx|r8|nvapi|csk|tgp_v1|fw|hf|xai|key|dapi)[-_][A-Za-z0-9_-]{20,}/g,
  /\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}/g, /\bgithub_pat_[A-Za-z0-9_]{20,}/g, /\bglpat-[A-Za-z0-9_-]{16,}/g, /\bglptt-[a-f0-9]{20,}/g,
  /\bnpm_[A-Za-z0-9]{30,}/g, /\bpypi-[A-Za-z0-9_-]{50,}/g, /\bdckr_pat_[A-Za-z0-9_-]{20,}/g, /\bdop_v1_[a-f0-9]{40,}/g, /\bshpat_[a-fA-F0-9]{20,}/g, /\bATATT3[A-Za-z0-9_=-]{40,}/g,
  /\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b/g, /\bAIza[A-Za-z0-9_-]{35}/g, /\bya29\.[A-Za-z0-9_-]{20,}/g, /\bGOCSPX-[A-Za-z0-9_-]{20,}/g,
  /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g, /\bxapp-[A-Za-z0-9-]{20,}/g, /\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}/g, /\bwhsec_[A-Za-z0-9]{20,}/g,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/g, /\bAC[a-f0-9]{32}\b/g, /\bSK[a-f0-9]{32}\b/g, /\blin_api_[A-Za-z0-9]{30,}/g, /\bsntrys_[A-Za-z0-9_=+/-]{30,}/g,
  /\bhvs\.[A-Za-z0-9_-]{20,}/g, /\bAGE-SECRET-KEY-1[0-9A-Z]{50,}/g, /\beyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{8,}/g,
  /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----/g,
  /(?<=\b[Bb]earer )[A-Za-z0-9._~+/-]{20,}=*/g, /(?<=\b[Bb]asic )[A-Za-z0-9+/]{16,}={0,2}/g, /(?<=[a-z][a-z0-9+.-]*:\/\/[^\s:@/"'\\]{1,80}:)[^\s:@/"'\\]{3,}(?=@)/g,
];

export interface Redactor {
  text(value: string): string;
  event(event: Event): Event;
  /** How many places were masked so far. */
  count(): number;
}

/** Masks the given values and whatever looks like a key. What a provider sealed for itself (`reasoning`) loses only the given values: another
 *  change would make it worthless. */
export function createRedactor(secrets: readonly string[]): Redactor {
  const values = [...new Set(secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]))].filter((secret) => secret.length >= 8);
  let count = 0;
  const known = (text: string): string => values.reduce((rest, value) => {
    const parts = rest.split(value);
    count += parts.length - 1;
    return parts.join(mark);
  }, text);
  const text = (value: string): string => forms.reduce((rest, form) => rest.replace(form, () => { count++; return mark; }), known(value));
  const deep = (value: unknown, masked: (part: string) => string): unknown => {
    if (typeof value === 'string') return masked(value);
    if (Array.isArray(value)) return value.map((item) => deep(item, masked));
    if (!isRecord(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deep(item, key === 'reasoning' ? known : masked)]));
  };
  return {
    text, count: () => count,
    event: (event) => ({ ...event, content: event.content === null ? null : text(event.content), data: deep(event.data, text) }),
  };
}
