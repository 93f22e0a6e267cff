import { smallestOf } from '../../kernel/core/lists.js';
import type { Reflow } from './reflow.js';
import type { Clock, Schedule } from '../../kernel/core/runtime.js';
import type { TerminalAnswer, Answers, InputPort } from './streams.js';

/** An input without the terminal's answers. */
export interface AnsweringInput extends InputPort {
  readonly answers: Answers;
}

/** Asks for the cursor in the bottom right corner, which shows the size, and then back in its place. Source: xterm
 * ctlseqs, DECSC, CUP, DSR 6, DECRC. */
const question = '\x1b7\x1b[9999;9999H\x1b[6n\x1b8\x1b[6n';
/** Asks which terminal it is: by XTVERSION, which many do not answer, and by the secondary device attributes, which
 * identify VTE (GNOME Terminal and others). */
const nameQuestion = '\x1b[>q\x1b[>c';
/** Asks for the colour of the background. Source: xterm ctlseqs, OSC 11. */
const groundQuestion = '\x1b]11;?\x1b\\';
/** Asks for the status of the terminal. Every terminal answers with `CSI 0 n`. Source: xterm ctlseqs, DSR 5. */
const signQuestion = '\x1b[5n';
const sign = '\x1b[0n';
const answerPattern = /\x1b\[(\d{1,5});(\d{1,5})R/;
const namePattern = /\x1bP>\|([^\x1b\x07]{0,100})(?:\x1b\\|\x07)/;
const attributesPattern = /\x1b\[>(\d{0,5})[\d;]{0,20}c/;
const groundPattern = /\x1b\]11;rgba?:([\da-f]{1,4})\/([\da-f]{1,4})\/([\da-f]{1,4})[^\x1b\x07]{0,10}(?:\x1b\\|\x07)/i;
/** Matches a possible beginning of an answer. */
const unfinished = /\x1b(?:\[\d{0,5}(?:;\d{0,5})?|\[>[\d;]{0,25}|P(?:>(?:\|[^\x1b\x07]{0,100}\x1b?)?)?)?$/;

const mostOwed = 8;
const firstPatienceMs = 150;
const patienceMs = 1_000;
const leastQuietMs = 250;
const heldMs = 30;
/** A terminal on this machine answers within a millisecond now and then, however busy it is. */
const quickMs = 50;
const remembered = 8;

export function withAnswers(
  input: InputPort,
  parts: { readonly clock: Clock; readonly schedule: Schedule; readonly reflows: boolean },
): AnsweringInput {
  return new Filter(input, parts);
}

function latin1(chunk: Uint8Array | string): string {
  return typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1');
}

const longestGround = 200;

/** Returns whether text on a colour should be dark or light, by the weight of the three parts for the eye. */
function groundOf(parts: readonly string[]): 'dark' | 'light' {
  const [red = 0, green = 0, blue = 0] = parts.map((hex) => Number.parseInt(hex, 16) / (16 ** hex.length - 1));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 ? 'light' : 'dark';
}

interface GroundQuestion {
  text: string;
  readonly onGround: (ground: 'dark' | 'light') => void;
}

class Filter implements AnsweringInput, Answers {
  readonly #input: InputPort;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  #reflow: readonly Reflow[];
  #listener: ((chunk: Uint8Array | string) => void) | null = null;
  #onAnswer: (answer: TerminalAnswer) => void = () => undefined;
  #onQuiet: (() => void)[] = [];
  /** The times of the questions without an answer. */
  #askedMs: number[] = [];
  /** The times of the questions for a sign of life without an answer. */
  #signsMs: number[] = [];
  #hasSigned = false;
  /** Set while the terminal may still say what its background is; `text` is the end of the input so far. */
  #ground: GroundQuestion | null = null;
  #corner: { readonly columns: number; readonly rows: number } | null = null;
  /** Null until the first answer. */
  #tookMs: number | null = null;
  #lastMs: readonly number[] = [];
  #named: 'unasked' | 'asked' | 'done';
  #held = '';
  #dropHeld: (() => void) | null = null;
  /** Counts how often the program took the terminal. An action that waits for the terminal's release is dropped when it
   * is taken again. */
  #taken = 0;
  #listening = false;

  constructor(
    input: InputPort,
    parts: { readonly clock: Clock; readonly schedule: Schedule; readonly reflows: boolean },
  ) {
    this.#input = input;
    this.#clock = parts.clock;
    this.#schedule = parts.schedule;
    this.#reflow = parts.reflows ? ['all', 'all but the cursor', 'none'] : ['none'];
    // A console that does not wrap again is old, and might print an unknown sequence.
    this.#named = parts.reflows ? 'unasked' : 'done';
    if (input.setRawMode)
      this.setRawMode = (on) => {
        if (on) this.#input.setRawMode?.(true);
        else this.#afterwards(() => input.setRawMode?.(false));
      };
  }

  get answers(): Answers {
    return this;
  }

  on(event: 'data', listener: (chunk: Uint8Array | string) => void): void {
    this.#listener = listener;
    if (!this.#listening) this.#input.on(event, this.#take);
    this.#listening = true;
  }

  off(): void {
    this.#listener = null;
    this.whenQuiet(() => {
      if (this.#listener) return;
      this.#input.off('data', this.#take);
      this.#listening = false;
    });
  }

  setRawMode?: (on: boolean) => unknown;

  resume(): void {
    this.#taken++;
    this.#input.resume();
  }

  pause(): void {
    this.#afterwards(() => this.#input.pause());
  }

  question(urgent: boolean): string | null {
    const owed = this.#askedMs.length;
    if (!this.#listening || owed >= (this.#tookMs === null ? 1 : mostOwed) + (urgent ? mostOwed : 0)) return null;
    if (this.#tookMs === null && owed > 0 && this.patienceMs() === 0) return null;
    this.#askedMs.push(this.#clock());
    const name = this.#named === 'unasked' ? nameQuestion : '';
    if (name !== '') this.#named = 'asked';
    return name + question;
  }

  askForSign(): string | null {
    if (!this.#listening || this.#signsMs.length >= (this.#hasSigned ? mostOwed : 1)) return null;
    this.#signsMs.push(this.#clock());
    return signQuestion;
  }

  askForGround(onGround: (ground: 'dark' | 'light') => void): string | null {
    const signed = this.askForSign();
    if (signed === null) return null;
    this.#ground = { text: '', onGround };
    return groundQuestion + signed;
  }

  listen(onAnswer: (answer: TerminalAnswer) => void): void {
    this.#onAnswer = onAnswer;
  }

  quick(): boolean {
    return smallestOf(this.#lastMs) <= quickMs;
  }

  owed(): number {
    return this.#askedMs.length;
  }

  patienceMs(): number {
    return this.#leftMs(this.#tookMs === null ? firstPatienceMs : patienceMs);
  }

  whenQuiet(callback: () => void): void {
    const patience = this.#leftMs(
      this.#tookMs === null ? firstPatienceMs : Math.min(patienceMs, Math.max(leastQuietMs, this.#tookMs * 4)),
    );
    if (patience === 0) {
      callback();
      return;
    }
    let done = false;
    const once = (): void => {
      if (done) return;
      done = true;
      cancel();
      callback();
    };
    const cancel = this.#schedule(once, patience);
    this.#onQuiet.push(once);
  }

  reflow(): readonly Reflow[] {
    return this.#reflow;
  }

  #leftMs(mayTakeMs: number): number {
    const newest = Math.max(this.#askedMs.at(-1) ?? -Infinity, this.#signsMs.at(-1) ?? -Infinity);
    return newest === -Infinity ? 0 : Math.max(0, newest + mayTakeMs - this.#clock());
  }

  /** Ends raw mode or stops reading once no answer is on its way: the shell would get it. */
  #afterwards(act: () => unknown): void {
    const taken = this.#taken;
    this.whenQuiet(() => {
      if (taken !== this.#taken) return;
      try {
        act();
      } catch {
        /* the terminal is gone */
      }
    });
  }

  /** Bytes are read as Latin-1, so that a character cut by the end of a chunk stays as it was. */
  readonly #take = (chunk: Uint8Array | string): void => {
    if (this.#ground) this.#seeGround(this.#ground, chunk);
    if (this.#signsMs.length > 0) this.#seeSigns(chunk);
    if (this.#askedMs.length === 0 && this.#held === '' && this.#named !== 'asked') {
      this.#listener?.(chunk);
      return;
    }
    this.#dropHeld?.();
    this.#dropHeld = null;
    const give = (text: string): void => {
      if (text !== '') this.#listener?.(typeof chunk === 'string' ? text : Buffer.from(text, 'latin1'));
    };
    const rest = this.#answersIn(this.#held + latin1(chunk));
    const end = this.#askedMs.length > 0 ? (unfinished.exec(rest)?.index ?? rest.length) : rest.length;
    this.#held = rest.slice(end);
    if (this.#held !== '') {
      this.#dropHeld = this.#schedule(() => {
        const held = this.#held;
        this.#held = '';
        this.#dropHeld = null;
        give(held);
      }, heldMs);
    }
    give(rest.slice(0, end));
  };

  /** The answer stays in the input, where it is no key. A terminal that does not know the question signs without it. */
  #seeGround(ground: GroundQuestion, chunk: Uint8Array | string): void {
    ground.text = (ground.text + latin1(chunk)).slice(-longestGround);
    const [, ...parts] = groundPattern.exec(ground.text) ?? [];
    if (parts.length === 0 && !ground.text.includes(sign)) return;
    this.#ground = null;
    if (parts.length > 0) ground.onGround(groundOf(parts));
  }

  #seeSigns(chunk: Uint8Array | string): void {
    const text = latin1(chunk);
    const count = text.split(sign).length - 1;
    if (count === 0) return;
    this.#hasSigned = true;
    this.#signsMs.splice(0, count);
    this.#tellQuiet();
  }

  #tellQuiet(): void {
    if (this.#askedMs.length > 0 || this.#signsMs.length > 0) return;
    for (const quiet of this.#onQuiet.splice(0)) quiet();
  }

  #answersIn(text: string): string {
    let rest = text;
    if (this.#named === 'asked') {
      rest = rest.replace(namePattern, (_, name: string) => {
        this.#isCalled(name);
        return '';
      });
      rest = rest.replace(attributesPattern, (_, kind: string) => {
        if (kind === '65') this.#reflow = ['all'];
        return '';
      });
    }
    while (this.#askedMs.length > 0) {
      const found = answerPattern.exec(rest);
      if (!found) break;
      rest = rest.slice(0, found.index) + rest.slice(found.index + found[0].length);
      this.#isAt(Number(found[1]), Number(found[2]));
    }
    return rest;
  }

  #isCalled(name: string): void {
    this.#reflow = [
      /^XTerm\b/.test(name)
        ? 'none'
        : /^tmux\b/.test(name)
          ? 'all as tmux'
          : /^xterm\.js\b/.test(name)
            ? 'all but the cursor'
            : 'all',
    ];
  }

  #isAt(row: number, column: number): void {
    if (!this.#corner) {
      this.#corner = { columns: column, rows: row };
      return;
    }
    const size = this.#corner;
    this.#corner = null;
    const askedMs = this.#askedMs.shift() ?? 0;
    this.#tookMs = this.#clock() - askedMs;
    this.#lastMs = [...this.#lastMs, this.#tookMs].slice(-remembered);
    if (this.#named === 'asked') this.#named = 'done';
    this.#onAnswer({ size, row: row - 1, column: column - 1 });
    this.#tellQuiet();
  }
}
