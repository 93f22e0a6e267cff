import type { Clock } from '../kernel/core/runtime.js';
import type { ScreenSize } from './terminal/writer.js';
import { type LiveRows, mountScreen, rowsWithoutInk } from './components/mounted-screen.js';
import { runningCalls, type RunningState } from './components/running.js';
import { type Arranged, arrange, type LiveState, type Overlay } from './components/screen.js';
import { type StatusFacts, statusLine, todoRow } from './components/status-line.js';
import type { PromptInput } from './editor/prompt-input.js';
import type { SwitchableTheme } from '../kernel/console/theme.js';
import type { View } from './view.js';

/** The state that a frame is made from, besides what is printed. */
export interface DisplayState {
  readonly view: View;
  readonly input: PromptInput;
  readonly overlay: Overlay | null;
  /** The overlay takes no key yet. */
  readonly waits: boolean;
  readonly busySinceMs: number | null;
  /** Replaces the status line for a moment. */
  readonly hint: string | null;
  /** Nothing was typed yet. */
  readonly isFresh?: boolean;
}

/** The live rows of the screen. Ink lays them out when there is a dialog or a menu, or a row that has to be cut, and
 * something in them has changed. */
export interface Live {
  /** Returns the rows. `apart`: something is printed above, so an empty row sets the input apart. */
  rows(state: DisplayState, size: ScreenSize, apart: boolean): LiveRows;
  /** Returns the rows after a key. They show what it types before Ink has laid it out. */
  echo(state: DisplayState, size: ScreenSize, apart: boolean): LiveRows;
  /** Lays out some rows by Ink, so that the first dialog or menu does not have to wait for its start. */
  warm(state: DisplayState, size: ScreenSize): void;
  unmount(): void;
}

interface Parts {
  readonly theme: SwitchableTheme;
  readonly clock: Clock;
  readonly status: (view: View) => StatusFacts;
}

/** Output may come at every frame; running calls are laid out again after this time. */
const runningMs = 100;

export function createLive({ theme, clock, status }: Parts): Live {
  const mounted = mountScreen();
  const running = createRunning(theme);
  /** The rows that Ink laid out last, as long as no others were shown since. */
  let last: { readonly key: readonly unknown[]; readonly rows: LiveRows } | null = null;
  const stateOf = (state: DisplayState, size: ScreenSize, apart: boolean, nowMs: number): LiveState => ({
    size,
    theme,
    apart,
    running: state.overlay ? null : running(state.view, nowMs),
    queue: state.view.queue,
    todo: todoRow(state.view, size.columns),
    status: statusLine(
      status(state.view),
      state.view,
      { nowMs, busySinceMs: state.busySinceMs, hint: state.hint },
      theme,
      size.columns,
    ),
    prompt: { editor: state.input.editor(), searching: state.input.searching(), hasTips: state.isFresh === true },
    menu: state.input.menu(),
    overlay: state.overlay,
    waits: state.waits,
  });
  const layOut = (arranged: Arranged): LiveRows => {
    const key = keyOf(arranged);
    if (last && isSame(key, last.key)) return last.rows;
    last = { key, rows: mounted.layOut(arranged) };
    return last.rows;
  };
  /** Returns the rows that need no layout; null where Ink is needed. */
  const plain = (arranged: Arranged): LiveRows | null => {
    const found = rowsWithoutInk(arranged);
    if (found) last = null;
    return found;
  };
  return {
    rows: (state, size, apart) => {
      const arranged = arrange(stateOf(state, size, apart, clock()));
      return plain(arranged) ?? layOut(arranged);
    },
    echo: (state, size, apart) => {
      const arranged = arrange(stateOf(state, size, apart, clock()));
      const found = plain(arranged);
      if (found) return found;
      const [, ...others] = keyOf(arranged);
      const echoed = last && isSame(others, last.key.slice(1)) ? mounted.echo(arranged) : null;
      return echoed ?? layOut(arranged);
    },
    warm: (state, size) => {
      if (!last) mounted.layOut(arrange(stateOf(state, size, false, clock())));
    },
    unmount: () => {
      mounted.unmount();
    },
  };
}

/** Lists what decides the rows, the text of the input first. */
function keyOf({ state, overlay }: Arranged): readonly unknown[] {
  const { prompt, size, theme, menu, overlay: _made, ...others } = state;
  return [
    prompt.editor,
    ...[
      prompt.searching,
      prompt.hasTips,
      size.columns,
      size.rows,
      theme.paint,
      JSON.stringify(menu),
      ...Object.values(others),
    ],
    ...[overlay?.type, JSON.stringify(overlay?.props)],
  ];
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.every((part, index) => Object.is(part, other[index]));
}

/** Returns the same state again until the calls change or some time has passed. */
function createRunning(theme: SwitchableTheme): (view: View, nowMs: number) => RunningState | null {
  let last: { readonly atMs: number; readonly calls: string; readonly state: RunningState | null } | null = null;
  return (view, nowMs) => {
    const calls = view.calls.map((call) => call.callId).join(' ');
    if (last?.calls === calls && last.state && nowMs - last.atMs < runningMs) return last.state;
    last = { atMs: nowMs, calls, state: runningCalls(view.calls, nowMs, theme) };
    return last.state;
  };
}
