/** One key. `name` is the character in lower case or a word: enter, escape, tab, backspace, delete, up, home, pageup,
 * f1, space. */
export interface Key {
  readonly type: 'key';
  readonly name: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
}

/** What a key press gives: a key, or the text it typed. */
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

/** A C0 control or DEL as the key that sends it. */
export function controlKey(code: number): Key {
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

export function ss3Key(letter: string): readonly Key[] {
  const name = letters[letter];
  return name ? [{ type: 'key', name, ...plain }] : [];
}

/** The key of a CSI sequence without its introducer; nothing for replies, focus reports and key releases.
 * Source: xterm ctlseqs "PC-Style Function Keys", modifyOtherKeys; kitty keyboard protocol, "disambiguate escape
 * codes". */
export function csiKey(body: string): readonly KeyOrText[] {
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

/** The name of a kitty key code: a word, a keypad digit, or the character itself; keys that type nothing have none. */
function keyOf(code: number): string | undefined {
  if (code >= 57399 && code <= 57408) return String(code - 57399);
  if (codes[code] !== undefined) return codes[code];
  const special = code >= 57344 && code <= 63743;
  return isPrintable(code) && !special ? String.fromCodePoint(code) : undefined;
}

function typedText(points: string): string {
  return String.fromCodePoint(...points.split(':').map(Number).filter(isPrintable));
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

/** `ctrl-a`, `alt-enter`, `up`: the name a table of bindings uses. */
export function keyName(key: Key): string {
  return `${key.ctrl ? 'ctrl-' : ''}${key.alt ? 'alt-' : ''}${key.shift ? 'shift-' : ''}${key.name}`;
}
