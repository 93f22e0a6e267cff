import { change, type Editor, moveTo, redo, undo } from '../editor/editor.js';
import {
  createInsertion,
  type Insertion,
  joinLines,
  linesBetween,
  mapRegion,
  type Operator,
  otherCase,
  parseVim,
  put,
  type Region,
  regionOf,
  type Register,
  remove,
  replaceCharacters,
  rest,
  turnCase,
  type VimCommand,
  yank,
} from './edits.js';
import {
  type Cells,
  cellsOf,
  endOfLine,
  firstOfLine,
  motions,
  offsetOf,
  opposite,
  placeOf,
  resting,
  startOfLine,
  textObject,
} from './motions.js';

export type VimMode = 'insert' | 'normal' | 'visual' | 'visual line';

/** The result of a key. `left`: the part that the input must handle; `escape` is an Esc that had nothing to end. */
export interface VimStep {
  readonly editor: Editor;
  readonly left: 'nothing' | 'escape' | 'older' | 'newer' | 'search';
}

/** Vim's modes over the editor. In insert mode keys are the input's own, and Esc is `leaveInsert`. */
export interface Vim {
  mode(): VimMode;
  /** A key outside insert mode: a character, or its name. */
  press(editor: Editor, key: string): VimStep;
  leaveInsert(editor: Editor): Editor;
  /** The cursor where this mode lets it stand. */
  rest(editor: Editor): Editor;
  /** A new input begins, in insert mode. */
  begin(): void;
  /** Returns the selection as offsets. */
  selection(editor: Editor): { readonly from: number; readonly to: number } | null;
}

export function createVim(): Vim {
  return new Modes();
}

class Modes implements Vim {
  #mode: VimMode = 'insert';
  #typed: readonly string[] = [];
  #register: Register = { text: '', lines: false };
  #sought: { readonly name: string; readonly char: string } | null = null;
  /** The offset at which a selection began. */
  #anchor = 0;
  #insertion: Insertion | null = null;
  /** The last change, for `.`: its keys and what was typed after them. */
  #last: { readonly keys: readonly string[]; readonly inserted: string } | null = null;

  mode(): VimMode {
    return this.#mode;
  }
  rest(editor: Editor): Editor {
    return this.#mode === 'insert' ? editor : rest(editor);
  }

  begin(): void {
    this.#mode = 'insert';
    this.#insertion = null;
    this.#typed = [];
  }

  selection(editor: Editor): { readonly from: number; readonly to: number } | null {
    if (!this.#isVisual()) return null;
    const cells = cellsOf(editor.text);
    const { from, to } = this.#selected(cells, placeOf(cells, editor.cursor));
    return { from: offsetOf(cells, from), to: offsetOf(cells, to) };
  }

  leaveInsert(editor: Editor): Editor {
    this.#mode = 'normal';
    const left = this.#insertion?.end(editor);
    this.#insertion = null;
    if (left && this.#last) this.#last = { ...this.#last, inserted: left.inserted };
    const done = left?.editor ?? editor;
    const cells = cellsOf(done.text);
    const at = placeOf(cells, done.cursor);
    return moveTo(done, offsetOf(cells, Math.max(startOfLine(cells, at), at - 1)));
  }

  press(editor: Editor, key: string): VimStep {
    if (key === 'escape') return this.#escape(editor);
    this.#typed = [...this.#typed, key];
    const command = parseVim(this.#typed, this.#isVisual());
    if (command === 'more') return { editor, left: 'nothing' };
    const keys = this.#typed;
    this.#typed = [];
    return command === 'none' ? { editor, left: 'nothing' } : this.#run(this.rest(editor), command, keys);
  }

  #isVisual(): boolean {
    return this.#mode === 'visual' || this.#mode === 'visual line';
  }

  #escape(editor: Editor): VimStep {
    const idle = this.#typed.length === 0 && !this.#isVisual();
    this.#typed = [];
    this.#mode = 'normal';
    return { editor: rest(editor), left: idle ? 'escape' : 'nothing' };
  }

  #run(editor: Editor, given: VimCommand, keys: readonly string[]): VimStep {
    const cells = cellsOf(editor.text);
    const at = placeOf(cells, editor.cursor);
    const command = this.#resolved(given);
    if (this.#isVisual()) return { editor: this.#visual(editor, cells, at, command), left: 'nothing' };
    const target = this.#target(cells, at, command, command !== given);
    if (command.operator !== null) {
      const region = regionOf(cells, at, command, target);
      const done = region ? this.#operate(editor, cells, region, command.operator, keys) : editor;
      // Copying whole lines moves the cursor only where the motion went up.
      const stays = command.operator === 'y' && region?.lines === true;
      return { editor: stays ? moveTo(done, offsetOf(cells, Math.min(at, target ?? at))) : done, left: 'nothing' };
    }
    if (target !== undefined) return this.#moved(editor, cells, target, command);
    return command.name === '/'
      ? { editor, left: 'search' }
      : { editor: this.#edit(editor, cells, at, command, keys), left: 'nothing' };
  }

  #moved(editor: Editor, cells: Cells, target: number | null, { name }: VimCommand): VimStep {
    if (target !== null) return { editor: moveTo(editor, offsetOf(cells, resting(cells, target))), left: 'nothing' };
    if (name === 'k' || name === 'up') return { editor, left: 'older' };
    return { editor, left: name === 'j' || name === 'down' ? 'newer' : 'nothing' };
  }

  /** `;` and `,` as the search that they repeat. */
  #resolved(command: VimCommand): VimCommand {
    const { name, sought } = command;
    if (opposite[name]) this.#sought = { name, char: sought };
    if (!this.#sought || (name !== ';' && name !== ',')) return command;
    return {
      ...command,
      name: name === ';' ? this.#sought.name : (opposite[this.#sought.name] ?? ''),
      sought: this.#sought.char,
    };
  }

  /** Returns the target of a motion; null if it cannot move, undefined if the command is no motion. A repeated `t`
   * beside its character continues to the next one. */
  #target(cells: Cells, at: number, { name, count, sought }: VimCommand, repeated: boolean): number | null | undefined {
    const motion = motions[name];
    if (!motion) return name === ';' || name === ',' ? null : undefined;
    const found = motion.go({ cells, at, count, sought });
    return repeated && found === at ? motion.go({ cells, at, count: (count ?? 1) + 1, sought }) : found;
  }

  #operate(editor: Editor, cells: Cells, region: Region, operator: Operator, keys: readonly string[]): Editor {
    if (region.from === region.to && !region.lines && operator !== 'c') return editor;
    const taken = yank(editor, cells, region);
    this.#register = taken.register;
    if (operator === 'y') return moveTo(taken.editor, offsetOf(cells, region.from));
    this.#last = { keys, inserted: '' };
    if (operator === 'd') return rest(remove(taken.editor, cells, region));
    const left =
      region.from === region.to
        ? moveTo(taken.editor, offsetOf(cells, region.from))
        : remove(taken.editor, cells, { ...region, lines: false });
    return this.#insert(editor, left, keys, 1);
  }

  /** Goes to insert mode. What was changed up to there and what will be typed are one step of undo. */
  #insert(before: Editor, editor: Editor, keys: readonly string[], times: number): Editor {
    this.#mode = 'insert';
    this.#last = { keys, inserted: '' };
    this.#insertion = createInsertion(before, editor, times);
    return editor;
  }

  #edit(
    editor: Editor,
    cells: Cells,
    at: number,
    { name, count, sought }: VimCommand,
    keys: readonly string[],
  ): Editor {
    const times = count ?? 1;
    const insertAt = (place: number): Editor =>
      this.#insert(editor, moveTo(editor, offsetOf(cells, place)), keys, times);
    const changed = (next: Editor): Editor => {
      this.#last = { keys, inserted: '' };
      return next;
    };
    switch (name) {
      case 'i':
      case 'insert':
        return insertAt(at);
      case 'I':
        return insertAt(firstOfLine(cells, at));
      case 'a':
        return insertAt(Math.min(endOfLine(cells, at), at + 1));
      case 'A':
        return insertAt(endOfLine(cells, at));
      case 'o':
        return this.#openLine(editor, offsetOf(cells, endOfLine(cells, at)), keys, 1);
      case 'O':
        return this.#openLine(editor, offsetOf(cells, startOfLine(cells, at)), keys, 0);
      case 'p':
      case 'P':
        return changed(rest(put(editor, this.#heldBy(editor), name === 'p' ? 'after' : 'before', times)));
      case 'r':
        return at + times > endOfLine(cells, at)
          ? editor
          : changed(replaceCharacters(editor, cells, { from: at, to: at + times }, sought));
      case '~':
        return changed(turnCase(editor, cells, { from: at, to: Math.min(endOfLine(cells, at), at + times) }));
      case 'J':
        return changed(rest(joinLines(editor, times)));
      case 'u':
        return rest(repeat(editor, undo, times));
      case 'ctrl-r':
        return rest(repeat(editor, redo, times));
      case 'v':
      case 'V':
        this.#select(editor.cursor, name);
        return editor;
      case '.':
        return this.#again(editor, count);
      default:
        return editor;
    }
  }

  #openLine(editor: Editor, at: number, keys: readonly string[], behind: 0 | 1): Editor {
    return this.#insert(editor, moveTo(change(editor, at, at, '\n'), at + behind), keys, 1);
  }

  /** Returns the register, or the text that readline's keys cut last. */
  #heldBy(editor: Editor): Register {
    return this.#register.text === editor.killed ? this.#register : { text: editor.killed, lines: false };
  }

  #again(editor: Editor, count: number | null): Editor {
    const last = this.#last;
    const command = last ? parseVim(last.keys, false) : 'none';
    if (!last || typeof command === 'string') return editor;
    const made = this.#run(editor, { ...command, count: count ?? command.count }, last.keys).editor;
    this.#last = last;
    if (this.mode() !== 'insert') return made;
    return this.leaveInsert(change(made, made.cursor, made.cursor, last.inserted));
  }

  #select(anchor: number, key: string): void {
    this.#mode = key === 'v' ? 'visual' : 'visual line';
    this.#anchor = anchor;
  }

  #selected(cells: Cells, at: number): Region {
    const anchor = placeOf(cells, this.#anchor);
    if (this.#mode === 'visual line') return linesBetween(cells, anchor, at);
    return { from: Math.min(anchor, at), to: Math.min(cells.length, Math.max(anchor, at) + 1), lines: false };
  }

  #visual(editor: Editor, cells: Cells, at: number, command: VimCommand): Editor {
    const target = this.#target(cells, at, command, false);
    if (target !== undefined) return target === null ? editor : moveTo(editor, offsetOf(cells, resting(cells, target)));
    if (command.name === 'object') return this.#selectObject(editor, cells, at, command);
    if (command.name === 'v' || command.name === 'V') {
      const same = (this.#mode === 'visual') === (command.name === 'v');
      if (same) this.#mode = 'normal';
      else this.#select(this.#anchor, command.name);
      return editor;
    }
    if (command.name === 'o') {
      const anchor = this.#anchor;
      this.#anchor = editor.cursor;
      return moveTo(editor, anchor);
    }
    return this.#onSelection(editor, cells, this.#selected(cells, at), command);
  }

  #selectObject(editor: Editor, cells: Cells, at: number, { sought, around, count }: VimCommand): Editor {
    const found = textObject(cells, at, sought, around, count ?? 1);
    if (!found || found.from === found.to) return editor;
    this.#anchor = offsetOf(cells, found.from);
    return moveTo(editor, offsetOf(cells, found.to - 1));
  }

  #onSelection(editor: Editor, cells: Cells, region: Region, { name, sought, count }: VimCommand): Editor {
    const start = moveTo(editor, offsetOf(cells, region.from));
    const first = region.lines && editor.cursor >= this.#anchor ? start.cursor : Math.min(this.#anchor, editor.cursor);
    const ended = (next: Editor): Editor => {
      this.#mode = 'normal';
      return rest(next);
    };
    const mapped = (make: (char: string) => string): Editor =>
      ended(moveTo(mapRegion(editor, cells, region, make), first));
    const whole = /^[DXCSYR]$/.test(name)
      ? linesBetween(cells, region.from, Math.max(region.from, region.to - 1))
      : region;
    switch (name) {
      case 'd':
      case 'x':
      case 'delete':
      case 'D':
      case 'X':
        return ended(this.#operate(start, cells, whole, 'd', []));
      case 'y':
      case 'Y':
        return ended(moveTo(this.#operate(start, cells, whole, 'y', []), first));
      case 'c':
      case 's':
      case 'C':
      case 'S':
      case 'R':
        this.#mode = 'normal';
        return this.#operate(start, cells, whole, 'c', []);
      case '~':
        return mapped(otherCase);
      case 'u':
        return mapped((char) => char.toLowerCase());
      case 'U':
        return mapped((char) => char.toUpperCase());
      case 'r':
        return mapped(() => sought);
      case 'J':
        return ended(
          joinLines(
            start,
            Math.max(2, cells.slice(region.from, region.to).filter((cell) => cell.kind === 'break').length + 1),
          ),
        );
      case 'p':
      case 'P':
        return ended(this.#putOver(start, cells, region, count ?? 1));
      default:
        return editor;
    }
  }

  #putOver(editor: Editor, cells: Cells, region: Region, times: number): Editor {
    const held = this.#heldBy(editor);
    const taken = yank(editor, cells, region);
    this.#register = taken.register;
    const text = region.lines || !held.lines ? held.text : `\n${held.text}\n`;
    return change(taken.editor, offsetOf(cells, region.from), offsetOf(cells, region.to), text.repeat(times));
  }
}

function repeat(editor: Editor, step: (editor: Editor) => Editor, times: number): Editor {
  let result = editor;
  for (let left = times; left > 0; left--) result = step(result);
  return result;
}
