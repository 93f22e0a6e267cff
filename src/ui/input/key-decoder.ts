import { controlKey, csiKey, ss3Key, type Key } from './key-tables.js';

/** What the reader of a terminal gets: keys, runs of printable text, pastes as one piece. */
export type InputEvent =
  | Key
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'paste'; readonly text: string };

/** Turns the bytes of a terminal into keys. Bytes may be split anywhere. An escape that could be the beginning of a
 * longer sequence is held back until more comes or `flush` says that nothing will (the caller's timer). */
export interface KeyDecoder {
  decode(chunk: Uint8Array | string): readonly InputEvent[];
  /** True while an incomplete escape sequence is held back. */
  waiting(): boolean;
  flush(): readonly InputEvent[];
}

const pasteStart = '\x1b[200~';
const pasteEnd = '\x1b[201~';
const longestSequence = 128;

export function createKeyDecoder(): KeyDecoder {
  return new Decoder();
}

class Decoder implements KeyDecoder {
  readonly #utf8 = new TextDecoder('utf-8');
  #held = '';
  #paste: string[] | null = null;

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
      events.push(...escapeEvents(text.slice(at, at + length)));
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

/** How many characters of `text` at its end could be the beginning of `marker`. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}

/** Length of the escape sequence at `at`; 0 while it is incomplete. A sequence that never ends is given up as it is. */
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

/** A terminal's answer to a question: swallowed whole. */
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
