import { type Envelope, envelopeText, mapEnvelope, parseEnvelope } from '../envelope.js';
import type { Event, EventDraft } from '../event.js';
import { isRecord } from '../json.js';
import { environmentKind, type SecretForm, secretKinds } from './forms.js';
import { createSecretScanner, type FoundSecret } from './scanner.js';

/** Hides secrets in a text that comes in pieces, also where they lie across pieces: the end of a piece that may be the
 * start of one waits for the next piece. */
export interface StreamMask {
  add(piece: string): string;
  /** What has waited: no more will come. */
  end(): string;
  /** Drops what has waited: what comes next does not follow it. */
  skip(): void;
  /** So many characters may be the rest of a secret whose start was dropped. */
  readonly longest: number;
}

export interface SecretGuardOptions {
  readonly forms: readonly SecretForm[];
  /** Values that are replaced by `«redacted:NAME»` and never given back: keys of providers. */
  readonly keys: readonly { readonly name: string; readonly value: string }[];
  /** Values of other variables that hold secrets. */
  readonly environment: readonly string[];
  /** A keyed hash, by which a secret is known again when its value is not. Absent: secrets get no number and cannot be
   * given back, which is for what outlives a session. */
  readonly fingerprint?: (value: string) => string;
  /** What stands in the place of everything that is found, instead of the usual marks. */
  readonly mark?: string;
}

/** What was masked in events since somebody asked. */
export interface SeenSecrets {
  readonly count: number;
  readonly marks: readonly string[];
}

export type Restored<T> =
  | { readonly ok: true; readonly value: T }
  /** `marks`: placeholders that cannot be given their value; `reason` why. */
  | { readonly ok: false; readonly marks: readonly string[]; readonly reason: 'unknown' | 'key' | 'shell' };

/** The one gate that secrets do not pass: into the log, to the model, onto the screen. Of one session, or of what
 * belongs to none. A secret is replaced by `«secret:<kind>#<n>»`, the same by the same within a session. Values are
 * kept in memory alone. What is masked already stays as it is. */
export interface SecretGuard {
  text(text: string): string;
  /** All texts in a value, names of fields too. The value itself where there is nothing to hide. */
  deep<T>(value: T): T;
  /** A JSON text, which stays one: what its strings say is looked at, not how they are written. A text that is no JSON
   * is masked as it is. */
  json(text: string): string;
  event<T extends EventDraft | Event>(event: T): T;
  envelope(envelope: Envelope): Envelope;
  /** For a text that comes in pieces. */
  stream(): StreamMask;
  /** Puts values in the place of placeholders. `isCommand`: in words of a shell command, where a value must not be able
   * to say anything. */
  restore<T>(value: T, isCommand: boolean): Restored<T>;
  /** Takes numbers over from events that were recorded earlier. */
  recall(events: readonly Event[]): void;
  /** Null where nothing was. */
  takeSeen(): SeenSecrets | null;
  /** How many places were masked so far. */
  count(): number;
}

/** What was drawn here is never numbered anew: placeholders of another session say something else. */
const placeholder = /«(?:secret:([a-z0-9_]+)(?:#\d+)?|redacted:([^«»\s]{1,100}))»/g;
/** What a provider sealed is worthless once a character of it is changed. */
const sealedNames = new Set(['signature', 'encrypted_content', 'thought_signature', 'data']);
const minLiteralChars = 8;
/** Output of which the rest was dropped: so much at its start may be the end of a secret. */
const suspectChars = 512;
const maxLongest = 4096;
const minCutChars = 12;

export function createSecretGuard(options: SecretGuardOptions): SecretGuard {
  return new Guard(options);
}

class Guard implements SecretGuard {
  readonly #options: SecretGuardOptions;
  readonly #scanner;
  /** What each text is that is a secret wherever it stands. */
  readonly #literals = new Map<string, { readonly mark: string } | { readonly value: string }>();
  readonly #marks = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  /** Numbers that no event speaks of yet, by placeholder. */
  #unrecorded: Record<string, string> = {};
  #count = 0;
  #seen = { count: 0, marks: new Set<string>() };
  #isRecording = false;

  constructor(options: SecretGuardOptions) {
    this.#options = options;
    this.#scanner = createSecretScanner(options.forms);
    for (const { name, value } of options.keys) this.#know(value, { mark: `«redacted:${name}»` });
    for (const value of options.environment) this.#know(value, { value });
  }

  /** As it is and as it stands inside JSON. */
  #know(text: string, known: { readonly mark: string } | { readonly value: string }): void {
    for (const written of new Set([text, JSON.stringify(text).slice(1, -1)])) {
      if (this.#literals.has(written)) continue;
      this.#literals.set(written, known);
      this.#scanner.add(written);
    }
  }

  text(text: string): string {
    const { found } = this.#scanner.scan(text);
    const plain = found.length === 0 ? text : this.#replaced(text, found);
    return plain.includes('\\u00') && /\\u00[2-7][0-9a-f]/i.test(plain) ? this.#unescaped(plain) : plain;
  }

  #replaced(text: string, found: readonly FoundSecret[]): string {
    let masked = '';
    let from = 0;
    for (const secret of found) {
      masked += text.slice(from, secret.start) + this.#markOf(text.slice(secret.start, secret.end), secret);
      from = secret.end;
    }
    return masked + text.slice(from);
  }

  /** What is written with `\u0041` for `A`. */
  #unescaped(text: string): string {
    const places: number[] = [];
    let plain = '';
    for (let at = 0; at < text.length;) {
      const code = text.startsWith('\\u00', at) ? /^[2-7][0-9a-f]$/i.exec(text.slice(at + 4, at + 6))?.[0] : undefined;
      places.push(at);
      plain += code === undefined ? text.charAt(at) : String.fromCharCode(Number.parseInt(code, 16));
      at += code === undefined ? 1 : 6;
    }
    places.push(text.length);
    const { found } = this.#scanner.scan(plain);
    let masked = '';
    let from = 0;
    for (const secret of found) {
      const [start = 0, end = text.length] = [places[secret.start], places[secret.end]];
      masked += text.slice(from, start) + this.#markOf(plain.slice(secret.start, secret.end), secret);
      from = end;
    }
    return masked + text.slice(from);
  }

  #markOf(text: string, { kind, isCut }: FoundSecret): string {
    this.#count++;
    const { mark: own, fingerprint } = this.#options;
    if (own !== undefined) return own;
    const known = this.#literals.get(text);
    if (known && 'mark' in known) return known.mark;
    const named = known ? environmentKind : (kind ?? environmentKind);
    const mark = fingerprint && !isCut ? this.#numbered(known?.value ?? text, named, fingerprint) : `«secret:${named}»`;
    if (this.#isRecording) {
      this.#seen.count++;
      this.#seen.marks.add(mark);
    }
    return mark;
  }

  #numbered(text: string, kind: string, fingerprint: (value: string) => string): string {
    const value = withoutMargin(text);
    const hash = fingerprint(value);
    let mark = this.#marks.get(hash);
    if (mark === undefined) {
      const number = (this.#numbers.get(kind) ?? 0) + 1;
      this.#numbers.set(kind, number);
      mark = `«secret:${kind}#${number}»`;
      this.#marks.set(hash, mark);
      this.#unrecorded[mark.slice(8, -1)] = hash;
    }
    if (!this.#values.has(mark)) {
      this.#values.set(mark, value);
      if (isDistinct(value)) this.#know(value, { value });
    }
    return mark;
  }

  deep<T>(value: T): T {
    return this.#deep(value, false) as T;
  }

  #deep(value: unknown, isReasoning: boolean): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.#deep(item, isReasoning));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    return isRecord(value) ? this.#record(value, isReasoning) : value;
  }

  /** Nothing is copied before something changes: in most values there is nothing to hide. */
  #record(value: Readonly<Record<string, unknown>>, isReasoning: boolean): Readonly<Record<string, unknown>> {
    let changed: (readonly [string, unknown])[] | null = null;
    const names = Object.keys(value);
    for (const [index, name] of names.entries()) {
      const shown = this.text(name);
      const item = this.#field(name, value[name], isReasoning);
      if (changed === null && shown === name && item === value[name]) continue;
      changed ??= names.slice(0, index).map((before) => [before, value[before]] as const);
      changed.push([shown, item]);
    }
    return changed === null ? value : Object.fromEntries(changed);
  }

  #field(name: string, value: unknown, isReasoning: boolean): unknown {
    if (isReasoning && sealedNames.has(name) && typeof value === 'string') return this.#withoutKeys(value);
    if (typeof value === 'string') return this.#named(name, value);
    return this.#deep(value, isReasoning || name === 'reasoning');
  }

  /** A text that has a name: `secret_access_key` and its value may stand in two strings. */
  #named(name: string, text: string): string {
    if (!/key|token|secret|passw|pwd|auth/i.test(name) || name.length > suspectChars) return this.text(text);
    const lead = `${name}=`;
    const { found } = this.#scanner.scan(lead + text);
    const within = found.filter(({ start }) => start >= lead.length);
    return this.text(within.length === 0 ? text : this.#replaced(lead + text, within).slice(lead.length));
  }

  #withoutKeys(text: string): string {
    return this.#options.keys.reduce(
      (rest, { name, value }) => rest.replaceAll(value, () => this.#options.mark ?? `«redacted:${name}»`),
      text,
    );
  }

  json(text: string): string {
    if (this.#isPlain(text)) return text;
    if (parsed(text) === undefined) return this.text(text);
    let masked = '';
    let from = 0;
    let name = '';
    for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', from)) {
      const end = closingQuote(text, at);
      const written = text.slice(at, end);
      const said = String(JSON.parse(written));
      const between = text.slice(from, at);
      const shown = /^\s*:\s*$/.test(between) ? this.#named(name, said) : this.text(said);
      masked += between + (shown === said ? written : JSON.stringify(shown));
      from = end;
      name = said;
    }
    return masked + text.slice(from);
  }

  event<T extends EventDraft | Event>(event: T): T {
    if (event.kind === 'usage') return event;
    const [content, data] = this.#recorded(
      () => [event.content === null ? null : this.text(event.content), this.#data(event.kind, event.data)] as const,
    );
    const added = this.#options.fingerprint && (data === null || isRecord(data)) ? this.#takeUnrecorded() : null;
    if (content === event.content && data === event.data && added === null) return event;
    return {
      ...event,
      content,
      data: added === null ? data : { ...(data as object | null), secrets: { ...secretsOf(data), ...added } },
    };
  }

  /** What is masked on its way into an event is counted; what is only shown is not. */
  #recorded<T>(work: () => T): T {
    this.#isRecording = true;
    try {
      return work();
    } finally {
      this.#isRecording = false;
    }
  }

  #takeUnrecorded(): Readonly<Record<string, string>> | null {
    const added = this.#unrecorded;
    if (Object.keys(added).length === 0) return null;
    this.#unrecorded = {};
    return added;
  }

  #data(kind: string, data: unknown): unknown {
    if (!isRecord(data)) return this.deep(data);
    const { secrets, ...rest } = data;
    const kept = secrets === undefined ? data : rest;
    let next: unknown;
    if (kind === 'tool_result' && typeof data.output === 'string') {
      const output = this.#envelopeText(data.output);
      const others = this.deep({ ...kept, output: '' });
      next = { ...others, output };
    } else if (kind === 'tool_call' && isRecord(data.function) && typeof data.function.arguments === 'string') {
      const others = this.deep({ ...kept, function: { ...data.function, arguments: '' } });
      next = { ...others, function: { ...others.function, arguments: this.json(data.function.arguments) } };
    } else next = this.deep(kept);
    if (isSame(next, kept)) return data;
    return secrets === undefined ? next : { ...(next as object), secrets };
  }

  envelope(envelope: Envelope): Envelope {
    return this.#recorded(() => this.#envelope(envelope));
  }

  #envelope(envelope: Envelope): Envelope {
    return mapEnvelope(envelope, {
      value: (value) => this.deep(value),
      head: (part) => this.#cutEnd(part),
      tail: (part) => this.#cutStart(part),
    });
  }

  /** A JSON text in which nothing is found as it is written, and nothing is written in another way. */
  #isPlain(text: string): boolean {
    return !text.includes('\\u') && !text.includes('\\/') && this.#scanner.scan(text).found.length === 0;
  }

  #envelopeText(text: string): string {
    if (this.#isPlain(text)) return text;
    const envelope = parseEnvelope(text);
    const masked = this.#envelope(envelope);
    if (masked === envelope) return text;
    return parsed(text) === undefined ? this.text(text) : envelopeText(masked);
  }

  /** The start of an output whose middle is left out: its last word may be the beginning of a secret. */
  #cutEnd(part: string): string {
    const text = this.text(part);
    const { openAt } = this.#scanner.scan(text, Math.max(0, text.length - suspectChars), false);
    return text.length - openAt < minCutChars ? text : `${text.slice(0, openAt)}«secret:cut»`;
  }

  /** The end of such an output: its first word may be the end of one. */
  #cutStart(part: string): string {
    const word = /^[A-Za-z0-9_+/=.~-]{8,512}/.exec(part)?.[0] ?? '';
    const isChance = (/\d/.test(word) && /[A-Za-z]/.test(word)) || word.split(/[a-z][A-Z]/).length > 3;
    return isChance && word.length >= minCutChars
      ? `«secret:cut»${this.text(part.slice(word.length))}`
      : this.text(part);
  }

  stream(): StreamMask {
    const scanner = this.#scanner;
    /** What was shown last, so that a word is not taken for the start of one. */
    let behind = '';
    let waiting = '';
    const release = (piece: string, isWhole: boolean): string => {
      const text = behind + waiting + piece;
      const from = behind.length;
      if (text.length === from) return '';
      const { found, openAt } = scanner.scan(text, from, isWhole);
      waiting = text.slice(openAt);
      behind = text.slice(Math.max(0, openAt - 32), openAt);
      return this.#replaced(text.slice(0, openAt), found).slice(from);
    };
    return {
      add: (piece) => release(piece, false),
      end: () => release('', true),
      skip() {
        waiting = '';
        behind = '';
      },
      get longest() {
        return Math.min(maxLongest, Math.max(suspectChars, scanner.longest));
      },
    };
  }

  restore<T>(value: T, isCommand: boolean): Restored<T> {
    const unknown = new Set<string>();
    const held = new Set<string>();
    const unsafe = new Set<string>();
    const filled = (text: string): string =>
      !text.includes('«')
        ? text
        : text.replace(placeholder, (mark: string, kind: string | undefined, key: string | undefined, at: number) => {
            if (key !== undefined) {
              if (this.#options.keys.some(({ name }) => name === key)) held.add(mark);
              return mark;
            }
            const known = this.#values.get(mark);
            if (known === undefined && kind !== undefined && (secretKinds.includes(kind) || kind === 'cut'))
              unknown.add(mark);
            if (known !== undefined && isCommand && !isPlainWord(known) && !isQuoted(text.slice(0, at), known))
              unsafe.add(mark);
            return known ?? mark;
          });
    const deep = (item: unknown): unknown => {
      if (typeof item === 'string') return filled(item);
      if (Array.isArray(item)) return item.map(deep);
      return isRecord(item) ? Object.fromEntries(Object.entries(item).map(([name, part]) => [name, deep(part)])) : item;
    };
    const next = deep(value) as T;
    for (const [marks, reason] of [
      [held, 'key'],
      [unknown, 'unknown'],
      [unsafe, 'shell'],
    ] as const)
      if (marks.size > 0) return { ok: false, marks: [...marks], reason };
    return { ok: true, value: next };
  }

  recall(events: readonly Event[]): void {
    for (const { data } of events) {
      for (const [name, hash] of Object.entries(secretsOf(data))) {
        const [kind = '', number = ''] = name.split('#');
        if (typeof hash !== 'string' || !/^\d{1,9}$/.test(number)) continue;
        if (!this.#marks.has(hash)) this.#marks.set(hash, `«secret:${name}»`);
        this.#numbers.set(kind, Math.max(this.#numbers.get(kind) ?? 0, Number(number)));
      }
    }
  }

  takeSeen(): SeenSecrets | null {
    const { count, marks } = this.#seen;
    if (count === 0) return null;
    this.#seen = { count: 0, marks: new Set() };
    return { count, marks: [...marks] };
  }

  count(): number {
    return this.#count;
  }
}

/** What an event says of the numbers that were first given in it. */
function secretsOf(data: unknown): Readonly<Record<string, unknown>> {
  return isRecord(data) && isRecord(data.secrets) ? data.secrets : {};
}

function isSame(next: unknown, kept: unknown): boolean {
  if (next === kept) return true;
  if (!isRecord(next) || !isRecord(kept)) return false;
  return (
    Object.keys(next).length === Object.keys(kept).length &&
    Object.entries(kept).every(([name, value]) =>
      name === 'function' && isRecord(value) ? isSame(next[name], value) : next[name] === value,
    )
  );
}

/** A key in a diff has a sign before each line: it is the same key. */
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

/** Whether a value is nothing else wherever it stands, and so a secret without its surroundings too. */
function isDistinct(value: string): boolean {
  return value.length >= minLiteralChars && ((/\d/.test(value) && /[A-Za-z]/.test(value)) || value.length >= 16);
}

/** No character of it says anything to a shell. */
function isPlainWord(value: string): boolean {
  return /^[\w.,:/@%+=-]+$/.test(value);
}

/** Whether what follows stands in single quotes, and `value` stays in them. */
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Behind the quote that ends the string which begins at `from`, in a text that is JSON. */
function closingQuote(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') at++;
    else if (char === '"') return at + 1;
  }
  return text.length;
}
