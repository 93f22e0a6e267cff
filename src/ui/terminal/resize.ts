import {
  createTerminalModel,
  type ModelLine,
  type Reflow,
  type ScreenSize,
  type Standing,
  type TerminalModel,
} from './reflow.js';
import { clusters, withoutSgr } from './rows.js';
import type { TerminalAnswer } from './streams.js';

/** The place to continue from after a new size: so many rows above the cursor (below it if negative), with that line
 * (numbered as in `Standing`), of which so many columns are above already. */
export interface CursorPlace {
  readonly up: number;
  readonly line: number;
  readonly offset: number;
}

/** Returns the sequence that moves to the first column of that place. */
export function wayTo({ up }: CursorPlace): string {
  return `\r${up > 0 ? `\x1b[${up}A` : ''}${up < 0 ? `\x1b[${-up}B` : ''}`;
}

/** The output since the terminal last answered. A terminal changes its size before the program hears of it, so output
 * may meet another size than it was made for. Each answer shows the size, from which the present rows can be
 * calculated. */
export interface SentOutput {
  wrote(text: string): void;
  /** Notes that a question follows the output; the terminal will then be at `standing`. `atOnce`: question and output
   * are written together. */
  asked(standing: Standing, atOnce: boolean): void;
  /** Returns whether all output so far met the size it was made for. */
  answered(answer: TerminalAnswer): boolean;
  /** Returns the place to continue from once all questions are answered; null if nothing has moved. The next output
   * starts there. */
  place(now: Standing): CursorPlace | null;
  /** Forgets the output so far. `row`: the row of the screen that the cursor is in, if that is known. */
  restart(now: Standing, row?: number | null): void;
  /** The number of characters without an answer. */
  readonly waiting: number;
}

export function createSentOutput(start: Standing, reflow: () => readonly Reflow[]): SentOutput {
  return new Account(start, reflow);
}

/** Returns the place to continue from if the terminal read all output before it got the new size. */
export function placeAfter(now: Standing, size: ScreenSize, reflow: Reflow): CursorPlace {
  const model = createTerminalModel(now, null, reflow);
  model.resize(size);
  const lines = model.lines();
  const rows = lines.reduce((sum, line) => sum + line.heights.length, 0);
  return locate(model, now.first, now, Math.max(0, rows - size.rows));
}

/** Matches, roughly, scripts with wide characters, and emoji. */
const wide = new RegExp(
  [
    '[\\u1100-\\u115f\\u231a-\\u23f3\\u25fd\\u25fe\\u2614-\\u2713\\u2715-\\u2717\\u2719-\\u276e\\u2770-\\u27bf]',
    '[\\u2b1b-\\u2b55\\u2e80-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f\\uff00-\\uff60]',
    '[\\uffe0-\\uffe6]|[\\ud83c-\\ud83e]|[\\ud840-\\ud8bf]',
  ].join('|'),
);
/** The most lines above its expected place in which the cursor of tmux is searched. */
const mostAstray = 12;

/** The terminal at the last answer, and the number of its first line. */
interface Confirmed {
  readonly first: number;
  readonly model: (reflow: Reflow, astray: number) => TerminalModel;
}

/** Output before an answer; `atOnce` if it was written together with the question. */
interface Step {
  readonly text: string;
  readonly atOnce: boolean;
  readonly answer: TerminalAnswer;
}

class Account implements SentOutput {
  readonly #reflow: () => readonly Reflow[];
  #confirmed: Confirmed;
  #asked: { readonly text: string; readonly standing: Standing; readonly atOnce: boolean; readonly stale: boolean }[] =
    [];
  #since = '';
  #waiting = 0;
  /** True if a wide character was ever written. */
  #wide = false;
  /** All output since an answer that reported an unexpected size. */
  #steps: readonly Step[] = [];

  constructor(start: Standing, reflow: () => readonly Reflow[]) {
    this.#confirmed = confirmedAt(start, null);
    this.#reflow = reflow;
  }

  get waiting(): number {
    return this.#waiting;
  }

  wrote(text: string): void {
    this.#since += text;
    this.#wide ||= wide.test(text);
    this.#waiting += text.length;
  }

  asked(standing: Standing, atOnce: boolean): void {
    this.#asked.push({ text: this.#since, standing, atOnce, stale: false });
    this.#since = '';
  }

  answered(answer: TerminalAnswer): boolean {
    const asked = this.#asked.shift();
    if (!asked || asked.stale) return true;
    this.#waiting -= asked.text.length;
    if (this.#steps.length === 0 && same(answer.size, asked.standing.size)) {
      this.#confirmed = confirmedAt(asked.standing, answer.row);
      return true;
    }
    this.#steps = [...this.#steps, { text: asked.text, atOnce: asked.atOnce, answer }];
    return false;
  }

  place(now: Standing): CursorPlace | null {
    const answer = this.#steps.at(-1)?.answer;
    if (!answer) return null;
    const model = this.#likeliest(answer);
    if (this.#isSure(model)) model.moveTo(answer.row);
    const { first } = this.#confirmed;
    this.#steps = [];
    this.#confirmed = { first, model: (kind, astray) => model.copy(answer.row, kind, astray) };
    return locate(model, first, now, model.cursor.row - answer.row);
  }

  /** Calculates the present screen, as far as the answer shows it. Without wide characters the cursor of tmux stays
   * right. */
  #likeliest(answer: TerminalAnswer): TerminalModel {
    const kinds = this.#reflow().flatMap((kind) =>
      Array.from({ length: kind === 'all as tmux' && this.#wide ? mostAstray + 1 : 1 }, (_, astray) => ({
        kind,
        astray,
      })),
    );
    const models: TerminalModel[] = [];
    for (const { kind, astray } of kinds) {
      const model = replay(this.#confirmed.model(kind, astray), this.#steps);
      if (model.cursor.column === answer.column && (model.rowIs === 'unknown' || model.screenRow === answer.row))
        return model;
      models.push(model);
    }
    const [first = replay(this.#confirmed.model('all', 0), this.#steps)] = models;
    return (this.#isSure(first) ? undefined : models.find(({ cursor }) => cursor.column === answer.column)) ?? first;
  }

  #isSure(model: TerminalModel): boolean {
    return this.#wide && model.rowIs === 'sure';
  }

  restart(now: Standing, row: number | null = null): void {
    this.#asked = this.#asked.map((asked) => ({ ...asked, text: '', stale: true }));
    this.#since = '';
    this.#waiting = 0;
    this.#steps = [];
    this.#confirmed = confirmedAt(now, row);
  }
}

function confirmedAt(standing: Standing, row: number | null): Confirmed {
  let model: TerminalModel | null = null;
  return {
    first: standing.first,
    model: (reflow, astray) => {
      model ??= createTerminalModel(standing, row, reflow);
      return model.copy(model.screenRow, reflow, astray);
    },
  };
}

function replay(model: TerminalModel, steps: readonly Step[]): TerminalModel {
  for (const { text, atOnce, answer } of steps) {
    const early = atOnce || same(answer.size, model.size);
    if (!early) model.write(text);
    if (!same(answer.size, model.size)) model.resize(answer.size);
    if (early) model.write(text);
  }
  return model;
}

function same(left: ScreenSize, right: ScreenSize): boolean {
  return left.columns === right.columns && left.rows === right.rows;
}

/** Returns the first line that is not as expected, else the first live line. If that is above the screen, it is the
 * line of the first row of the screen (`top`). `first` is the number of the model's first line. */
function locate(model: TerminalModel, first: number, now: Standing, top: number): CursorPlace {
  const seen = model.lines();
  const wanted = wantedLines(now);
  const right = firstWrong(seen, first, wanted, now.first);
  const line = Math.min(right, now.first + now.printed.length - (now.open ? 1 : 0));
  const row = seen[line - first]?.row ?? top;
  const up = model.cursor.row - Math.max(top, row);
  const index =
    row >= top
      ? -1
      : Math.min(
          right - first,
          seen.findLastIndex((one) => one.row <= top),
        );
  const cut = seen[index];
  if (!cut) return { up, line, offset: 0 };
  const offset = cut.heights.slice(0, top - cut.row).reduce((sum, width) => sum + width, 0);
  const above = wanted[first + index - now.first]?.startsWith(startOf(cut.text, offset)) === true;
  return first + index < right || (first + index === right && above)
    ? { up, line: first + index, offset }
    : { up, line, offset: 0 };
}

/** Returns the texts of the expected lines. */
function wantedLines({ printed, rows, open }: Standing): readonly string[] {
  const lines = printed.map(withoutSgr);
  for (const [index, { text, soft }] of rows.entries()) {
    const joins = index === 0 ? open : soft;
    if (joins && lines.length > 0) lines.push((lines.pop() ?? '') + withoutSgr(text));
    else lines.push(withoutSgr(text));
  }
  return lines;
}

/** Returns the number of the first line that differs from the expected one. */
function firstWrong(
  seen: readonly ModelLine[],
  firstSeen: number,
  wanted: readonly string[],
  firstWanted: number,
): number {
  let number = Math.max(firstSeen, firstWanted);
  while (
    number < firstWanted + wanted.length &&
    seen[number - firstSeen]?.text.trimEnd() === wanted[number - firstWanted]?.trimEnd()
  )
    number++;
  return number;
}

function startOf(text: string, columns: number): string {
  let width = 0;
  let end = 0;
  for (const { text: cluster, width: more } of clusters(text)) {
    if (width + more > columns) break;
    width += more;
    end += cluster.length;
  }
  return text.slice(0, end);
}
