import { latinKey } from './keyboard-layouts.js';
import type { InputEvent, Key } from './keyboard.js';

const plain = { ctrl: false, alt: false, shift: false } as const;
type Held = Pick<Key, 'ctrl' | 'alt' | 'shift'>;

export const escapeKey: Key = { type: 'key', name: 'escape', ...plain };
export const enterKey: Key = { type: 'key', name: 'enter', ...plain };

const letters: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  E: 'begin',
  F: 'end',
  H: 'home',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
};
/** Arrows of rxvt: with Shift behind CSI, with Ctrl behind SS3. */
const rxvtArrows: Readonly<Record<string, string>> = { a: 'up', b: 'down', c: 'right', d: 'left' };
/** Function keys of the Linux console, behind `CSI [`. */
const consoleKeys: Readonly<Record<string, string>> = { A: 'f1', B: 'f2', C: 'f3', D: 'f4', E: 'f5' };
/** Keys of a keypad in application mode, behind SS3. */
const keypad: Readonly<Record<string, string>> = {
  j: '*',
  k: '+',
  l: ',',
  m: '-',
  n: '.',
  o: '/',
  p: '0',
  q: '1',
  r: '2',
  s: '3',
  t: '4',
  u: '5',
  v: '6',
  w: '7',
  x: '8',
  y: '9',
  X: '=',
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
/** Virtual key codes of Windows for keys that type nothing. */
const windowsKeys: Readonly<Record<number, string>> = {
  8: 'backspace',
  9: 'tab',
  13: 'enter',
  27: 'escape',
  33: 'pageup',
  34: 'pagedown',
  35: 'end',
  36: 'home',
  37: 'left',
  38: 'up',
  39: 'right',
  40: 'down',
  45: 'insert',
  46: 'delete',
};

/** Returns the key that sends a C0 control or DEL. */
export function controlKey(code: number): Key {
  if (code === 0x0d) return enterKey;
  if (code === 0x09) return { type: 'key', name: 'tab', ...plain };
  if (code === 0x7f) return { type: 'key', name: 'backspace', ...plain };
  if (code === 0x1b) return escapeKey;
  if (code === 0) return { type: 'key', name: 'space', ...plain, ctrl: true };
  const name = String.fromCharCode(code < 0x1b ? code + 0x60 : code + 0x40).toLowerCase();
  return { type: 'key', name, ...plain, ctrl: true };
}

/** Returns the key that a terminal sends as an escape and this character. */
export function altKey(char: string): readonly InputEvent[] {
  const code = char.codePointAt(0) ?? 0;
  // Nobody holds Alt there, and these two must always work.
  if (code === 0x03 || code === 0x04) return [escapeKey, controlKey(code)];
  if (code < 0x20 || code === 0x7f) return [{ ...controlKey(code), alt: true }];
  const name = char.toLowerCase();
  return [{ type: 'key', name: latinKey(name), ...plain, alt: true, shift: char !== name }];
}

/** Returns the keys of a whole SS3 sequence, `ESC O` and a letter. Empty: no terminal sends it. */
export function ss3Events(sequence: string): readonly InputEvent[] {
  const [, modifier = '', letter = ''] = /^\x1bO(\d?)([A-Za-z])$/.exec(sequence) ?? [];
  if (letter === 'M') return [{ type: 'key', name: 'enter', ...modifiers(modifier) }];
  const text = keypad[letter];
  if (text !== undefined) return [{ type: 'text', text }];
  const arrow = rxvtArrows[letter];
  if (arrow !== undefined) return [{ type: 'key', name: arrow, ...plain, ctrl: true }];
  const name = letters[letter];
  return name === undefined ? [] : [{ type: 'key', name, ...modifiers(modifier) }];
}

/** Returns the keys of a whole CSI sequence; none for mouse reports, for the answers of a terminal, and for keys that
 * are released. Sources: xterm ctlseqs "PC-Style Function Keys", "Mouse Tracking" and modifyOtherKeys; kitty keyboard
 * protocol; microsoft/terminal, "win32-input-mode"; rxvt-unicode, "Key Codes". */
export function csiEvents(sequence: string): readonly InputEvent[] {
  const final = sequence.at(-1) ?? '';
  const body = sequence.slice(2, -1);
  if (body === '[') return keyEvents(consoleKeys[final], plain);
  if (!/^[0-9;:]*$/.test(body)) return [];
  const [first = '', second = '', third = ''] = body.split(';');
  switch (final) {
    case 'u':
      return kittyKey(first, second, third);
    case '_':
      return windowsKey(body);
    case 'Z':
      return keyEvents('tab', { ...plain, shift: true });
    case '^':
      return keyEvents(numbers[first], { ...plain, ctrl: true });
    case '$':
      return keyEvents(numbers[first], { ...plain, shift: true });
    case '@':
      return keyEvents(numbers[first], { ...plain, ctrl: true, shift: true });
    case '~':
      return first === '27' ? kittyKey(third, second, '') : unlessReleased(numbers[first], second);
    default:
      return rxvtArrows[final] === undefined || body !== ''
        ? unlessReleased(letterKey(final, first), second)
        : keyEvents(rxvtArrows[final], { ...plain, shift: true });
  }
}

function keyEvents(name: string | undefined, held: Held): readonly InputEvent[] {
  return name === undefined ? [] : [{ type: 'key', name, ...held }];
}

function unlessReleased(name: string | undefined, modifierText: string): readonly InputEvent[] {
  return isRelease(modifierText) ? [] : keyEvents(name, modifiers(modifierText));
}

/** `CSI R` is F3 only without a row: a cursor position report looks like it. */
function letterKey(final: string, first: string): string | undefined {
  return final === 'R' && first !== '' && first !== '1' ? undefined : letters[final];
}

function kittyKey(codeText: string, modifierText: string, text: string): readonly InputEvent[] {
  const [code, shifted, base] = threeNumbers(codeText);
  const name = keyOf(code);
  if (name === undefined || isRelease(modifierText) || holdsSuper(modifierText)) return [];
  const held = modifiers(modifierText);
  if (codes[code] !== undefined && code !== 32) return [{ type: 'key', name, ...held }];
  return held.ctrl || held.alt
    ? [{ type: 'key', name: positionOf(name, base), ...held }]
    : [{ type: 'text', text: typedText(text) || (held.shift ? shiftedText(name, shifted) : spelled(name)) }];
}

function threeNumbers(text: string): readonly [number, number, number] {
  const [first = 0, second = 0, third = 0] = text.split(':').map(Number);
  return [first, second, third];
}

/** Returns the name of the key on a US layout. Terminals report it (`base`) if they are asked to. */
function positionOf(name: string, base: number): string {
  return keyOf(base) ?? latinKey(name.toLowerCase());
}

function spelled(name: string): string {
  return name === 'space' ? ' ' : name;
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
  return code >= 0x20 && code < 0x110000 && code !== 0x7f && !(code >= 0xd800 && code <= 0xdfff);
}

function shiftedText(name: string, alternate: number): string {
  return isPrintable(alternate)
    ? String.fromCodePoint(alternate)
    : spelled(name === 'space' ? name : name.toUpperCase());
}

function modifierBits(text: string): number {
  return Math.max(0, Number(text.split(':')[0] ?? '') - 1) || 0;
}

function modifiers(text: string): Held {
  const bits = modifierBits(text);
  return { shift: (bits & 1) !== 0, alt: (bits & (2 | 32)) !== 0, ctrl: (bits & 4) !== 0 };
}

/** The window manager's keys type nothing. */
function holdsSuper(text: string): boolean {
  return (modifierBits(text) & (8 | 16)) !== 0;
}

function isRelease(text: string): boolean {
  return text.split(':')[1] === '3';
}

/** Reads a key of Windows: virtual key, scan code, UTF-16 unit, whether it is down, what is held, and how often. */
function windowsKey(body: string): readonly InputEvent[] {
  const [key = 0, , unit = 0, isDown = 0, state = 0, times = 1] = body.split(';').map(Number);
  if (isDown === 0) return [];
  // Right Alt with a Ctrl is AltGr, which types.
  const altGr = (state & 1) !== 0 && (state & 12) !== 0;
  const held = { ctrl: !altGr && (state & 12) !== 0, alt: !altGr && (state & 3) !== 0, shift: (state & 16) !== 0 };
  const one = windowsEvent(key, unit, held);
  return one === null ? [] : Array.from({ length: Math.min(Math.max(times, 1), 100) }, () => one);
}

function windowsEvent(key: number, unit: number, held: Held): InputEvent | null {
  const name = windowsKeys[key];
  if (name !== undefined) return { type: 'key', name, ...held };
  if (held.ctrl || held.alt) {
    const letter = key >= 0x30 && key <= 0x5a ? String.fromCharCode(key).toLowerCase() : null;
    return letter === null ? null : { type: 'key', name: letter, ...held };
  }
  return unit >= 0x20 && unit !== 0x7f ? { type: 'text', text: String.fromCharCode(unit) } : null;
}
