import { addAll } from '../core/lists.js';
import type { Schedule } from '../core/runtime.js';
import type { InputPort } from './streams.js';

/** One key. `name` is the character in lower case or a word: enter, escape, tab, backspace, delete, up, home, pageup,
 * f1, space. */
export interface Key {
  readonly type: 'key';
  readonly name: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
}

/** The result of a key press: a key, or the text it typed. */
type KeyOrText = Key | { readonly type: 'text'; readonly text: string };

const plain = { ctrl: false, alt: false, shift: false } as const;

const letters: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
  M: 'enter',
  E: 'begin',
};
const numbers: Readonly<Record<string, string>> = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageup',
  6: 'pagedown',
  7: 'home',
  8: 'end',
  11: 'f1',
  12: 'f2',
  13: 'f3',
  14: 'f4',
  15: 'f5',
  17: 'f6',
  18: 'f7',
  19: 'f8',
  20: 'f9',
  21: 'f10',
  23: 'f11',
  24: 'f12',
};
const codes: Readonly<Record<number, string>> = {
  9: 'tab',
  13: 'enter',
  27: 'escape',
  32: 'space',
  127: 'backspace',
  57414: 'enter',
  57417: 'left',
  57418: 'right',
  57419: 'up',
  57420: 'down',
  57421: 'pageup',
  57422: 'pagedown',
  57423: 'home',
  57424: 'end',
  57425: 'insert',
  57426: 'delete',
};

/** Returns the key that sends a C0 control or DEL. */
function controlKey(code: number): Key {
  if (code === 0x0d) return { type: 'key', name: 'enter', ...plain };
  if (code === 0x09) return { type: 'key', name: 'tab', ...plain };
  if (code === 0x7f) return { type: 'key', name: 'backspace', ...plain };
  if (code === 0x1b) return { type: 'key', name: 'escape', ...plain };
  if (code === 0) return { type: 'key', name: 'space', ...plain, ctrl: true };
  return {
    type: 'key',
    name: String.fromCharCode(code < 0x1b ? code + 0x60 : code + 0x40).toLowerCase(),
    ...plain,
    ctrl: true,
  };
}

function ss3Key(letter: string): readonly Key[] {
  const name = letters[letter];
  return name ? [{ type: 'key', name, ...plain }] : [];
}

/** Returns the key of a CSI sequence without its introducer; nothing for replies and key releases.
 * Source: xterm ctlseqs "PC-Style Function Keys", modifyOtherKeys; kitty keyboard protocol, "disambiguate escape
 * codes". */
function csiKey(body: string): readonly KeyOrText[] {
  const final = body.at(-1) ?? '';
  if (!/^[0-9;:]*$/.test(body.slice(0, -1))) return [];
  const [first, second, third] = threeParameters(body.slice(0, -1));
  if (final === 'u') return kittyKey(first, second, third);
  if (final === 'Z') return [{ type: 'key', name: 'tab', ...plain, shift: true }];
  if (final === '~' && first === '27') return kittyKey(third, second, '');
  const name = final === '~' ? numbers[first] : letterKey(final, first);
  return name === undefined || isRelease(second) ? [] : [{ type: 'key', name, ...modifiers(second) }];
}

function threeParameters(text: string): readonly [string, string, string] {
  const [first = '', second = '', third = ''] = text.split(';');
  return [first, second, third];
}

/** `CSI R` is F3 only without a row: a cursor position report looks like it. */
function letterKey(final: string, first: string): string | undefined {
  return final === 'R' && first !== '' && first !== '1' ? undefined : letters[final];
}

function kittyKey(codeText: string, modifierText: string, text: string): readonly KeyOrText[] {
  const code = Number(codeText.split(':')[0]);
  const name = keyOf(code);
  if (name === undefined || isRelease(modifierText)) return [];
  const held = modifiers(modifierText);
  const types = codes[code] === undefined || code === 32;
  if (!types || held.ctrl || held.alt) return [{ type: 'key', name: name.toLowerCase(), ...held }];
  return [{ type: 'text', text: typedText(text) || shifted(code === 32 ? ' ' : name, codeText, held.shift) }];
}

/** Returns the name of a kitty key code: a word, a keypad digit, or the character itself. Keys that type nothing have
 * none. */
function keyOf(code: number): string | undefined {
  if (code >= 57399 && code <= 57408) return String(code - 57399);
  if (codes[code] !== undefined) return codes[code];
  const special = code >= 57344 && code <= 63743;
  return isPrintable(code) && !special ? String.fromCodePoint(code) : undefined;
}

function typedText(points: string): string {
  return points
    .split(':')
    .map(Number)
    .filter(isPrintable)
    .map((code) => String.fromCodePoint(code))
    .join('');
}

function isPrintable(code: number): boolean {
  return code >= 0x20 && code < 0x110000 && code !== 0x7f;
}

function shifted(name: string, codeText: string, shift: boolean): string {
  const alternate = Number(codeText.split(':')[1] ?? '');
  if (!shift) return name;
  return isPrintable(alternate) ? String.fromCodePoint(alternate) : name.toUpperCase();
}

function modifiers(text: string): { readonly ctrl: boolean; readonly alt: boolean; readonly shift: boolean } {
  const bits = Math.max(0, Number(text.split(':')[0] ?? '') - 1) || 0;
  return { shift: (bits & 1) !== 0, alt: (bits & (2 | 32)) !== 0, ctrl: (bits & 4) !== 0 };
}

function isRelease(text: string): boolean {
  return text.split(':')[1] === '3';
}

/** Returns the name that tables of key bindings use: `ctrl-a`, `alt-enter`, `up`. */
export function keyName(key: Key): string {
  return `${key.ctrl ? 'ctrl-' : ''}${key.alt ? 'alt-' : ''}${key.shift ? 'shift-' : ''}${key.name}`;
}

/** The input of a terminal: keys, runs of printable text, and whole pastes. */
export type InputEvent =
  | Key
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'paste'; readonly text: string };

/** Turns the bytes of a terminal into keys. Bytes may be split anywhere. An escape that could be the beginning of a
 * longer sequence is held back until more comes or `flush` says that nothing will (the caller's timer). */
interface KeyDecoder {
  decode(chunk: Uint8Array | string): readonly InputEvent[];
  /** True while an incomplete escape sequence is held back. */
  waiting(): boolean;
  flush(): readonly InputEvent[];
}

const pasteStart = '\x1b[200~';
const pasteEnd = '\x1b[201~';
const longestSequence = 128;

/** `onFocus`: told whether the window has the focus, where the terminal reports that (DECSET 1004). */
export function createKeyDecoder(onFocus?: (has: boolean) => void): KeyDecoder {
  return new Decoder(onFocus);
}

class Decoder implements KeyDecoder {
  readonly #utf8 = new TextDecoder('utf-8');
  #held = '';
  #paste: string[] | null = null;
  readonly #onFocus: ((has: boolean) => void) | undefined;

  constructor(onFocus?: (has: boolean) => void) {
    this.#onFocus = onFocus;
  }

  decode(chunk: Uint8Array | string): readonly InputEvent[] {
    const text = this.#held + (typeof chunk === 'string' ? chunk : this.#utf8.decode(chunk, { stream: true }));
    this.#held = '';
    const events: InputEvent[] = [];
    let rest = text;
    while (rest !== '') rest = this.#paste ? this.#takePaste(rest, events) : this.#takeKeys(rest, events);
    return events;
  }

  waiting(): boolean {
    return this.#held !== '' && this.#paste === null;
  }

  flush(): readonly InputEvent[] {
    const held = this.#held;
    if (held === '' || this.#paste) return [];
    this.#held = '';
    if (held === '\x1b') return [{ type: 'key', name: 'escape', ctrl: false, alt: false, shift: false }];
    if (held === '\x1b\x1b') return [escapeKey, escapeKey];
    if (held === '\x1b[' || held === '\x1bO')
      return [{ type: 'key', name: held.slice(1).toLowerCase(), ctrl: false, alt: true, shift: false }];
    return [];
  }

  /** The end marker may be split over chunks, so a tail that could begin it is held back. Of several end markers in one
   * read the last one counts: the terminal sends one, the others came with the text. */
  #takePaste(text: string, events: InputEvent[]): string {
    const next = text.indexOf(pasteStart);
    const end = text.lastIndexOf(pasteEnd, next < 0 ? text.length : next);
    if (end < 0) {
      const keep = overlap(text, pasteEnd);
      this.#paste?.push(text.slice(0, text.length - keep));
      this.#held = text.slice(text.length - keep);
      return '';
    }
    const pasted = [...(this.#paste ?? []), text.slice(0, end)]
      .join('')
      .replaceAll(pasteEnd, '')
      .replace(/\r\n?/g, '\n');
    events.push({ type: 'paste', text: pasted });
    this.#paste = null;
    return text.slice(end + pasteEnd.length);
  }

  #takeKeys(text: string, events: InputEvent[]): string {
    let at = 0;
    while (at < text.length) {
      const run = printableRun(text, at);
      if (run > at) {
        events.push({ type: 'text', text: text.slice(at, run) });
        at = run;
        continue;
      }
      if (text[at] !== '\x1b') {
        events.push(controlKey(text.charCodeAt(at)));
        at++;
        continue;
      }
      if (text.startsWith(pasteStart, at)) {
        this.#paste = [];
        return text.slice(at + pasteStart.length);
      }
      const length = sequenceLength(text, at);
      if (length === 0) {
        this.#held = text.slice(at);
        return '';
      }
      const sequence = text.slice(at, at + length);
      if (sequence === '\x1b[I' || sequence === '\x1b[O') this.#onFocus?.(sequence === '\x1b[I');
      else addAll(events, escapeEvents(sequence));
      at += length;
    }
    return '';
  }
}

const escapeKey: Key = { type: 'key', name: 'escape', ctrl: false, alt: false, shift: false };

function printableRun(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) break;
    at++;
  }
  return at;
}

/** Returns how many characters at the end of `text` may begin `marker`. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}

/** Returns the length of the escape sequence at `at`; 0 while it is incomplete. A sequence that never ends counts as it
 * is. */
function sequenceLength(text: string, at: number): number {
  const second = text[at + 1];
  if (second === undefined) return 0;
  if (second === '\x1b') return text[at + 2] === undefined ? 0 : 1;
  if (second === '[') return csiLength(text, at);
  if (second === 'O') return text[at + 2] === undefined ? 0 : 3;
  if (second === ']' || second === 'P' || second === '_') return replyLength(text, at);
  return second >= '\ud800' && second <= '\udbff' ? 3 : 2;
}

function csiLength(text: string, at: number): number {
  for (let i = at + 2; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x40 && code <= 0x7e) return i + 1 - at;
    if (code < 0x20 || code > 0x7e || i - at > longestSequence) return i - at;
  }
  return 0;
}

/** Matches a terminal's answer, which is no key. */
function replyLength(text: string, at: number): number {
  const bell = text.indexOf('\x07', at);
  const terminator = text.indexOf('\x1b\\', at + 2);
  if (bell < 0 && terminator < 0) return text.length - at > longestSequence ? 2 : 0;
  if (terminator < 0 || (bell >= 0 && bell < terminator)) return bell + 1 - at;
  return terminator + 2 - at;
}

function escapeEvents(sequence: string): readonly InputEvent[] {
  if (sequence === '\x1b') return [escapeKey];
  if (sequence.startsWith('\x1b[')) return csiKey(sequence.slice(2));
  if (sequence.startsWith('\x1bO') && sequence.length === 3) return ss3Key(sequence.slice(2));
  if (/^\x1b[\]P_]./.test(sequence)) return [];
  const char = sequence.slice(1);
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return [{ ...controlKey(code), alt: true }];
  return [{ type: 'key', name: char.toLowerCase(), ctrl: false, alt: true, shift: char !== char.toLowerCase() }];
}

/** The time in which more may follow an escape. */
const escapeDelayMs = 30;

/** Listens to the terminal and calls back with whole keys, and with whether its window has the focus where it reports
 * that. Returns a function that stops it. `early`: input that arrived before. */
export function readKeys(
  input: InputPort,
  schedule: Schedule,
  {
    onKeys,
    onFocus,
  }: { readonly onKeys: (events: readonly InputEvent[]) => void; readonly onFocus?: (has: boolean) => void },
  early: readonly (Uint8Array | string)[] = [],
): () => void {
  const decoder = createKeyDecoder(onFocus);
  let cancel: (() => void) | null = null;
  const take = (chunk: Uint8Array | string): void => {
    cancel?.();
    cancel = null;
    const events = decoder.decode(chunk);
    if (events.length > 0) onKeys(events);
    if (decoder.waiting())
      cancel = schedule(() => {
        cancel = null;
        const late = decoder.flush();
        if (late.length > 0) onKeys(late);
      }, escapeDelayMs);
  };
  for (const chunk of early) take(chunk);
  input.on('data', take);
  return () => {
    cancel?.();
    input.off('data', take);
  };
}
