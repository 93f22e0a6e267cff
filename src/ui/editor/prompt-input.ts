import { type InputEvent, type Key, keyName } from '../terminal/keyboard.js';
import { clusters } from '../terminal/rows.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { MenuState } from '../components/menu.js';
import type { Rank } from '../components/picker.js';
import type { SlashCommand } from '../../kernel/console/slash-command.js';
import type { Vim } from '../vim/vim.js';
import {
  change,
  type Editor,
  editorText,
  editorWith,
  edits,
  emptyEditor,
  exchanged,
  moveLine,
  paste,
  type,
} from './editor.js';
import { type Act, type Action, createKeyMap, isEdit, type KeyMap, keyRows } from './keybindings.js';
import {
  applyCandidate,
  completeCommand,
  completeFile,
  type Completion,
  completionMenu,
  fileQuery,
  withFolders,
} from './suggestions.js';

/** The meaning of a key beyond the input itself. */
export type InputAction =
  | { readonly type: 'none' }
  | { readonly type: 'submit'; readonly text: string; readonly when: 'steer' | 'after' }
  /** If there is nothing to interrupt, two of them open the list of messages, unless `rewinds` is false. */
  | { readonly type: 'escape'; readonly rewinds?: false }
  /** `twice`: one press alone has no effect. */
  | { readonly type: 'rewind'; readonly twice: boolean }
  | { readonly type: 'cancel' | 'end' | 'suspend' | 'page' | 'detail' | 'edit' | 'mode' | 'take-back' | 'stash' }
  | { readonly type: 'pasted'; readonly text: string }
  | { readonly type: 'clipboard' };

const none: InputAction = { type: 'none' };
const escape = { type: 'escape' } as const;

/** Actions that only others carry out. */
const plainActs = {
  cancel: 'cancel',
  suspend: 'suspend',
  show_last: 'page',
  switch_detail: 'detail',
  edit_outside: 'edit',
  stash: 'stash',
  take_picture: 'clipboard',
  next_mode: 'mode',
} as const;

/** Actions whose keys mean the same in all of vim's modes. */
const ownActs = new Set<Action>([
  ...([
    'send',
    'send_later',
    'cancel',
    'suspend',
    'show_last',
    'switch_detail',
    'edit_outside',
    'stash',
    'next_mode',
  ] as const),
]);

/** Returns whether vim takes `event`: all but pastes outside insert mode, and the key that leaves insert mode. */
function isCommand(vim: Vim, event: InputEvent): boolean {
  return event.type !== 'paste' && (vim.mode() !== 'insert' || (event.type === 'key' && isEscape(event)));
}

function isEscape(key: Key): boolean {
  return !key.ctrl && (key.alt ? key.name.length === 1 : key.name === 'escape' && !key.shift);
}

interface Parts {
  readonly commands: () => readonly SlashCommand[];
  readonly rank: Rank;
  readonly wantFiles: () => void;
  readonly onEmptyLine?: (() => string | null) | undefined;
  readonly keyMap?: KeyMap | undefined;
}

/** The input line: text, history, search, completion. It draws nothing and waits for nothing. */
export class PromptInput {
  readonly #d: Parts;
  #editor: Editor = emptyEditor;
  #history: InputHistory = createHistory([]);
  #files: readonly string[] | null = null;
  #agents: ReadonlyMap<string, string> = new Map();
  #completion: Completion | null = null;
  readonly #keyMap: KeyMap;
  /** The keys are shown below the empty line. */
  #showsKeys = false;
  #selected = 0;
  #vim: Vim | null = null;
  #search: { readonly query: string; readonly at: number; readonly before: Editor } | null = null;

  constructor(d: Parts) {
    this.#d = d;
    this.#keyMap = d.keyMap ?? createKeyMap();
  }

  editor(): Editor {
    const selected = this.#vim?.selection(this.#editor) ?? null;
    return selected ? { ...this.#editor, selected } : this.#editor;
  }

  /** Switches to vim's keys. */
  useVim(vim: Vim): void {
    this.#vim = vim;
  }
  /** Returns the mode of vim's keys; null if they are not used. */
  mode(): string | null {
    return this.#vim?.mode() ?? null;
  }
  text(): string {
    return editorText(this.#editor);
  }
  setHistory(entries: readonly string[]): void {
    this.#history = createHistory([...entries, ...this.#history.entries]);
  }

  setText(text: string): void {
    this.#replace(text);
  }

  /** Puts a text at the cursor. */
  insert(text: string): void {
    this.#set(type(this.#editor, text));
  }

  /** Replaces `before` with `text`, if the input still contains it. */
  exchange(before: string, text: string): void {
    const at = this.#editor.text.lastIndexOf(before);
    if (at >= 0) this.#set(change(this.#editor, at, at + before.length, text));
  }

  /** Sets the paths of files for `@`, which offers their folders, too, and agents before them. */
  setFiles(paths: readonly string[], agents: ReadonlyMap<string, string> = new Map()): void {
    this.#files = [...agents.keys(), ...withFolders(paths)];
    this.#agents = agents;
    this.#complete();
  }

  /** Returns the completions of the text, or the keys; null if there is nothing to show. */
  menu(): MenuState | null {
    if (this.#showsKeys) return keyMenu(this.#keyMap);
    return this.#completion ? completionMenu(this.#completion, this.#selected) : null;
  }

  /** Returns the text in the place of the prompt while the history is searched; null otherwise. */
  searching(): string | null {
    return this.#search ? `search ${this.#search.query === '' ? '' : `"${this.#search.query}"`}` : null;
  }

  take(event: InputEvent): InputAction {
    if (this.#showsKeys) return this.#leaveKeys(event);
    const vim = this.#search ? null : this.#vim;
    if (vim && isCommand(vim, event))
      return event.type === 'key' ? this.#takeCommandKey(vim, event) : this.#takeCommands(vim, sanitize(event.text));
    if (event.type !== 'key') return this.#takeText(event);
    if (this.#search && this.#takeSearch(event)) return none;
    if (this.#completion && this.#takeCompletion(event)) return none;
    return this.#takeKey(event);
  }

  #takeText(event: Exclude<InputEvent, Key>): InputAction {
    const isPaste = event.type === 'paste' && !this.#search;
    this.#showsKeys = !isPaste && event.text === '?' && this.#editor.text === '' && !this.#search;
    if (this.#showsKeys) return none;
    this.#insert(event);
    return isPaste ? { type: 'pasted', text: sanitize(event.text) } : none;
  }

  /** Any key closes the keys, and does what it always does. Enter, or another `?`, means the `?` that opened them. */
  #leaveKeys(event: InputEvent): InputAction {
    this.#showsKeys = false;
    const name = event.type === 'key' ? keyName(event) : '';
    if (name === 'escape' || name === 'backspace') return none;
    const again = event.type === 'text' && event.text === '?';
    if (again || name === 'enter') this.#insert({ type: 'text', text: '?' });
    return again ? none : this.take(event);
  }

  #insert(event: Exclude<InputEvent, Key>): void {
    const text = sanitize(event.text);
    if (this.#search) {
      this.#find(this.#search.query + text.replaceAll('\n', ' '), this.#history.entries.length);
      return;
    }
    const editor = event.type === 'paste' ? paste(this.#editor, text) : type(this.#editor, text);
    this.#set(this.#vim?.rest(editor) ?? editor);
  }

  #replace(text: string): void {
    this.#replaceBy(editorWith(text));
  }

  #replaceBy(editor: Editor): void {
    this.#editor = this.#vim?.rest(editor) ?? editor;
    this.#completion = null;
  }

  /** Takes the keys of several commands at once, and what is typed after them. */
  #takeCommands(vim: Vim, text: string): InputAction {
    let action: InputAction = none;
    let taken = 0;
    for (const { text: char } of clusters(text)) {
      if (this.#search || vim.mode() === 'insert') break;
      const next = this.#press(vim, char);
      if (next.type !== 'none') action = next;
      taken += char.length;
    }
    if (taken < text.length) this.#insert({ type: 'text', text: text.slice(taken) });
    return action;
  }

  #press(vim: Vim, key: string): InputAction {
    const { editor, left } = vim.press(this.#editor, key);
    this.#editor = editor;
    switch (left) {
      case 'nothing':
        return none;
      case 'escape':
        return this.#keyMap.keysOf('rewind').includes('escape') ? escape : { ...escape, rewinds: false };
      case 'older':
        return this.#vertical(-1, editor.text === '');
      case 'newer':
        return this.#vertical(1, false);
      case 'search':
        this.#beginSearch();
        return none;
      default:
        return left satisfies never;
    }
  }

  /** Takes a key in vim's modes. A key without a meaning there keeps its own. */
  #takeCommandKey(vim: Vim, key: Key): InputAction {
    const name = keyName(key);
    if (isEscape(key) && (key.alt || vim.mode() === 'insert')) return this.#takeEscape(vim, key);
    const acts = this.#keyMap.actionsOf(key);
    const leaves = acts.includes('leave') && this.#editor.text === '';
    if (leaves || acts.some((act) => ownActs.has(act) || (act === 'interrupt' && !isEscape(key))))
      return this.#takeKey(key);
    return this.#press(vim, name);
  }

  /** Esc leaves insert mode and a menu with it. An Alt key is an Esc and that key, typed fast. */
  #takeEscape(vim: Vim, key: Key): InputAction {
    this.#completion = null;
    this.#editor = vim.mode() === 'insert' ? vim.leaveInsert(this.#editor) : vim.press(this.#editor, 'escape').editor;
    return key.alt ? this.#takeCommands(vim, key.shift ? key.name.toUpperCase() : key.name) : none;
  }

  #beginSearch(): void {
    this.#search = { query: '', at: this.#history.entries.length, before: this.#editor };
  }

  #set(editor: Editor): void {
    this.#editor = editor;
    this.#complete();
  }

  #takeKey(key: Key): InputAction {
    for (const action of this.#keyMap.actionsOf(key)) {
      if (isEdit(action)) {
        this.#set(edits[action].edit(this.#editor));
        return none;
      }
      const done = this.#act(action, this.#editor.text === '', key);
      if (done) return done;
    }
    return none;
  }

  /** Returns null where the key means something else now. */
  #act(act: Act, empty: boolean, key: Key): InputAction | null {
    switch (act) {
      case 'interrupt':
        return this.#keyMap.actionsOf(key).includes('rewind') ? escape : { ...escape, rewinds: false };
      case 'rewind':
        return { type: 'rewind', twice: keyName(key) === 'escape' };
      case 'send':
        return this.#enter('steer');
      case 'send_later':
        return this.#enter('after');
      case 'leave':
        return empty ? { type: 'end' } : null;
      case 'search_history':
        this.#beginSearch();
        return none;
      case 'complete':
        this.#complete();
        return none;
      case 'older':
        return this.#vertical(-1, empty);
      case 'newer':
        return this.#vertical(1, false);
      case 'to_background':
        return null;
      default:
        return { type: plainActs[act] };
    }
  }

  #enter(when: 'steer' | 'after'): InputAction {
    const { text, cursor } = this.#editor;
    if (text[cursor - 1] === '\\' && when === 'steer') {
      this.#set(change(this.#editor, cursor - 1, cursor, '\n'));
      return none;
    }
    const whole = this.text();
    if (whole.trim() === '') return this.#onEmpty();
    this.#history = remember(this.#history, whole);
    this.#editor = { ...emptyEditor, killed: this.#editor.killed };
    this.#completion = null;
    this.#vim?.begin();
    return { type: 'submit', text: whole, when };
  }

  #onEmpty(): InputAction {
    const text = this.#d.onEmptyLine?.() ?? null;
    return text === null ? none : { type: 'submit', text, when: 'steer' };
  }

  #vertical(direction: -1 | 1, empty: boolean): InputAction {
    if (empty && this.#history.at === this.#history.entries.length) return direction < 0 ? { type: 'take-back' } : none;
    const moved = moveLine(this.#editor, direction);
    if (moved) {
      this.#editor = moved;
      return none;
    }
    const found = browse(this.#history, direction, this.#editor);
    if (found) this.#show(found);
    return none;
  }

  /** Shows the newest past input and keeps the draft. */
  older(): void {
    const found = browse(this.#history, -1, this.#editor);
    if (found) this.#show(found);
  }

  #show(found: Browsed): void {
    this.#history = found.history;
    this.#replaceBy(found.editor);
  }

  #takeSearch(key: Key): boolean {
    const search = this.#search;
    if (!search) return false;
    const again = this.#keyMap.actionsOf(key).includes('search_history');
    switch (again ? 'up' : keyName(key)) {
      case 'up':
        this.#find(search.query, search.at);
        return true;
      case 'backspace':
      case 'ctrl-h':
        this.#find([...search.query].slice(0, -1).join(''), this.#history.entries.length);
        return true;
      case 'escape':
      case 'ctrl-c':
      case 'ctrl-g':
        this.#editor = search.before;
        this.#search = null;
        return true;
      case 'enter':
      case 'tab':
        this.#endSearch(search.before);
        return true;
      default:
        this.#endSearch(search.before);
        return false;
    }
  }

  /** Keeps what was found. Undo brings the draft back. */
  #endSearch(draft: Editor): void {
    this.#search = null;
    if (this.#editor !== draft) this.#replaceBy(exchanged(draft, this.text()));
  }

  #find(query: string, from: number): void {
    if (!this.#search) return;
    const at = query === '' ? -1 : findEntry(this.#history, query, from);
    this.#search = { ...this.#search, query, at: at < 0 ? this.#search.at : at };
    if (at >= 0) this.#replace(this.#history.entries[at] ?? '');
  }

  #takeCompletion(key: Key): boolean {
    const completion = this.#completion;
    if (!completion) return false;
    const last = completion.candidates.length - 1;
    switch (keyName(key)) {
      case 'up':
      case 'ctrl-p':
        this.#selected = this.#selected === 0 ? last : this.#selected - 1;
        return true;
      case 'down':
      case 'ctrl-n':
        this.#selected = this.#selected === last ? 0 : this.#selected + 1;
        return true;
      case 'escape':
        this.#completion = null;
        return true;
      case 'tab':
        this.#accept(completion);
        return true;
      case 'enter':
        return this.#acceptOnEnter(completion);
      default:
        return false;
    }
  }

  /** Enter completes a path, unless it is there already; a command it completes and, where no argument is wanted,
   * sends. */
  #acceptOnEnter(completion: Completion): boolean {
    const candidate = completion.candidates[this.#selected];
    const typed = this.#editor.text.slice(completion.from, completion.to);
    if (completion.kind === 'command') {
      const exact = completion.candidates.some((item) => item.exact.includes(typed));
      if (candidate && (!exact || this.#selected > 0))
        this.#editor = applyCandidate(this.#editor, completion, this.#selected);
      this.#completion = null;
      return candidate !== undefined && !exact && candidate.insert.endsWith(' ');
    }
    const complete = candidate?.insert.trimEnd() === typed.trimEnd();
    this.#accept(completion);
    if (complete && candidate?.insert.startsWith('@"') && candidate.insert.endsWith('/')) this.#closeQuotes();
    return !complete;
  }

  /** A folder's quotes stay open until it is sent. */
  #closeQuotes(): void {
    const { cursor } = this.#editor;
    this.#editor = change(this.#editor, cursor, cursor, '"');
  }

  #accept(completion: Completion): void {
    this.#editor = applyCandidate(this.#editor, completion, this.#selected);
    this.#completion = null;
  }

  #complete(): void {
    this.#selected = 0;
    this.#completion = completeCommand(this.#editor, this.#d.commands());
    if (this.#completion) return;
    const place = fileQuery(this.#editor, this.#files);
    if (!place) return;
    if (this.#files === null) {
      this.#d.wantFiles();
      return;
    }
    const files = this.#files;
    const found =
      place.query === ''
        ? files.slice(0, 50)
        : this.#d
            .rank(place.query, files)
            .slice(0, 50)
            .map((index) => files[index] ?? '');
    this.#completion = completeFile(place, found, this.#agents);
  }
}

/** Past inputs and the present place among them. What is changed on the way stays until something is sent. Pure. */
interface InputHistory {
  /** Oldest first. */
  readonly entries: readonly string[];
  /** Index of what is shown; `entries.length` is the draft. */
  readonly at: number;
  /** The draft, and entries that were changed, by index. */
  readonly changed: ReadonlyMap<number, Editor>;
}

interface Browsed {
  readonly history: InputHistory;
  readonly editor: Editor;
}

const mostEntries = 5_000;

export function createHistory(entries: readonly string[]): InputHistory {
  const kept = entries.filter((entry, index) => entry !== '' && entry !== entries[index - 1]).slice(-mostEntries);
  return { entries: kept, at: kept.length, changed: new Map() };
}

export function remember(history: InputHistory, text: string): InputHistory {
  return createHistory([...history.entries, text]);
}

/** Returns the entry before or after the shown one, and keeps `shown` as it is now; null at either end. */
export function browse(history: InputHistory, direction: -1 | 1, shown: Editor): Browsed | null {
  const at = history.at + direction;
  if (at < 0 || at > history.entries.length) return null;
  const isChanged = editorText(shown) !== (history.entries[history.at] ?? '');
  const changed = isChanged ? new Map([...history.changed, [history.at, shown]]) : history.changed;
  return { history: { ...history, at, changed }, editor: changed.get(at) ?? editorWith(history.entries[at] ?? '') };
}

/** Returns the index of the newest entry before `from` that contains `query`; -1 if there is none. Case is ignored if
 * `query` has no capitals. */
export function findEntry(history: InputHistory, query: string, from: number): number {
  const exact = query !== query.toLowerCase();
  for (let i = Math.min(from, history.entries.length) - 1; i >= 0; i--) {
    const entry = history.entries[i] ?? '';
    if ((exact ? entry : entry.toLowerCase()).includes(query)) return i;
  }
  return -1;
}

/** The first key of each action, in rows below the input; none of them is chosen. */
function keyMenu(map: KeyMap): MenuState {
  const rows = keyRows(map, { edits: false }).filter(({ keys }) => keys !== '');
  return {
    rows: rows.map(({ keys, about }) => ({ label: keys.split(', ')[0] ?? '', detail: about })),
    selected: -1,
    more: 0,
    elsewhere: '/help keys',
  };
}
