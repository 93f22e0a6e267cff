import { withoutEnd } from '../../kernel/core/text.js';
import { expandTabs, splitStyledLines, unjoined } from '../terminal/rows.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { runningCallRow } from '../calls/call-rows.js';
import { formatElapsed } from '../item-lines.js';
import { patienceMs } from '../../kernel/core/timers.js';
import type { StartedCall } from '../view.js';
import type { Theme } from '../../kernel/console/theme.js';
import type { RowText } from './row.js';

const tailRows = 6;

/** A call that runs: its row, and the end of its output. */
interface RunningCall {
  readonly row: string;
  readonly tail: readonly string[];
}

/** The calls that run now, and the number of calls that wait. */
export interface RunningState {
  readonly calls: readonly RunningCall[];
  readonly waiting: number;
}

/** The calls that have run long enough to be shown; null where there is none. */
export function runningCalls(calls: readonly StartedCall[], nowMs: number, theme: Theme): RunningState | null {
  const running = calls.filter((call) => call.startedAtMs !== null && nowMs - call.startedAtMs >= patienceMs);
  if (running.length === 0) return null;
  return {
    calls: running.map((call) => ({
      row: runningCallRow(call.call, formatElapsed(nowMs - (call.startedAtMs ?? nowMs)), theme),
      tail: tail(call.output, theme.colors),
    })),
    waiting: calls.filter((call) => call.startedAtMs === null).length,
  };
}

function tail(output: string, colors: boolean): string[] {
  const clean = unjoined(sanitize(withoutEnd(output, '\r\n'), { colors }));
  return clean === ''
    ? []
    : splitStyledLines(clean)
        .slice(-tailRows)
        .map((line) => expandTabs(line));
}

/** The rows that running calls take. */
export function runningHeight({ calls, waiting }: RunningState): number {
  return calls.reduce((sum, call) => sum + call.tail.length + 1, waiting > 0 ? 1 : 0);
}

/** Returns the rows of the calls that run, each above the end of its output, in `height` rows: where there is less room,
 * output gives way first. */
export function runningRows({ calls, waiting }: RunningState, height: number): readonly RowText[] {
  const heads = calls.length + (waiting > 0 ? 1 : 0);
  let room = Math.max(0, height - heads);
  const rows = calls.flatMap(({ row, tail: output }): readonly RowText[] => {
    const shown = room === 0 ? [] : output.slice(-room);
    room -= shown.length;
    return [{ text: row, keepsEnd: true }, ...shown.map((text) => ({ text, tone: 'dim' as const }))];
  });
  const all: readonly RowText[] =
    waiting > 0
      ? [...rows, { text: `${waiting} more ${waiting === 1 ? 'call waits' : 'calls wait'}`, tone: 'dim' }]
      : rows;
  return height > 0 ? all.slice(-height) : [];
}
