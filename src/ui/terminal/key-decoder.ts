import { addAll } from '../../kernel/core/lists.js';
import type { InputEvent } from './keyboard.js';
import { altKey, controlKey, csiEvents, enterKey, escapeKey, ss3Events } from './key-sequences.js';

/** Turns the bytes of a terminal into keys. Bytes may be split anywhere, with any time between them: what could be the
 * beginning of a longer sequence is held back until more comes, or `flush` says that nothing came within `waitMs`. */
export interface KeyDecoder {
  decode(chunk: Uint8Array | string): readonly InputEvent[];
  /** Returns how long to wait for more before `flush`; null while nothing is held back. */
  waitMs(): number | null;
  /** True while all that is held back is an escape: the key Escape, or the beginning of a sequence. */
  holdsEscape(): boolean;
  /** Returns what was held back as what it is where nothing follows it. */
  flush(): readonly InputEvent[];
}

/** `onFocus`: called with whether the window has the focus, where the terminal reports that (DECSET 1004). */
export function createKeyDecoder(onFocus?: (has: boolean) => void): KeyDecoder {
  return new Decoder(onFocus);
}

const pasteStart = '\x1b[200~';
const pasteEnd = '\x1b[201~';

/** A terminal sends a sequence at once, but a slow line cuts it. Terminals that say that they are there are not waited
 * for that long (`holdsEscape`). */
const escapeWaitMs = 550;
/** The longest wait for the rest of a sequence. A key alone never sends such a beginning, so no key is delayed. */
const sequenceWaitMs = 1_000;
const pasteWaitMs = 1_000;
/** The pieces of a paste without marks follow each other at once. */
const burstWaitMs = 100;
/** A longer answer of a terminal is skipped as it comes. */
const maxHeldChars = 4_096;

/** - `keys`: everything is a key or text.
 *  - `paste`: between the two marks of a paste.
 *  - `late`: the end mark of a paste did not come within a second. Text may still belong to it, so that what comes with a
 *    line end is no Enter; other keys end this.
 *  - `burst`: lines that came in one read, which nobody types: a paste without marks.
 *  - `answer`: in a long answer of the terminal. */
type Mode = 'keys' | 'paste' | 'late' | 'burst' | 'answer';

/** Bytes are kept as Latin-1, a character each: positions in mouse reports are bytes, not characters. */
class Decoder implements KeyDecoder {
  readonly #onFocus: ((has: boolean) => void) | undefined;
  #mode: Mode = 'keys';
  #held = '';
  /** The text of a paste or a burst so far. */
  #pasted: string[] = [];
  /** The first half of a character that Windows sends as two keys. */
  #surrogate = '';

  constructor(onFocus?: (has: boolean) => void) {
    this.#onFocus = onFocus;
  }

  decode(chunk: Uint8Array | string): readonly InputEvent[] {
    const bytes = Buffer.from(chunk).toString('latin1');
    const events: InputEvent[] = [];
    if (bytes === '') return events;
    if (isCancel(bytes) && (this.#mode === 'paste' || this.#mode === 'answer')) {
      this.#endPaste(events, 'keys');
      return events;
    }
    let rest = this.#held + bytes;
    this.#held = '';
    while (rest !== '') rest = this.#take(rest, events);
    return this.#surrogate === '' && !events.some(isHalf) ? events : this.#wholeCharacters(events);
  }

  waitMs(): number | null {
    switch (this.#mode) {
      case 'keys':
        if (this.#held === '') return null;
        return /^\x1b+$/.test(this.#held) ? escapeWaitMs : sequenceWaitMs;
      case 'late':
        if (this.#held === '') return null;
        return this.#held.length === 1 ? escapeWaitMs : sequenceWaitMs;
      case 'paste':
        return pasteWaitMs;
      case 'burst':
        return burstWaitMs;
      case 'answer':
        return sequenceWaitMs;
      default:
        return this.#mode satisfies never;
    }
  }

  holdsEscape(): boolean {
    return (this.#mode === 'keys' || this.#mode === 'late') && /^\x1b+$/.test(this.#held);
  }

  flush(): readonly InputEvent[] {
    const events: InputEvent[] = [];
    const held = this.#held;
    switch (this.#mode) {
      case 'paste': {
        // The beginning of an end mark stays: the rest of it may be on its way.
        this.#endPaste(events, 'late');
        this.#held = held;
        break;
      }
      case 'burst':
        this.#endPaste(events, 'keys');
        break;
      case 'answer':
        this.#mode = 'keys';
        break;
      case 'late':
        this.#held = '';
        this.#mode = 'keys';
        if (held === '\r') events.push(enterKey);
        else if (held === '\x1b') events.push(escapeKey);
        else if (!held.startsWith('\x1b')) events.push({ type: 'text', text: utf8Of(held) });
        break;
      case 'keys':
        this.#held = '';
        if (/^\x1b+$/.test(held)) for (const _ of held) events.push(escapeKey);
        else if (/^\x1b[[\]OP_]$/.test(held)) addAll(events, altKey(held.slice(1)));
        else if (held !== '' && !held.startsWith('\x1b')) events.push({ type: 'text', text: utf8Of(held) });
        break;
      default:
        this.#mode satisfies never;
    }
    return events;
  }

  #take(text: string, events: InputEvent[]): string {
    switch (this.#mode) {
      case 'keys':
        return this.#takeKeys(text, events);
      case 'paste':
        return this.#takePaste(text, events);
      case 'late':
        return this.#takeLate(text, events);
      case 'burst':
        return this.#takeBurst(text, events);
      case 'answer':
        return this.#takeAnswer(text);
      default:
        return this.#mode satisfies never;
    }
  }

  /** Hands over what was pasted so far. */
  #endPaste(events: InputEvent[], mode: Mode): void {
    const text = utf8Of(this.#pasted.join('')).replaceAll(pasteEnd, '').replace(/\r\n?/g, '\n');
    // An empty paste is reported once its end has arrived: terminals send it if the clipboard has no text.
    if (text !== '' || (this.#mode === 'paste' && mode === 'keys')) events.push({ type: 'paste', text });
    this.#pasted = [];
    this.#held = '';
    this.#mode = mode;
  }

  /** The end mark may be split over chunks, so a tail that could begin it is held back. Of several end marks in one read
   * the last one counts: the terminal sends one, the others came with the text. */
  #takePaste(text: string, events: InputEvent[]): string {
    const next = text.indexOf(pasteStart);
    const end = text.lastIndexOf(pasteEnd, next < 0 ? text.length : next);
    if (end < 0) {
      const keep = overlap(text, pasteEnd);
      this.#pasted.push(text.slice(0, text.length - keep));
      this.#held = text.slice(text.length - keep);
      return '';
    }
    this.#pasted.push(text.slice(0, end));
    this.#endPaste(events, 'keys');
    return text.slice(end + pasteEnd.length);
  }

  #takeLate(text: string, events: InputEvent[]): string {
    // Nothing but a line end may be an Enter: it is one where nothing follows.
    if (text === '\r' || (text.length < pasteEnd.length && pasteEnd.startsWith(text))) {
      this.#held = text;
      return '';
    }
    const [segment = ''] = lines.exec(text) ?? [];
    const rest = text.slice(segment.length);
    this.#takeLateText(segment, rest === '', events);
    if (rest.startsWith(pasteEnd)) {
      this.#mode = 'keys';
      return rest.slice(pasteEnd.length);
    }
    if (segment === '') this.#mode = 'keys';
    return rest;
  }

  #takeLateText(segment: string, isLast: boolean, events: InputEvent[]): void {
    if (/[\r\n]/.test(segment)) {
      this.#pasted.push(segment);
      this.#endPaste(events, 'late');
    } else if (segment !== '') {
      this.#takeText(segment, 0, events);
      // A character that is cut waits for its rest.
      if (!isLast) this.#held = '';
    }
  }

  #takeBurst(text: string, events: InputEvent[]): string {
    const [segment = ''] = lines.exec(text) ?? [];
    this.#pasted.push(segment);
    if (segment.length < text.length) this.#endPaste(events, 'keys');
    return text.slice(segment.length);
  }

  /** Skips an answer to its end: BEL, ST, or another sequence. */
  #takeAnswer(text: string): string {
    const end = text.search(/[\x07\x1b]/);
    if (end < 0) return '';
    if (text[end] === '\x1b' && text[end + 1] === undefined) {
      this.#held = '\x1b';
      return '';
    }
    this.#mode = 'keys';
    if (text[end] === '\x07') return text.slice(end + 1);
    return text[end + 1] === '\\' ? text.slice(end + 2) : text.slice(end);
  }

  #takeKeys(text: string, events: InputEvent[]): string {
    let at = 0;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code >= 0x20 && code !== 0x7f) {
        if (this.#beginsBurst(text, at)) return text.slice(at);
        at = this.#takeText(text, at, events);
        continue;
      }
      if (code !== 0x1b) {
        events.push(controlKey(code));
        at++;
        continue;
      }
      if (text.startsWith(pasteStart, at)) {
        this.#mode = 'paste';
        return text.slice(at + pasteStart.length);
      }
      const length = sequenceLength(text, at);
      if (length === 0) {
        if (text.length - at > maxHeldChars) this.#mode = 'answer';
        else this.#held = text.slice(at);
        return '';
      }
      this.#takeSequence(text.slice(at, at + length), events);
      at += length;
    }
    return '';
  }

  #beginsBurst(text: string, at: number): boolean {
    const [segment = ''] = lines.exec(text.slice(at)) ?? [];
    if (!/[^\t\n\r]\r[\t\n\r]*[^\t\n\r]/.test(segment)) return false;
    this.#mode = 'burst';
    return true;
  }

  /** Takes text up to the next control and returns its end. A character that the end of the chunk cuts is held back. */
  #takeText(text: string, from: number, events: InputEvent[]): number {
    let end = from;
    while (end < text.length && text.charCodeAt(end) >= 0x20 && text.charCodeAt(end) !== 0x7f) end++;
    const run = text.slice(from, end);
    const cut = end === text.length ? (cutCharacter.exec(run)?.index ?? run.length) : run.length;
    this.#held = run.slice(cut);
    if (cut > 0) events.push({ type: 'text', text: utf8Of(run.slice(0, cut)) });
    return end;
  }

  #wholeCharacters(events: readonly InputEvent[]): readonly InputEvent[] {
    return events.flatMap((event): readonly InputEvent[] => {
      if (event.type !== 'text') return [event];
      const text = this.#surrogate + event.text;
      this.#surrogate = isHalf({ type: 'text', text }) ? text : '';
      return this.#surrogate === '' ? [{ type: 'text', text: text.toWellFormed() }] : [];
    });
  }

  #takeSequence(sequence: string, events: InputEvent[]): void {
    const second = sequence[1];
    if (sequence === '\x1b[I' || sequence === '\x1b[O') this.#onFocus?.(sequence === '\x1b[I');
    else if (second === undefined) events.push(escapeKey);
    // Alt and a key of its own: an escape before the sequence.
    else if (second === '\x1b') addAll(events, legacyKey(sequence.slice(1)).map(withAlt));
    else if (second === '[' && sequence.length > 2) addAll(events, csiEvents(sequence));
    else if (second === 'O' && sequence.length > 2) addAll(events, ss3Events(sequence));
    else if (!isAnswer(sequence)) addAll(events, altKey(utf8Of(sequence.slice(1))));
  }
}

const cutCharacter = /(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})$/;

function isHalf(event: InputEvent): boolean {
  return event.type === 'text' && /^[\ud800-\udbff]$/.test(event.text);
}

/** Text with line ends. */
const lines = /^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+/;

/** Ctrl-C, alone in a read. */
function isCancel(bytes: string): boolean {
  return bytes === '\x03' || /^\x1b\[(?:99|1089)(?::\d*){0,2};5(?::1)?u$/.test(bytes);
}

function utf8Of(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}

function withAlt(event: InputEvent): InputEvent {
  return event.type === 'key' ? { ...event, alt: true } : event;
}

/** Returns how many characters at the end of `text` may begin `marker`. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}

/** Returns the length of the escape sequence at `at`; 0 while it is incomplete. */
function sequenceLength(text: string, at: number): number {
  const second = text[at + 1];
  if (second === undefined) return 0;
  switch (second) {
    case '\x1b':
      return doubleLength(text, at);
    case '[':
      return csiLength(text, at);
    case 'O':
      return ss3Length(text, at);
    case ']':
    case 'P':
    case '_':
      return answerLength(text, at);
    default:
      return characterLength(text, at + 1);
  }
}

/** The length of an escape and a UTF-8 character. */
function characterLength(text: string, at: number): number {
  const code = text.charCodeAt(at);
  const bytes = code < 0xc2 ? 1 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;
  return at + bytes > text.length ? 0 : 1 + bytes;
}

/** Two escapes: the key Escape before something else, or Alt with an arrow or function key in old terminals. */
function doubleLength(text: string, at: number): number {
  const third = text[at + 2];
  if (third === undefined) return 0;
  if (third !== '[' && third !== 'O') return 1;
  const inner = third === '[' ? csiLength(text, at + 1) : ss3Length(text, at + 1);
  if (inner === 0) return 0;
  return legacyKey(text.slice(at + 1, at + 1 + inner)).length > 0 ? 1 + inner : 1;
}

function legacyKey(sequence: string): readonly InputEvent[] {
  if (/^\x1b\[[0-9;]*[A-DFH~^$@abcd]$/.test(sequence) && !sequence.startsWith(pasteStart.slice(0, 4)))
    return csiEvents(sequence);
  return /^\x1bO[A-DFHP-S]$/.test(sequence) ? ss3Events(sequence) : [];
}

/** A CSI sequence with a last character that terminals send; behind the beginning of one that was cut off, another
 * character is text. `$` ends a key of rxvt, and is before the end of an answer about a mode. */
const csi = /\x1b\[(?:\[[^]|\?[ -?]*[A-IMO-SZ^@_a-dmnt-z~]|(?!\?)[ -#%-?]*(?:\$y|[A-IMO-SZ^$@_a-dmnt-z~]))/y;
const csiBeginning = /\x1b\[(?:\[|[ -?]*)/y;

function csiLength(text: string, at: number): number {
  if (text[at + 2] === 'M') return mouseLength(text, at + 3, at);
  const whole = matchLength(csi, text, at);
  if (whole > 0) return whole;
  const beginning = matchLength(csiBeginning, text, at);
  return at + beginning === text.length ? 0 : beginning;
}

function matchLength(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex - at : 0;
}

/** A mouse report of old modes: `CSI M` and three positions, each a byte or, in mode 1005, a UTF-8 character. */
function mouseLength(text: string, from: number, at: number): number {
  let end = from;
  for (let count = 0; count < 3; count++) {
    if (text[end] === undefined) return 0;
    const isPair = /^[\xc2-\xdf][\x80-\xbf]/.test(text.slice(end, end + 2));
    end += isPair ? 2 : 1;
  }
  return end - at;
}

function ss3Length(text: string, at: number): number {
  const [, digit = '', letter] = /^(\d?)(.)?/s.exec(text.slice(at + 2, at + 4)) ?? [];
  if (letter === undefined) return 0;
  const length = 3 + digit.length;
  return ss3Events(text.slice(at, at + length)).length > 0 ? length : 2;
}

/** Returns whether a text begins as the answers of terminals do (OSC, DCS, APC), and not as Alt with a bracket. */
function isAnswer(text: string): boolean {
  return /^\x1b(?:\][\dlLI]|P[\d>!$+]|_G)/.test(text);
}

function answerLength(text: string, at: number): number {
  if (text[at + 2] === undefined) return 0;
  if (!isAnswer(text.slice(at, at + 3))) return 2;
  const end = text.slice(at + 2).search(/\x07|\x1b./s);
  if (end < 0) return 0;
  const [first, second] = text.slice(at + 2 + end, at + 4 + end);
  if (first === '\x07') return end + 3;
  return second === '\\' ? end + 4 : end + 2;
}
