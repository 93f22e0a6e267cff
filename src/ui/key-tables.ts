/** One key. `name` is the character in lower case or a word: enter, escape, tab, backspace, delete, up, home, pageup, f1, space. */
export interface Key { readonly type: 'key'; readonly name: string; readonly ctrl: boolean; readonly alt: boolean; readonly shift: boolean }

/** What a key press gives: a key, or the text it typed. */
type KeyOrText = Key | { readonly type: 'text'; readonly text: string };

const plain = { ctrl: false, alt: false, shift: false } as const;

const letters: Readonly<Record<string, string>> = { A: 'up', B: 'down', C: 'right', D: 'left', H: 'home', F: 'end', P: 'f1', Q: 'f2', R: 'f3', S: 'f4', M: 'enter', E: 'begin' };
const numbers: Readonly<Record<string, string>> = {
  1: 'home', 2: 'insert', 3: 'delete', 4: 'end', 5: 'pageup', 6: 'pagedown', 7: 'home', 8: 'end',
  11: 'f1', 12: 'f2', 13: 'f3', 14: 'f4', 15: 'f5', 17: 'f6', 18: 'f7', 19: 'f8', 20: 'f9', 21: 'f10', 23: 'f11', 24: 'f12',
};
const codes: Readonly<Record<number, string>> = {
  9: 'tab', 13: 'enter', 27: 'escape', 32: 'space', 127: 'backspace', 57414: 'enter', 57417: 'left', 57418: 'right', 57419: 'up', 57420: 'down',
  57421: 'pageup', 57422: 'pagedown', 57423: 'home', 57424: 'end', 57425: 'insert', 57426: 'delete',
};

/** A C0 control or DEL as the key that sends it. */
export function controlKey(code: number): Key {
  if (code === 0x0d) return { type: 'key', name: 'enter', ...plain };
  if (code === 0x09) return { type: 'key', name: 'tab', ...plain };
  if (code === 0x7f) return { type: 'key', name: 'backspace', ...plain };
  if (code === 0x1b) return { type: 'key', name: 'escape', ...plain };
  if (code === 0) return { type: 'key', name: 'space', ...plain, ctrl: true };
  return { type: 'key', name: String.fromCharCode(code < 0x1b ? code + 0x60 : code + 0x40).toLowerCase(), ...plain, ctrl: true };
}

export function ss3Key(letter: string): readonly Key[] {
  const name = letters[letter];
  return name ? [{ type: 'key', name, ...plain }] : [];
}

/** The key of a CSI sequence without its introducer; nothing for replies, focus reports and key releases.
 *  Source: xterm ctlseqs "PC-Style Function Keys", modifyOtherKeys; kitty keyboard protocol, "disambiguate escape codes". */
export function csiKey(body: string): readonly KeyOrText[] {
  const final = body.at(-1) ?? '';
  const parameters = body.slice(0, -1);
  if (!/^[0-9;:]*$/.test(parameters)) return [];
  const [first = '', second = '', third = ''] = parameters.split(';');
  if (final === 'u') return kittyKey(first, second, third);
  if (final === 'Z') return [{ type: 'key', name: 'tab', ...plain, shift: true }];
  if (final === '~' && first === '27') return kittyKey(third, second, '');
  if (isRelease(second)) return [];
  const name = final === '~' ? numbers[first] : letters[final];
  if (!name || (final === 'R' && first !== '' && first !== '1')) return [];
  return [{ type: 'key', name, ...modifiers(second) }];
}

function kittyKey(codeText: string, modifierText: string, text: string): readonly KeyOrText[] {
  if (isRelease(modifierText)) return [];
  const code = Number(codeText.split(':')[0]);
  const held = modifiers(modifierText);
  const keypad = code >= 57399 && code <= 57408 ? String(code - 57399) : undefined;
  const name = keypad ?? codes[code] ?? (code >= 0x20 && code < 0x110000 && !(code >= 57344 && code <= 63743) ? String.fromCodePoint(code) : undefined);
  if (name === undefined) return [];
  const typed = text === '' ? undefined : String.fromCodePoint(...text.split(':').map(Number).filter((point) => point >= 0x20 && point < 0x110000));
  const single = codes[code] === undefined || code === 32;
  if (single && !held.ctrl && !held.alt) return [{ type: 'text', text: typed ?? shifted(code === 32 ? ' ' : name, codeText, held.shift) }];
  return [{ type: 'key', name: name.toLowerCase(), ...held }];
}

function shifted(name: string, codeText: string, shift: boolean): string {
  const alternate = Number(codeText.split(':')[1] ?? '');
  if (!shift) return name;
  return alternate >= 0x20 && alternate < 0x110000 ? String.fromCodePoint(alternate) : name.toUpperCase();
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
