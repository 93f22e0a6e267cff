import type { Event } from '../event.js';
import { isRecord } from '../json.js';
import { environmentKind, type FoundSecret, type SecretForm, secretKinds } from './scanner.js';

export interface SecretGuardOptions {
  readonly forms: readonly SecretForm[];
  /** Keys of providers. They become `«redacted:NAME»` and are never restored. The list may grow later. */
  readonly keys: readonly { readonly name: string; readonly value: string }[];
  /** Values of other variables that hold secrets. */
  readonly environment: readonly string[];
  /** A keyed hash, by which a secret is recognised when its value is not known. Absent: secrets get no number and
   * cannot be restored, for texts that outlive a session. */
  readonly fingerprint?: (value: string) => string;
  /** The text that replaces every secret, instead of the usual placeholders. */
  readonly replacement?: string;
}

/** The secrets that were masked in events since the last call. */
export interface SeenSecrets {
  readonly count: number;
  readonly placeholders: readonly string[];
}

export type Restored<T> =
  | { readonly ok: true; readonly value: T }
  /** `placeholders`: those that cannot be restored; `reason` says why. */
  | { readonly ok: false; readonly placeholders: readonly string[]; readonly reason: 'unknown' | 'key' | 'shell' };

type Literal = { readonly placeholder: string } | { readonly value: string };

/** Matches every placeholder, also those of other sessions. */
const everyPlaceholder = /«(?:secret:([a-z0-9_]+)(?:#\d+)?|redacted:([^«»\s]{1,100}))»/g;
const minLiteralChars = 8;

/** The placeholders of a session and the secrets they stand for, in memory only. */
export class Placeholders {
  readonly #options: SecretGuardOptions;
  readonly #addLiteral: (literal: string) => void;
  /** The texts that are secret wherever they stand. */
  readonly #literals = new Map<string, Literal>();
  readonly #byFingerprint = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  /** Fingerprints that are in no event yet, by kind and number. */
  #unrecorded: Record<string, string> = {};
  #count = 0;
  /** The number of keys that are known. */
  #knownKeys = 0;
  #seen = { count: 0, placeholders: new Set<string>() };
  #isCounted = false;

  /** `addLiteral` is called with each text that is secret in any context. */
  constructor(options: SecretGuardOptions, addLiteral: (literal: string) => void) {
    this.#options = options;
    this.#addLiteral = addLiteral;
    this.learnKeys();
    for (const value of options.environment) this.#know(value, { value });
  }

  /** Knows keys that were given after the beginning, too. */
  learnKeys(): void {
    const { keys } = this.#options;
    for (const { name, value } of keys.slice(this.#knownKeys)) this.#know(value, { placeholder: keyPlaceholder(name) });
    this.#knownKeys = keys.length;
  }

  /** Adds a text as it is and as JSON writes it. */
  #know(text: string, known: Literal): void {
    for (const written of new Set([text, JSON.stringify(text).slice(1, -1)])) {
      if (this.#literals.has(written)) continue;
      this.#literals.set(written, known);
      this.#addLiteral(written);
    }
  }

  /** The placeholder of a secret that was found. */
  of(text: string, { kind, isCut }: FoundSecret): string {
    this.#count++;
    const { replacement, fingerprint } = this.#options;
    if (replacement !== undefined) return replacement;
    const known = this.#literals.get(text);
    if (known && 'placeholder' in known) return known.placeholder;
    const named = known ? environmentKind : (kind ?? environmentKind);
    const placeholder =
      fingerprint && !isCut ? this.#numbered(known?.value ?? text, named, fingerprint) : `«secret:${named}»`;
    if (this.#isCounted) {
      this.#seen.count++;
      this.#seen.placeholders.add(placeholder);
    }
    return placeholder;
  }

  #numbered(text: string, kind: string, fingerprint: (value: string) => string): string {
    const value = withoutMargin(text);
    const hash = fingerprint(value);
    let placeholder = this.#byFingerprint.get(hash);
    if (placeholder === undefined) {
      const number = (this.#numbers.get(kind) ?? 0) + 1;
      this.#numbers.set(kind, number);
      placeholder = `«secret:${kind}#${number}»`;
      this.#byFingerprint.set(hash, placeholder);
      this.#unrecorded[`${kind}#${number}`] = hash;
    }
    if (!this.#values.has(placeholder)) {
      this.#values.set(placeholder, value);
      if (isDistinct(value)) this.#know(value, { value });
    }
    return placeholder;
  }

  /** Runs `work` and counts the secrets that it masks: they go into an event. Secrets that are only shown do not
   * count. */
  counted<T>(work: () => T): T {
    this.#isCounted = true;
    try {
      return work();
    } finally {
      this.#isCounted = false;
    }
  }

  /** Returns the fingerprints for the next event, by kind and number; null where there are none. */
  takeUnrecorded(): Readonly<Record<string, string>> | null {
    const added = this.#unrecorded;
    if (Object.keys(added).length === 0) return null;
    this.#unrecorded = {};
    return added;
  }

  /** Takes numbers over from events that were recorded earlier. */
  recall(events: readonly Event[]): void {
    for (const { data } of events) {
      for (const [name, hash] of Object.entries(recordedNumbers(data))) {
        const [kind = '', number = ''] = name.split('#');
        if (typeof hash !== 'string' || !/^\d{1,9}$/.test(number)) continue;
        if (!this.#byFingerprint.has(hash)) this.#byFingerprint.set(hash, `«secret:${name}»`);
        this.#numbers.set(kind, Math.max(this.#numbers.get(kind) ?? 0, Number(number)));
      }
    }
  }

  takeSeen(): SeenSecrets | null {
    const { count, placeholders } = this.#seen;
    if (count === 0) return null;
    this.#seen = { count: 0, placeholders: new Set() };
    return { count, placeholders: [...placeholders] };
  }

  count(): number {
    return this.#count;
  }

  /** Puts values in the place of placeholders, or says which ones cannot be restored. */
  restore<T>(value: T, isCommand: boolean): Restored<T> {
    const refused = { key: new Set<string>(), unknown: new Set<string>(), shell: new Set<string>() };
    const filled = (text: string): string =>
      text.replace(everyPlaceholder, (placeholder: string, kind?: string, key?: string, at = 0) => {
        const found = this.#restored(placeholder, { kind, key, before: isCommand ? text.slice(0, at) : null });
        if (found.refused !== undefined) refused[found.refused].add(placeholder);
        return found.text;
      });
    const deep = (item: unknown): unknown => {
      if (typeof item === 'string') return item.includes('«') ? filled(item) : item;
      if (Array.isArray(item)) return item.map(deep);
      return isRecord(item) ? Object.fromEntries(Object.entries(item).map(([name, part]) => [name, deep(part)])) : item;
    };
    const next = deep(value) as T;
    for (const reason of ['key', 'unknown', 'shell'] as const)
      if (refused[reason].size > 0) return { ok: false, placeholders: [...refused[reason]], reason };
    return { ok: true, value: next };
  }

  /** `before`: the text before the placeholder in a shell command; null elsewhere. */
  #restored(
    placeholder: string,
    { kind, key, before }: Record<'kind' | 'key', string | undefined> & { readonly before: string | null },
  ): { readonly text: string; readonly refused?: 'key' | 'unknown' | 'shell' } {
    if (key !== undefined)
      return this.#options.keys.some(({ name }) => name === key)
        ? { text: placeholder, refused: 'key' }
        : { text: placeholder };
    const value = this.#values.get(placeholder);
    if (value === undefined)
      return kind !== undefined && (secretKinds.includes(kind) || kind === 'cut')
        ? { text: placeholder, refused: 'unknown' }
        : { text: placeholder };
    return before === null || isPlainWord(value) || isQuoted(before, value)
      ? { text: value }
      : { text: value, refused: 'shell' };
  }
}

export function keyPlaceholder(name: string): string {
  return `«redacted:${name}»`;
}

/** The fingerprints that an event records, by kind and number. */
export function recordedNumbers(data: unknown): Readonly<Record<string, unknown>> {
  return isRecord(data) && isRecord(data.secrets) ? data.secrets : {};
}

/** Removes the signs before the lines of a key in a diff: it is the same key. */
function withoutMargin(value: string): string {
  if (!value.startsWith('-----BEGIN ')) return value;
  const [first = '', ...more] = value.split('\n');
  const sign = more[0]?.charAt(0) ?? '';
  return ['+', '-', ' ', '>'].includes(sign) &&
    more.every((line) => line.startsWith(sign)) &&
    !more.every((line) => line.startsWith('--'))
    ? [first, ...more.map((line) => line.slice(1))].join('\n')
    : value;
}

/** Returns true for a value that is secret in any context, also without the text around it. */
function isDistinct(value: string): boolean {
  return value.length >= minLiteralChars && ((/\d/.test(value) && /[A-Za-z]/.test(value)) || value.length >= 16);
}

/** True where no character means anything to a shell. */
function isPlainWord(value: string): boolean {
  return /^[\w.,:/@%+=-]+$/.test(value);
}

/** True where the text after `before` is in single quotes and `value` stays in them. */
function isQuoted(before: string, value: string): boolean {
  if (value.includes("'")) return false;
  let quote = '';
  for (let at = 0; at < before.length; at++) {
    const char = before.charAt(at);
    if (char === '\\' && quote !== "'") at++;
    else if (quote === '' && (char === "'" || char === '"')) quote = char;
    else if (char === quote) quote = '';
  }
  return quote === "'";
}
