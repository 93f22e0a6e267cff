import { splitStyledLines } from '../../terminal/attributes.js';
import { sanitize } from '../../terminal/sanitize.js';
import { expandTabs, unjoined } from '../../terminal/width.js';
import { formatElapsed } from '../item-lines.js';
import type { OpenCall } from '../view.js';
import type { Panel } from './panel.js';

/** A call is shown as running once it has taken this long; most are done before. */
export const patienceMs = 150;
const tailRows = 6;

/** What runs now: the end of its output and how long it has taken. Null where nothing has run long enough. */
export function runningPanel(calls: readonly OpenCall[], nowMs: number, colors: boolean): Panel | null {
  const running = calls.filter((call) => call.startedAtMs !== null && nowMs - call.startedAtMs >= patienceMs);
  if (running.length === 0) return null;
  return {
    type: 'running',
    calls: running.map((call) => ({
      title: `${call.callId} ${call.title}`,
      elapsed: formatElapsed(nowMs - (call.startedAtMs ?? nowMs)),
      tail: tail(call.output, colors),
    })),
    waiting: calls.filter((call) => call.startedAtMs === null).length,
  };
}

function tail(output: string, colors: boolean): string[] {
  const clean = unjoined(sanitize(output.replace(/[\r\n]+$/, ''), { colors }));
  return clean === ''
    ? []
    : splitStyledLines(clean)
        .slice(-tailRows)
        .map((line) => expandTabs(line));
}
