/** One key. `name` is the character in lower case or a word: enter, escape, tab, backspace, delete, up, home, pageup,
 * f1, space. A key combination is named by the key of a US layout. */
export interface Key {
  readonly type: 'key';
  readonly name: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
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
