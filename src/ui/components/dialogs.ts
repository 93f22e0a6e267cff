import type { Answer, Question } from '../../core/policy.js';
import type { InputEvent } from '../../terminal/keyboard.js';
import { sanitize } from '../../terminal/sanitize.js';
import type { PageOptions } from '../slash-command.js';
import { pauseMs, type Timers } from '../timers.js';
import { createApproval } from './approval.js';
import { createPager } from './pager.js';
import { createPicker, type Picking, type Rank } from './picker.js';
import type { Overlay } from './screen.js';

/** A part of the pause. */
const stepMs = 100;

/** The dialogs in the place of the input: questions, pickers, the pager. The last one has the keys; a question waits
 * below what is open. */
export interface Dialogs {
  top(): Overlay | null;
  /** Offers a key to the top dialog. Returns the part of it that belongs to the draft. */
  take(event: InputEvent): InputEvent | null;
  /** Returns whether `overlay` waits for a pause before it takes keys. */
  waits(overlay: Overlay): boolean;
  /** Notes that `overlay` is on the screen. */
  drawn(overlay: Overlay): void;
  /** Returns the number of keys so far. */
  keys(): number;
  /** Opens a dialog for each open question and closes those that were answered elsewhere. */
  sync(questions: readonly Question[]): void;
  /** Opens a picker. `calledAt`: the value of `keys` when the person asked for it; if more keys came since, it opens by
   * itself. */
  pick<T>(options: Picking<T>, calledAt: number): Promise<T | null>;
  page(title: string, text: string, calledAt: number, options?: PageOptions): Promise<void>;
  clear(): void;
}

interface Parts {
  readonly timers: Timers;
  readonly rank: Rank;
  readonly onAnswer: (callId: string, answer: Answer) => void;
  readonly onChange: () => void;
}

export function createDialogs(d: Parts): Dialogs {
  const stack: Overlay[] = [];
  const asked = new Map<string, Overlay>();
  const pause = createPause(d, () => stack.at(-1) ?? null);
  const close = (overlay: Overlay): void => {
    const at = stack.indexOf(overlay);
    if (at >= 0) stack.splice(at, 1);
  };
  function open<T>(create: (done: (value: T) => void) => Overlay): Promise<T> {
    return new Promise((resolve) => {
      const overlay: Overlay = create((value) => {
        close(overlay);
        resolve(value);
        d.onChange();
      });
      stack.push(overlay);
      d.onChange();
    });
  }
  const ask = (question: Question): void => {
    const onAnswer = (answer: Answer): void => {
      close(overlay);
      d.onAnswer(question.callId, answer);
    };
    const overlay = createApproval(question, onAnswer, d.onChange);
    asked.set(question.callId, overlay);
    stack.unshift(overlay);
  };
  const sync = (questions: readonly Question[]): void => {
    for (const [callId, overlay] of asked) {
      if (questions.some((question) => question.callId === callId)) continue;
      asked.delete(callId);
      close(overlay);
    }
    for (const question of questions) if (!asked.has(question.callId)) ask(question);
  };
  return {
    top: () => stack.at(-1) ?? null,
    ...pause,
    sync,
    pick: (options, calledAt) => {
      const asks = options.confirms === true || calledAt !== pause.keys();
      return open((done) => createPicker({ ...options, asks }, d.rank, done, d.onChange));
    },
    page: (title, text, calledAt, { prose = false } = {}) => {
      const how = { asks: calledAt !== pause.keys(), prose };
      return open<void>((done) => createPager(sanitize(title), sanitize(text).split('\n'), how, done, d.onChange));
    },
    clear: () => {
      stack.length = 0;
      asked.clear();
    },
  };
}

/** Decides whether a key belongs to a dialog that opened by itself. A program that was held up sees keys late, as if
 * there had been a pause before them. So a pause is counted in steps, and waiting keys are read between two of them. */
function createPause(d: Parts, top: () => Overlay | null): Pick<Dialogs, 'take' | 'waits' | 'drawn' | 'keys'> {
  const drawn = new WeakSet<Overlay>();
  let keys = 0;
  let quietMs = 0;
  /** The overlay that was on the screen through a whole pause. */
  let open: Overlay | null = null;
  /** The overlay that took the last key; the next one is meant for it too. */
  let hearer: Overlay | null = null;
  const waits = (overlay: Overlay): boolean => overlay.asks && overlay !== open && overlay !== hearer;
  const asking = (): Overlay | null => {
    const overlay = top();
    return overlay?.asks === true && drawn.has(overlay) ? overlay : null;
  };
  const step = (): void => {
    const overlay = asking();
    if (overlay === null) return;
    quietMs += stepMs;
    if (quietMs < pauseMs) {
      d.timers.set('pause', stepMs, step);
      return;
    }
    open = overlay;
    d.onChange();
  };
  const restart = (): void => {
    quietMs = 0;
    open = null;
    if (asking() !== null) d.timers.set('pause', stepMs, step);
  };
  return {
    keys: () => keys,
    waits,
    drawn: (overlay) => {
      if (!overlay.asks || drawn.has(overlay)) return;
      drawn.add(overlay);
      restart();
    },
    take: (event) => {
      const overlay = top();
      const hears = overlay !== null && !waits(overlay);
      keys++;
      // This comes before the overlay acts: what it opens or closes is another overlay.
      hearer = hears ? overlay : null;
      const left = hears ? overlay.take(event) : event;
      if (left !== null) hearer = null;
      restart();
      return left;
    },
  };
}
