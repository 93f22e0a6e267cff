import { isRecord } from '../../core/json.js';
import type { Answer, Question } from '../../core/policy.js';
import { decisionText } from './decision-text.js';
import { editorText, emptyEditor, paste, type, type Editor } from '../input/editor.js';
import { editKey } from '../input/editor-keys.js';
import type { InputEvent } from '../input/key-decoder.js';
import { keyName } from '../input/key-tables.js';
import type { Overlay, Panel } from './panel.js';
import { wrapLine } from '../rows.js';
import type { ScreenSize } from '../screen.js';

const choices = ['Yes, once', 'Yes, and this exact call again in this session', 'No', 'No, and tell the model why'] as const;
const no = 2;
const letters: Readonly<Record<string, number>> = { y: 0, 1: 0, a: 1, 2: 1, n: 2, 3: 2, t: 3, 4: 3 };
/** Rows of the terminal that are neither body nor choices: two kept free, gap, status, title, what is above and below, hint. */
const rowsAround = 8;

/** The question of a call that waits for a yes. Default is no; what is not on the screen yet cannot be agreed to, and no single letter
 *  agrees to a dangerous call. */
export function createApproval(question: Question, onAnswer: (answer: Answer) => void, onChange: () => void): Overlay {
  return new Approval(question, onAnswer, onChange);
}

class Approval implements Overlay {
  readonly #question: Question;
  readonly #onAnswer: (answer: Answer) => void;
  readonly #onChange: () => void;
  readonly #lines: readonly string[];
  #selected = no;
  #top = 0;
  #height = 1;
  #bodyRows: readonly string[] = [];
  #seen = 0;
  #message: Editor | null = null;
  #hint = '';

  constructor(question: Question, onAnswer: (answer: Answer) => void, onChange: () => void) {
    this.#question = question;
    this.#onAnswer = onAnswer;
    this.#onChange = onChange;
    this.#lines = questionLines(question);
  }

  /** While a reason is written every key is for that. */
  get asks(): boolean { return this.#message === null; }

  panel(size: ScreenSize, waits: boolean): Panel {
    const { verdict } = this.#question;
    const columns = Math.max(10, size.columns - 4);
    this.#bodyRows = this.#lines.flatMap((line) => wrapLine(line, columns).map((row) => row.text));
    const room = Math.max(2, size.rows - rowsAround - choices.length);
    const reasons = rowsOf(verdict.reasons, columns, Math.max(1, Math.floor(room / 2)));
    const targets = rowsOf(verdict.targets ?? [], columns, Math.max(0, Math.min(6, Math.floor((room - reasons.length) / 3))));
    this.#height = Math.max(1, room - reasons.length - targets.length);
    this.#top = Math.max(0, Math.min(this.#top, this.#bodyRows.length - this.#height));
    const end = Math.min(this.#bodyRows.length, this.#top + this.#height);
    this.#seen = Math.max(this.#seen, end);
    return {
      type: 'approval', title: decisionText(this.#question.call.tool.name, { lines: false }), risk: verdict.risk, body: this.#bodyRows.slice(this.#top, end),
      above: this.#top, below: this.#bodyRows.length - end, reasons, targets, choices, selected: this.#selected,
      message: this.#message ? decisionText(editorText(this.#message), { lines: false }) : null,
      hint: this.#hint === '' ? this.#keys() : this.#hint, waits,
    };
  }

  take(event: InputEvent): boolean {
    this.#hint = '';
    const taken = this.#taken(event);
    this.#onChange();
    return taken;
  }

  #taken(event: InputEvent): boolean {
    if (this.#message) { this.#takeMessage(this.#message, event); return true; }
    if (event.type === 'key') return this.#takeKey(keyName(event));
    return event.type === 'text' && event.text.length === 1 && this.#takeLetter(event.text);
  }

  #isDangerous(): boolean { return this.#question.verdict.risk === 'dangerous'; }

  #keys(): string {
    return `Arrows and Enter choose${this.#isDangerous() ? '' : ', or y a n t'}; Esc says no`;
  }

  #takeKey(name: string): boolean {
    switch (name) {
      case 'up': this.#selected = Math.max(0, this.#selected - 1); break;
      case 'down': case 'tab': this.#selected = Math.min(choices.length - 1, this.#selected + 1); break;
      case 'pagedown': case 'ctrl-v': this.#top += this.#height; break;
      case 'pageup': case 'alt-v': this.#top -= this.#height; break;
      case 'escape': case 'ctrl-c': case 'ctrl-d': this.#onAnswer({ answer: 'deny' }); break;
      case 'enter': this.#choose(this.#selected); break;
      default: return false;
    }
    return true;
  }

  /** A dangerous call has no one-letter answer: the letter is the beginning of something else. */
  #takeLetter(letter: string): boolean {
    const index = letters[letter.toLowerCase()];
    if (letter === ' ' && this.#top + this.#height < this.#bodyRows.length) this.#top += this.#height;
    else if (index === undefined) return false;
    else if (this.#isDangerous()) { this.#hint = 'Dangerous: choose with the arrows and Enter.'; return false; }
    else this.#choose(index);
    return true;
  }

  #choose(index: number): void {
    this.#selected = index;
    if (index < no && this.#seen < this.#bodyRows.length) {
      this.#top += this.#height;
      this.#hint = this.#top + this.#height < this.#bodyRows.length ? 'There is more to see: page down first.' : 'This is the rest of it. Choose again.';
      return;
    }
    if (index === 0) this.#onAnswer({ answer: 'once' });
    else if (index === 1) this.#onAnswer({ answer: 'session' });
    else if (index === no) this.#onAnswer({ answer: 'deny' });
    else this.#message = emptyEditor;
  }

  #takeMessage(message: Editor, event: InputEvent): void {
    if (event.type === 'text') { this.#message = type(message, event.text); return; }
    if (event.type === 'paste') { this.#message = paste(message, event.text); return; }
    const name = keyName(event);
    if (name === 'escape' || name === 'ctrl-c') { this.#message = null; return; }
    if (name !== 'enter') { this.#message = editKey(message, event) ?? message; return; }
    const text = editorText(message).trim();
    this.#onAnswer(text === '' ? { answer: 'deny' } : { answer: 'deny', message: text });
  }
}

/** Texts as rows, at most `most` of them; the last one then says how many are left out. */
function rowsOf(texts: readonly string[], columns: number, most: number): readonly string[] {
  const rows = texts.flatMap((text) => wrapLine(decisionText(text, { lines: false }), columns).map((row) => row.text));
  return rows.length <= most ? rows : [...rows.slice(0, Math.max(0, most - 1)), ...(most > 0 ? [`and ${rows.length - most + 1} more`] : [])];
}

/** All that the call would do, escaped, nothing left out: each argument under its name, an edit as what goes and what comes. */
export function questionLines(question: Question): readonly string[] {
  const { args } = question.call;
  const names = Object.keys(args);
  const single = names.length === 1 ? args[names[0] ?? ''] : undefined;
  if (typeof single === 'string') return decisionText(single, { lines: true }).split('\n');
  if (typeof args.old_string === 'string' && typeof args.new_string === 'string') return editLines(args);
  return names.flatMap((name) => argumentLines(name, args[name]));
}

function argumentLines(name: string, value: unknown): string[] {
  const text = typeof value === 'string' ? decisionText(value, { lines: true }) : decisionText(JSON.stringify(value) ?? 'undefined', { lines: false });
  const key = decisionText(name, { lines: false });
  const lines = text.split('\n');
  return lines.length === 1 && !isRecord(value) ? [`${key}: ${text}`] : [`${key}:`, ...lines];
}

function editLines(args: Readonly<Record<string, unknown>>): string[] {
  const { old_string: oldString, new_string: newString, ...rest } = args;
  const lines = (value: unknown, sign: string): string[] => decisionText(String(value), { lines: true }).split('\n').map((line) => sign + line);
  return [...Object.keys(rest).flatMap((name) => argumentLines(name, rest[name])), ...lines(oldString, '- '), ...lines(newString, '+ ')];
}
