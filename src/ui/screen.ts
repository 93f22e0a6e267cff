import type { Answer } from './answers.js';
import type { Painted } from './first-frame.js';
import type { Reflow, ScreenSize } from './terminal-model.js';

export type { ScreenSize } from './terminal-model.js';

/** What stands below the scrollback. `cursor.line` indexes `lines`; `column` is the column in that line, which must not
 * be wrapped. */
export interface Live {
  readonly lines: readonly string[];
  /** How many of them, from the first on, are text that is on its way into the scrollback; none where not given. */
  readonly text?: number;
  readonly cursor: { readonly line: number; readonly column: number };
}

/** What was lost to the scrollback when the terminal became smaller: whole live lines from the top, then columns of the
 * next. */
export interface Lost {
  readonly lines: number;
  readonly columns: number;
}

/** The one writer to the terminal: lines that are printed once and then belong to the scrollback, and below them live
 * lines of which only what changed is written. Lines are logical: the terminal wraps them. A committed line that stands
 * already where the live one stood costs nothing. Never clears the screen, never touches what is above its anchor. See
 * docs/decisions/0002-screen-writer.md. */
export interface Screen {
  /** Prints lines with the next `draw`. With `partial` the last of them goes on in the first live line (and in the next
   * commit). */
  commit(lines: readonly string[], partial?: boolean): void;
  /** Writes one frame. Live rows beyond the height less two are left out at the top. True where the terminal is asked
   * first where it is: `settle` then writes the frame, and nothing else may be drawn until then. */
  draw(live: Live): boolean;
  /** Takes the new size and moves back to the anchor, on the assumption that nothing written was on its way; the next
   * `draw` paints anew. */
  resize(size: ScreenSize): Lost;
  /** Asks the terminal where it is. False where it is not to be asked. */
  ask(): boolean;
  /** An answer has come to the oldest question that had none. False where the terminal had another size than we
   * thought. */
  answered(answer: Answer): boolean;
  /** All questions are answered, or no answer is waited for any more. Where things have moved, takes the size that the
   * terminal said and goes back to where the screen is still right, a frame that waits being given up; null where
   * nothing has moved. `asked`: the terminal is asked whether it has got there, and nothing may be drawn until the next
   * `settle`. */
  settle(): Lost | 'asked' | null;
  readonly size: ScreenSize;
  /** Writes a sequence that neither draws nor moves the cursor (clipboard, title). */
  control(sequence: string): void;
  /** Takes the live lines away and leaves the cursor at the start of an empty row. */
  close(): void;
  /** Forgets what is painted: the cursor stands at the start of an empty row (after another program drew). */
  restart(size: ScreenSize): void;
}

export interface ScreenOptions {
  readonly write: (text: string) => void;
  readonly size: ScreenSize;
  readonly synchronized: boolean;
  /** What the terminal may do with its rows, the likeliest first. */
  readonly reflow: () => readonly Reflow[];
  /** What to write to ask the terminal where it is; null where it is not to be asked now. Missing: it never is. */
  readonly question?: (urgent: boolean) => string | null;
  /** Whether it answers so fast that a frame may wait for it. */
  readonly quick?: () => boolean;
  /** What a first frame has put on the terminal already. */
  readonly painted?: Painted;
}
