import { cutParts, type Envelope, parseEnvelope } from '../envelope.js';
import type { Event, EventDraft } from '../event.js';
import { isRecord, parseJson } from '../json.js';
import {
  keyPlaceholder,
  Placeholders,
  recordedNumbers,
  type Restored,
  type SecretGuardOptions,
  type SeenSecrets,
} from './placeholders.js';
import { createSecretScanner, type FoundSecret, type SecretScanner } from './scanner.js';

/** Hides secrets in a text that comes in pieces, also where a secret lies across
 * pieces. The end of a piece that may begin a secret is held back until the
 * next piece. */
export interface StreamMask {
  add(piece: string): string;
  /** Returns the text that was held back: no more will follow. */
  end(): string;
  /** Drops the text that was held back: the next piece does not follow it. */
  skip(): void;
  /** The number of characters that may belong to a secret whose start was dropped. */
  readonly longest: number;
}

/** Masks secrets on their way into the log, to the model and onto the screen,
 * for one session or for texts that belong to none. Each secret becomes
 * `«secret:<kind>#<n>»`, and within a session always the same. Values are in
 * memory only. A text that is masked already does not change. */
export interface SecretGuard {
  text(text: string): string;
  /** Masks all texts in a value, names of fields too. Returns the value itself
   * where there is nothing to hide. */
  deep<T>(value: T): T;
  /** Masks the strings of a JSON text, however they are escaped; the result is
   * JSON too. A text that is no JSON is masked as it is. */
  json(text: string): string;
  event<T extends EventDraft | Event>(event: T): T;
  envelope(envelope: Envelope): Envelope;
  /** Makes a mask for a text that comes in pieces. */
  stream(): StreamMask;
  /** Puts values in the place of placeholders. `isCommand`: in a shell command,
   * which a value must not be able to change. */
  restore<T>(value: T, isCommand: boolean): Restored<T>;
  /** Takes numbers over from events that were recorded earlier. */
  recall(events: readonly Event[]): void;
  /** Returns what was masked in events since the last call; null where nothing
   * was. */
  takeSeen(): SeenSecrets | null;
  /** The number of places that were masked so far. */
  count(): number;
}

/** Fields that a provider signed or encrypted: a change of one character makes
 * them worthless. */
const sealedNames = new Set([
  'signature',
  'encrypted_content',
  'thought_signature',
  'thoughtSignature',
  'signed_id',
  'data',
]);
/** Near the place where an output was cut, so many characters may belong to a
 * secret. */
const suspectChars = 512;
const maxLongest = 4096;
const minCutChars = 12;
const maxClean = 500;
const maxCleanChars = 32_768;

/** Sequences that a terminal obeys, and characters that nobody sees; line ends and tabs are seen. */
const unshown =
  // oxlint-disable-next-line no-control-regex -- what is looked for
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|(?![\n\r\t])[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu;

function needsCleaning(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- all of visible ASCII
  return /[^\x20-\x7e\n\r\t]/.test(text) && text.search(unshown) >= 0;
}

/** A secret with its value and its position in the text. */
interface PlacedSecret {
  readonly secret: FoundSecret;
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

function placeSecret(secret: FoundSecret, plain: string, places: readonly number[]): PlacedSecret {
  const { start, end } = secret;
  return { secret, value: plain.slice(start, end), start: places[start] ?? 0, end: (places[end - 1] ?? 0) + 1 };
}

/** Returns a text without what is not shown of it, and the place in the text of each character and of its end. */
function shownForm(text: string): { readonly plain: string; readonly places: readonly number[] } {
  const places: number[] = [];
  let plain = '';
  let end = 0;
  for (const match of text.matchAll(unshown)) {
    for (let at = end; at < match.index; at++) places.push(at);
    plain += text.slice(end, match.index);
    end = match.index + match[0].length;
  }
  for (let at = end; at <= text.length; at++) places.push(at);
  return { plain: plain + text.slice(end), places };
}

/** Returns where an escape sequence begins whose end has not come yet; the length of the text where there is none. */
function unfinishedAt(text: string, from: number): number {
  const at = text.lastIndexOf('\u001b');
  return at >= from && /^\u001b(?:\[[0-?]{0,64}[ -/]{0,4})?$/.test(text.slice(at, at + 80)) ? at : text.length;
}

export function createSecretGuard(options: SecretGuardOptions): SecretGuard {
  return new Guard(options);
}

class Guard implements SecretGuard {
  readonly #keys: SecretGuardOptions['keys'];
  readonly #replacement: string | undefined;
  readonly #allForms: SecretScanner;
  readonly #placeholders: Placeholders;
  /** Texts with nothing to hide, as long as no other secret is known: prompts
   * and names of fields come again and again. To scan them again has V8
   * optimise the scanner at a start, which takes longer than all of its scans. */
  readonly #clean = new Set<string>();

  constructor(options: SecretGuardOptions) {
    this.#keys = options.keys;
    this.#replacement = options.replacement;
    this.#allForms = createSecretScanner(options.forms);
    this.#placeholders = new Placeholders(options, (literal) => {
      this.#allForms.add(literal);
      this.#clean.clear();
    });
  }

  get #scanner(): SecretScanner {
    this.#placeholders.learnKeys();
    return this.#allForms;
  }

  text(text: string): string {
    const scanner = this.#scanner;
    if (this.#clean.has(text)) return text;
    const { found } = scanner.scan(text);
    const plain = found.length === 0 ? text : this.#replaced(text, found);
    const shown = needsCleaning(plain) ? this.#asShown(plain) : plain;
    const masked = shown.includes('\\u00') && /\\u00[2-7][0-9a-f]/i.test(shown) ? this.#unescaped(shown) : shown;
    if (masked === text && text.length <= maxCleanChars && this.#clean.size < maxClean) this.#clean.add(text);
    return masked;
  }

  #replaced(text: string, found: readonly FoundSecret[]): string {
    let masked = '';
    let from = 0;
    for (const secret of found) {
      masked += text.slice(from, secret.start) + this.#placeholders.of(text.slice(secret.start, secret.end), secret);
      from = secret.end;
    }
    return masked + text.slice(from);
  }

  /** Masks secrets in which characters are written as `\u0041`. */
  #unescaped(text: string): string {
    const places: number[] = [];
    let plain = '';
    for (let at = 0; at < text.length;) {
      const code = text.startsWith('\\u00', at) ? /^[2-7][0-9a-f]$/i.exec(text.slice(at + 4, at + 6))?.[0] : undefined;
      places.push(at);
      plain += code === undefined ? text.charAt(at) : String.fromCharCode(Number.parseInt(code, 16));
      at += code === undefined ? 1 : 6;
    }
    const found = this.#scanner.scan(plain).found.map((secret) => ({
      secret,
      value: plain.slice(secret.start, secret.end),
      start: places[secret.start] ?? 0,
      end: places[secret.end] ?? text.length,
    }));
    return this.#replacedAt(text, found);
  }

  /** Masks secrets that have sequences for colours or characters without width in them: where those are left out,
   * the secret is shown whole. */
  #asShown(text: string): string {
    const { plain, places } = shownForm(text);
    const found = this.#scanner.scan(plain).found.map((secret) => placeSecret(secret, plain, places));
    return this.#replacedAt(text, found);
  }

  #replacedAt(text: string, found: readonly PlacedSecret[]): string {
    let masked = '';
    let from = 0;
    for (const { start, end, secret, value } of found) {
      masked += text.slice(from, start) + this.#placeholders.of(value, secret);
      from = end;
    }
    return masked + text.slice(from);
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
    return isRecord(value) ? this.#record(value, (name, item) => this.#field(name, item, isReasoning)) : value;
  }

  /** Masks the fields of a record with `field`. Copies it only where a field
   * changes: most have nothing to hide. */
  #record(
    value: Readonly<Record<string, unknown>>,
    field: (name: string, item: unknown) => unknown,
  ): Readonly<Record<string, unknown>> {
    let changed: (readonly [string, unknown])[] | null = null;
    const names = Object.keys(value);
    for (const [index, name] of names.entries()) {
      const shown = this.text(name);
      const item = field(name, value[name]);
      if (changed === null && shown === name && item === value[name]) continue;
      changed ??= names.slice(0, index).map((before) => [before, value[before]] as const);
      changed.push([shown, item]);
    }
    return changed === null ? value : Object.fromEntries(changed);
  }

  #field(name: string, value: unknown, isReasoning: boolean): unknown {
    if (isReasoning && sealedNames.has(name) && typeof value === 'string') return this.#withoutKeys(value);
    if (typeof value === 'string') return this.#named(name, value);
    return this.#deep(value, isReasoning || name === 'reasoning' || name === 'extra');
  }

  /** Masks a text with its name: `secret_access_key` and its value may be in two
   * strings. */
  #named(name: string, text: string): string {
    if (!/key|token|secret|passw|pwd|auth/i.test(name) || name.length > suspectChars) return this.text(text);
    const lead = `${name}=`;
    const { found } = this.#scanner.scan(lead + text);
    const within = found.filter(({ start }) => start >= lead.length);
    return this.text(within.length === 0 ? text : this.#replaced(lead + text, within).slice(lead.length));
  }

  #withoutKeys(text: string): string {
    return this.#keys.reduce(
      (rest, { name, value }) => rest.replaceAll(value, () => this.#replacement ?? keyPlaceholder(name)),
      text,
    );
  }

  json(text: string): string {
    if (this.#isPlain(text)) return text;
    if (tryParseJson(text) === undefined) return this.text(text);
    let masked = '';
    let from = 0;
    let name = '';
    for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', from)) {
      const end = closingQuote(text, at);
      const written = text.slice(at, end);
      const said = String(parseJson(written));
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
    const [content, data] = this.#placeholders.counted(
      () => [event.content === null ? null : this.text(event.content), this.#data(event.kind, event.data)] as const,
    );
    const added = data === null || isRecord(data) ? this.#placeholders.takeUnrecorded() : null;
    if (content === event.content && data === event.data && added === null) return event;
    return {
      ...event,
      content,
      data: added === null ? data : { ...(data as object | null), secrets: { ...recordedNumbers(data), ...added } },
    };
  }

  #data(kind: string, data: unknown): unknown {
    if (!isRecord(data)) return this.deep(data);
    return this.#record(data, (name, item) => {
      if (name === 'secrets') return item;
      if (kind === 'tool_result' && name === 'output' && typeof item === 'string') return this.#envelopeText(item);
      if (kind === 'tool_call' && name === 'function' && isRecord(item)) return this.#record(item, this.#callField);
      return this.#field(name, item, false);
    });
  }

  readonly #callField = (name: string, item: unknown): unknown =>
    name === 'arguments' && typeof item === 'string' ? this.json(item) : this.#field(name, item, false);

  envelope(envelope: Envelope): Envelope {
    return this.#placeholders.counted(() => this.#envelope(envelope));
  }

  #envelope(envelope: Envelope): Envelope {
    return this.#result(envelope) as Envelope;
  }

  /** Masks a result. On both sides of a place where its output was cut there may
   * be a part of a secret. */
  #result(result: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    return this.#record(result, (name, item) => {
      if (name === 'output' && typeof item === 'string' && result.truncated === true) return this.#cutOutput(item);
      return name === 'details' && isRecord(item) ? this.#result(item) : this.#field(name, item, false);
    });
  }

  #cutOutput(output: string): string {
    const parts = cutParts(output);
    if (parts.length === 1) return this.text(output);
    return parts
      .map((part, index) => {
        if (index % 2 === 1) return part;
        const start = index === 0 ? part : this.#cutStart(part);
        return index === parts.length - 1 ? start : this.#cutEnd(start);
      })
      .join('');
  }

  /** True for a JSON text without a secret and without escapes that could hide
   * one. */
  #isPlain(text: string): boolean {
    return !text.includes('\\u') && !text.includes('\\/') && this.#scanner.scan(text).found.length === 0;
  }

  #envelopeText(text: string): string {
    if (this.#isPlain(text)) return text;
    const envelope = parseEnvelope(text);
    const masked = this.#envelope(envelope);
    if (masked === envelope) return text;
    return tryParseJson(text) === undefined ? this.text(text) : JSON.stringify(masked);
  }

  /** Masks the text before a cut: its last word may be the beginning of a
   * secret. */
  #cutEnd(part: string): string {
    const text = this.text(part);
    const { openAt } = this.#scanner.scan(text, Math.max(0, text.length - suspectChars), false);
    return text.length - openAt < minCutChars ? text : `${text.slice(0, openAt)}«secret:cut»`;
  }

  /** Masks the text after a cut: its first word may be the end of a secret. */
  #cutStart(part: string): string {
    const word = /^[A-Za-z0-9_+/=.~-]{8,512}/.exec(part)?.[0] ?? '';
    const isChance =
      (/\d/.test(word) && /[A-Za-z]/.test(word)) ||
      word.split(/[a-z][A-Z]/).length > 3 ||
      /[a-z]{24}|[A-Z]{24}/.test(word);
    return isChance && word.length >= minCutChars
      ? `«secret:cut»${this.text(part.slice(word.length))}`
      : this.text(part);
  }

  stream(): StreamMask {
    const scannerNow = (): SecretScanner => this.#scanner;
    /** The end of the text that was given out; it shows where words begin. */
    let behind = '';
    let waiting = '';
    const release = (piece: string, isWhole: boolean): string => {
      const text = behind + waiting + piece;
      const from = behind.length;
      if (text.length === from) return '';
      if (needsCleaning(text)) return releaseShown(text, from, isWhole);
      const { found, openAt } = scannerNow().scan(text, from, isWhole);
      keep(text, openAt);
      return this.#replaced(text.slice(0, openAt), found).slice(from);
    };
    /** The same for a text with colours or characters without width in it, which is scanned with and without them. */
    const releaseShown = (text: string, from: number, isWhole: boolean): string => {
      const ready = isWhole ? text : text.slice(0, unfinishedAt(text, from));
      const { plain, places } = shownForm(ready);
      const raw = scannerNow().scan(ready, from, isWhole);
      const bare = scannerNow().scan(
        plain,
        places.findIndex((place) => place >= from),
        isWhole,
      );
      const direct = raw.found.map((secret): PlacedSecret => ({
        ...secret,
        secret,
        value: ready.slice(secret.start, secret.end),
      }));
      const hidden = bare.found
        .map((secret) => placeSecret(secret, plain, places))
        .filter(({ start, end }) => !direct.some((other) => start < other.end && other.start < end));
      const sorted = [...direct, ...hidden].toSorted((a, b) => a.start - b.start);
      // One scan can hold back the end of a secret that the other scan has found.
      const held = Math.min(raw.openAt, places[bare.openAt] ?? raw.openAt);
      const open = sorted.find(({ start, end }) => start < held && end > held)?.start ?? held;
      const found = sorted.filter(({ end }) => end <= open);
      keep(text, open);
      return this.#replacedAt(text.slice(0, open), found).slice(from);
    };
    const keep = (text: string, from: number): void => {
      waiting = text.slice(from);
      behind = text.slice(Math.max(0, from - 32), from);
    };
    return {
      add: (piece) => release(piece, false),
      end: () => release('', true),
      skip() {
        waiting = '';
        behind = '';
      },
      get longest() {
        return Math.min(maxLongest, Math.max(suspectChars, scannerNow().longest));
      },
    };
  }

  restore<T>(value: T, isCommand: boolean): Restored<T> {
    return this.#placeholders.restore(value, isCommand);
  }

  recall(events: readonly Event[]): void {
    this.#placeholders.recall(events);
  }

  takeSeen(): SeenSecrets | null {
    return this.#placeholders.takeSeen();
  }

  count(): number {
    return this.#placeholders.count();
  }
}

function tryParseJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** The place after the closing quote of the string that begins at `from`, in a
 * text that is JSON. */
function closingQuote(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') at++;
    else if (char === '"') return at + 1;
  }
  return text.length;
}
