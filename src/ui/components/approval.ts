import { isRecord } from '../../core/json.js';
import type { Answer, Question } from '../../core/policy.js';
import { type InputEvent, keyName } from '../../terminal/keyboard.js';
import { wrapLine, wrapWords } from '../../terminal/rows.js';
import { decisionText } from '../../terminal/sanitize.js';
import type { ScreenSize } from '../../terminal/writer.js';
import { editKey, type Editor, editorText, emptyEditor, paste, type } from '../editor/editor.js';
import type { BodyRow, Overlay, Panel } from './panel.js';

const choices = [
  'Yes, once',
  'Yes, and this exact call again in this session',
  'No',
  'No, and tell the model why',
] as const;
const no = 2;
const letters: Readonly<Record<string, number>> = { y: 0, 1: 0, a: 1, 2: 1, n: 2, 3: 2, t: 3, 4: 3 };
/** Rows of the terminal that are neither body nor choices: two kept free, gap, status, title, what is above and below,
 * hint. */
const rowsAround = 8;

/** The question of a call that waits for a yes. Default is no; what is not on the screen yet cannot be agreed to, and
 * no single letter agrees to a dangerous call. */
export function createApproval(question: Question, onAnswer: (answer: Answer) => void, onChange: () => void): Overlay {
  return new Approval(question, onAnswer, onChange);
}

class Approval implements Overlay {
  readonly #question: Question;
  readonly #onAnswer: (answer: Answer) => void;
  readonly #onChange: () => void;
  readonly #lines: readonly BodyRow[];
  #selected = no;
  #top = 0;
  #height = 1;
  #bodyRows: readonly BodyRow[] = [];
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
  get asks(): boolean {
    return this.#message === null;
  }

  panel(size: ScreenSize, waits: boolean): Panel {
    const { verdict } = this.#question;
    const columns = Math.max(10, size.columns - 4);
    this.#bodyRows = this.#lines.flatMap(({ text, tone }) =>
      wrapLine(text, columns).map((row) => ({ text: row.text, tone })),
    );
    const room = Math.max(2, size.rows - rowsAround - choices.length);
    const reasons = rowsOf(verdict.reasons, columns, Math.max(1, Math.floor(room / 2)));
    const targets = rowsOf(
      verdict.targets ?? [],
      columns,
      Math.max(0, Math.min(6, Math.floor((room - reasons.length) / 3))),
    );
    this.#height = Math.max(1, room - reasons.length - targets.length);
    this.#top = Math.max(0, Math.min(this.#top, this.#bodyRows.length - this.#height));
    const end = Math.min(this.#bodyRows.length, this.#top + this.#height);
    this.#seen = Math.max(this.#seen, end);
    return {
      type: 'approval',
      title: decisionText(this.#question.call.tool.name, { lines: false }),
      risk: verdict.risk,
      body: this.#bodyRows.slice(this.#top, end),
      above: this.#top,
      below: this.#bodyRows.length - end,
      reasons,
      targets,
      choices,
      selected: this.#selected,
      message: this.#message ? decisionText(editorText(this.#message), { lines: false }) : null,
      hint: this.#hint === '' ? this.#keys() : this.#hint,
      waits,
    };
  }

  take(event: InputEvent): InputEvent | null {
    this.#hint = '';
    const taken = this.#taken(event);
    this.#onChange();
    return taken ? null : event;
  }

  #taken(event: InputEvent): boolean {
    if (this.#message) {
      this.#takeMessage(this.#message, event);
      return true;
    }
    if (event.type === 'key') return this.#takeKey(keyName(event));
    return event.type === 'text' && event.text.length === 1 && this.#takeLetter(event.text);
  }

  #isDangerous(): boolean {
    return this.#question.verdict.risk === 'dangerous';
  }

  #keys(): string {
    return `Arrows and Enter choose${this.#isDangerous() ? '' : ', or y a n t'}; Esc says no`;
  }

  #takeKey(name: string): boolean {
    switch (name) {
      case 'up':
        this.#selected = Math.max(0, this.#selected - 1);
        break;
      case 'down':
      case 'tab':
        this.#selected = Math.min(choices.length - 1, this.#selected + 1);
        break;
      case 'pagedown':
      case 'ctrl-v':
        this.#top += this.#height;
        break;
      case 'pageup':
      case 'alt-v':
        this.#top -= this.#height;
        break;
      case 'escape':
      case 'ctrl-c':
      case 'ctrl-d':
        this.#onAnswer({ answer: 'deny' });
        break;
      case 'enter':
        this.#choose(this.#selected);
        break;
      default:
        return false;
    }
    return true;
  }

  /** A dangerous call has no one-letter answer: the letter is the beginning of something else. */
  #takeLetter(letter: string): boolean {
    const index = letters[letter.toLowerCase()];
    if (letter === ' ' && this.#top + this.#height < this.#bodyRows.length) this.#top += this.#height;
    else if (index === undefined) return false;
    else if (this.#isDangerous()) {
      this.#hint = 'Dangerous: choose with the arrows and Enter.';
      return false;
    } else this.#choose(index);
    return true;
  }

  #choose(index: number): void {
    this.#selected = index;
    if (index < no && this.#seen < this.#bodyRows.length) {
      this.#top += this.#height;
      this.#hint =
        this.#top + this.#height < this.#bodyRows.length
          ? 'There is more to see: page down first.'
          : 'This is the rest of it. Choose again.';
      return;
    }
    if (index === 0) this.#onAnswer({ answer: 'once' });
    else if (index === 1) this.#onAnswer({ answer: 'session' });
    else if (index === no) this.#onAnswer({ answer: 'deny' });
    else this.#message = emptyEditor;
  }

  #takeMessage(message: Editor, event: InputEvent): void {
    if (event.type === 'text') {
      this.#message = type(message, event.text);
      return;
    }
    if (event.type === 'paste') {
      this.#message = paste(message, event.text);
      return;
    }
    const name = keyName(event);
    if (name === 'escape' || name === 'ctrl-c') {
      this.#message = null;
      return;
    }
    if (name !== 'enter') {
      this.#message = editKey(message, event) ?? message;
      return;
    }
    const text = editorText(message).trim();
    this.#onAnswer(text === '' ? { answer: 'deny' } : { answer: 'deny', message: text });
  }
}

/** Texts as rows, at most `most` of them; the last one then says how many are left out. */
function rowsOf(texts: readonly string[], columns: number, most: number): readonly string[] {
  const rows = texts.flatMap((text) => wrapWords(decisionText(text, { lines: false }), columns));
  return rows.length <= most
    ? rows
    : [...rows.slice(0, Math.max(0, most - 1)), ...(most > 0 ? [`and ${rows.length - most + 1} more`] : [])];
}

/** All that the call would do, escaped, nothing left out: each argument under its name, an edit as what goes and what
 * comes. */
export function questionLines(question: Question): readonly BodyRow[] {
  const { args } = question.call;
  const names = Object.keys(args);
  const single = names.length === 1 ? args[names[0] ?? ''] : undefined;
  if (typeof single === 'string') return plainRows(decisionText(single, { lines: true }).split('\n'));
  const { old_string: before, new_string: after, ...rest } = args;
  if (typeof before !== 'string' || typeof after !== 'string')
    return plainRows(names.flatMap((name) => argumentLines(name, args[name])));
  const others = Object.keys(rest).flatMap((name) => argumentLines(name, rest[name]));
  return [...plainRows(others), ...editRows(before, after)];
}

function plainRows(lines: readonly string[]): BodyRow[] {
  return lines.map((text) => ({ text, tone: null }));
}

function argumentLines(name: string, value: unknown): string[] {
  const text =
    typeof value === 'string'
      ? decisionText(value, { lines: true })
      : decisionText(JSON.stringify(value) ?? 'undefined', { lines: false });
  const key = decisionText(name, { lines: false });
  const lines = text.split('\n');
  return lines.length === 1 && !isRecord(value) ? [`${key}: ${text}`] : [`${key}:`, ...lines];
}

/** What goes and what comes; lines that both begin or end with are shown once. */
function editRows(before: string, after: string): BodyRow[] {
  const old = decisionText(before, { lines: true }).split('\n');
  const now = decisionText(after, { lines: true }).split('\n');
  const least = Math.min(old.length, now.length);
  let start = 0;
  while (start < least && old[start] === now[start]) start++;
  let end = 0;
  while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  return [
    ...old.slice(0, start).map((line): BodyRow => ({ text: `  ${line}`, tone: null })),
    ...old.slice(start, old.length - end).map((line): BodyRow => ({ text: `- ${line}`, tone: 'removed' })),
    ...now.slice(start, now.length - end).map((line): BodyRow => ({ text: `+ ${line}`, tone: 'added' })),
    ...old.slice(old.length - end).map((line): BodyRow => ({ text: `  ${line}`, tone: null })),
  ];
}
