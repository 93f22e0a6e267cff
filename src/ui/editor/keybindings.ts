import { nearestName } from '../../kernel/core/text.js';
import { type Key, keyName } from '../terminal/keyboard.js';
import { type EditAction, edits } from './editor.js';
import type { ConfigProblem } from '../../kernel/config/settings-file.js';

/** An action of the input line: its keys, and what it does, for a reader. */
interface KeyEntry {
  readonly keys: readonly string[];
  readonly about: string;
}

/** The actions besides editing, and their keys. If two share a key, the first that applies at the moment counts. */
const acts = {
  send: {
    keys: ['enter'],
    about: 'send; while working, delivered after the current step',
  },
  send_later: {
    keys: ['alt-enter'],
    about: 'send after the turn',
  },
  interrupt: {
    keys: ['escape'],
    about: 'interrupt the turn',
  },
  rewind: {
    keys: ['escape'],
    about: 'twice, when idle: go back, or stash the text',
  },
  cancel: {
    keys: ['ctrl-c'],
    about: 'interrupt, else clear the input; twice to quit',
  },
  leave: {
    keys: ['ctrl-d'],
    about: 'quit, on an empty input',
  },
  older: {
    keys: ['up', 'ctrl-p'],
    about: 'previous line or message; on an empty input, edit queued messages',
  },
  newer: {
    keys: ['down', 'ctrl-n'],
    about: 'next line or message',
  },
  search_history: {
    keys: ['ctrl-r'],
    about: 'search earlier messages',
  },
  complete: {
    keys: ['tab'],
    about: 'complete a command, or a path after @',
  },
  show_last: {
    keys: ['ctrl-o'],
    about: 'show the last result or reasoning in full',
  },
  switch_detail: {
    keys: ['ctrl-x'],
    about: 'switch between full and short results',
  },
  edit_outside: {
    keys: ['ctrl-g'],
    about: 'open your editor',
  },
  stash: {
    keys: ['ctrl-s'],
    about: 'stash the input; on an empty input, list stashed prompts',
  },
  take_picture: {
    keys: ['ctrl-v'],
    about: 'paste the image in the clipboard',
  },
  next_mode: {
    keys: ['shift-tab'],
    about: 'switch approval mode',
  },
  to_background: {
    keys: ['ctrl-b'],
    about: 'move a running command to the background',
  },
  suspend: {
    keys: ['ctrl-z'],
    about: 'suspend; fg returns',
  },
} satisfies Readonly<Record<string, KeyEntry>>;

export type Act = keyof typeof acts;
export type Action = Act | EditAction;

/** The one table of the input's keys: help, the screen behind `?`, settings and manual are derived from it. */
const keyTable: Readonly<Record<Action, KeyEntry>> = { ...acts, ...edits };

const actions = Object.keys(keyTable) as readonly Action[];

export function isEdit(action: Action): action is EditAction {
  return Object.hasOwn(edits, action);
}

/** Custom key bindings: the keys of an action, separated by blanks, in place of the default. Empty: the action has no
 * key. */
export type Bindings = Readonly<Record<string, string>>;

/** The first key of an action as people write it; null where it has none. */
export type KeyOf = (action: Action) => string | null;

/** Which keys do what. */
export interface KeyMap {
  readonly keyOf: KeyOf;
  actionsOf(key: Key): readonly Action[];
  keysOf(action: Action): readonly string[];
}

/** Creates a key map. `own` must have no problems (`bindingProblem`). A custom key loses its default action. */
export function createKeyMap(own: Bindings = {}): KeyMap {
  const taken = new Set(Object.values(own).flatMap(keysIn));
  const keysOf = (action: Action): readonly string[] => {
    const given = own[action];
    return given === undefined ? keyTable[action].keys.filter((key) => !taken.has(key)) : keysIn(given);
  };
  const byKey = new Map<string, Action[]>();
  for (const action of actions) for (const key of keysOf(action)) byKey.set(key, [...(byKey.get(key) ?? []), action]);
  return {
    keyOf: (action) => keysOf(action).map(shownKey)[0] ?? null,
    actionsOf: (key) => byKey.get(keyName(key)) ?? [],
    keysOf,
  };
}

function keysIn(text: string): readonly string[] {
  return text.split(/\s+/).flatMap((key) => (key === '' ? [] : [plainName(key)]));
}

/** Modifiers in our order: `Shift-Ctrl-x` is `ctrl-shift-x`. */
function plainName(key: string): string {
  const [, held = '', name = ''] = /^((?:(?:ctrl|alt|shift)-)*)([^]+)$/.exec(key.toLowerCase()) ?? [];
  return ['ctrl-', 'alt-', 'shift-'].filter((modifier) => held.includes(modifier)).join('') + name;
}

const words =
  /^(?:enter|escape|tab|backspace|delete|insert|up|down|left|right|home|end|pageup|pagedown|space|f(?:[1-9]|1[0-2]))$/;
/** Keys that a terminal sends as others. */
const sameKeys: Readonly<Record<string, string>> = { 'ctrl-m': 'enter', 'ctrl-i': 'tab', 'ctrl-[': 'escape' };

/** Says what is wrong with the bindings, and what to do; null if nothing is. `key`: the setting that is wrong. */
export function bindingProblem(own: Bindings): { readonly key: string; readonly message: string } | null {
  const owners = new Map<string, string>();
  for (const [action, text] of Object.entries(own)) {
    const wrong = (what: string): { key: string; message: string } => ({ key: `ui.bindings.${action}`, message: what });
    if (!Object.hasOwn(keyTable, action)) {
      const nearest = nearestName(action, actions);
      const meant = nearest === null ? '' : `; the nearest is ${nearest}`;
      return wrong(`there is no action \`${action}\`${meant}. There are: ${actions.join(', ')}`);
    }
    for (const key of keysIn(text)) {
      const problem = keyProblem(key) ?? doubled(key, owners.get(key));
      if (problem !== null) return wrong(problem);
      owners.set(key, action);
    }
  }
  return null;
}

function doubled(key: string, owner: string | undefined): string | null {
  return owner === undefined ? null : `${shownKey(key)} is already bound to ${owner}`;
}

function keyProblem(key: string): string | null {
  const [, held = '', name = ''] = /^((?:ctrl-|alt-|shift-)*)([^]+)$/.exec(key) ?? [];
  if (sameKeys[key] !== undefined) return `${shownKey(key)} is the same as ${shownKey(sameKeys[key])} to a terminal`;
  if (words.test(name)) return name === 'space' && held === '' ? typed(key) : null;
  if ([...name].length !== 1)
    return `there is no key \`${key}\`: write for example ctrl-s, alt-enter, shift-tab, pageup or f2`;
  return held === '' || held === 'shift-' ? typed(key) : null;
}

function typed(key: string): string {
  return `\`${key}\` is typed text: add ctrl or alt`;
}

/** `Ctrl-R`, `Esc`, `Alt-Enter`, as people write them. */
export function shownKey(key: string): string {
  const parts = /^((?:ctrl-|alt-|shift-)*)([^]+)$/.exec(key);
  const name = parts?.[2] ?? key;
  const shown = { escape: 'Esc', pageup: 'PageUp', pagedown: 'PageDown' }[name] ?? capital(name);
  return (parts?.[1] ?? '').replace(/\w+/g, capital) + shown;
}

/** Keys that mean the same in every dialog, as people write them. */
export const dialogKeys = {
  leave: shownKey('escape'),
  empty: shownKey('ctrl-u'),
  details: shownKey('ctrl-o'),
} as const;

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** One row of the table for a reader. `keys` is empty for an action without one. */
export interface KeyRow {
  readonly action: Action;
  readonly keys: string;
  readonly about: string;
}

/** `edits`: every action. False: those that a short list has room for, without most of those that edit. */
export function keyRows(map: KeyMap, { edits: all }: { readonly edits: boolean }): readonly KeyRow[] {
  const rows = actions.map((action) => ({
    action,
    keys: map.keysOf(action).map(shownKey).join(', '),
    about: keyTable[action].about,
  }));
  return all ? rows : shortRows(rows);
}

/** Leaves out the counterpart of another key, and puts the two meanings of Esc into one row. */
function shortRows(rows: readonly KeyRow[]): readonly KeyRow[] {
  const rewind = rows.find(({ action, keys }) => action === 'rewind' && keys !== '');
  const isShared = rows.some(({ action, keys }) => action === 'interrupt' && keys === rewind?.keys);
  return rows.flatMap((row) => {
    const { action, about } = row;
    if (action === 'newer' || (isEdit(action) && action !== 'new_line')) return [];
    if (!rewind || !isShared) return [row];
    return action === 'rewind' ? [] : [action === 'interrupt' ? { ...row, about: `${about}; ${rewind.about}` } : row];
  });
}

/** Returns the problem of custom keys, or null. */
export function wrongBinding(bindings: Bindings, where: string): ConfigProblem | null {
  const problem = bindingProblem(bindings);
  const hint = '/help keys lists all actions and their keys.';
  return problem && { message: `${problem.key}: ${problem.message}`, hint, key: problem.key, where };
}
