import type { QueuedMessage } from '../../core/session-port.js';
import { sanitize } from '../../terminal/sanitize.js';
import { fitWidth, textWidth } from '../../terminal/width.js';
import type { Live, ScreenSize } from '../../terminal/writer.js';
import { layoutEditor } from '../editor/editor-layout.js';
import { displayText } from '../editor/editor.js';
import type { PromptInput } from '../editor/prompt-input.js';
import type { Theme } from '../theme.js';
import { beforeCursor, type Overlay, type Panel } from './panel.js';
import type { Panels } from './panels.js';

/** Everything below the open text. */
export interface LiveParts {
  readonly size: ScreenSize;
  readonly theme: Theme;
  readonly panels: Panels;
  /** Apart from the others, so that each keeps its last rows. */
  readonly runningPanels: Panels;
  readonly input: PromptInput;
  /** Stands in the place of the input. */
  readonly overlay: Overlay | null;
  /** Whether the overlay takes no key yet. */
  readonly waits: boolean;
  readonly running: Panel | null;
  readonly queue: readonly QueuedMessage[];
  readonly status: string;
  /** Whether anything stands above, so that an empty row sets the input apart. */
  readonly apart: boolean;
}

/** `showsOverlay`: the overlay is laid out and among the lines. */
interface Below extends Live {
  readonly showsOverlay: boolean;
}

const mostQueued = 4;
/** Rows of a draft below a question. */
const mostDraftRows = 3;

/** The rows below the open text, and where the cursor stands in them. Never higher than the terminal less two rows. The
 * status stands above the input: some terminals (xterm.js) lose track of the cursor when a row below it is rewrapped by
 * a resize, so as little as possible stands there. */
export function layoutBelow(parts: LiveParts): Below {
  const { size } = parts;
  const room = Math.max(1, size.rows - 2);
  const status = room < 3 ? [] : [parts.status];
  const gap = parts.apart && room > 6 ? [''] : [];
  if (parts.overlay) return overlayRows(parts, parts.overlay, [...gap, ...status], room);
  const menu = parts.input.panel();
  const menuRows = menu ? (parts.panels.rows(menu, size.columns) ?? []).slice(0, Math.max(0, room - 6)) : [];
  const above = [...runningRows(parts, room), ...queueRows(parts)].slice(
    0,
    Math.max(0, room - status.length - gap.length - menuRows.length - 1),
  );
  const left = room - status.length - gap.length - menuRows.length - above.length;
  const input = inputRows(parts, Math.max(1, Math.min(left, Math.floor(room / 2) + 1)));
  const before = [...above, ...gap, ...status];
  return {
    lines: [...before, ...input.lines, ...menuRows],
    cursor: { line: before.length + input.cursor.line, column: input.cursor.column },
    showsOverlay: false,
  };
}

/** What stands in the place of the input. Below what came by itself stands the draft: keys may still go there. */
function overlayRows(parts: LiveParts, overlay: Overlay, status: readonly string[], room: number): Below {
  const { size, input } = parts;
  const isDrafted = overlay.asks && (input.text() !== '' || input.searching() !== null);
  const draft = isDrafted ? inputRows(parts, room < 16 ? 1 : mostDraftRows) : null;
  const queue = room < 16 ? [] : queueRows(parts);
  const taken = queue.length + (draft?.lines.length ?? 0);
  const panel = overlay.panel({ columns: size.columns, rows: size.rows - taken }, parts.waits);
  const laidOut = parts.panels.rows(panel, size.columns);
  const rows = (laidOut ?? ['']).slice(-Math.max(1, room - status.length - taken));
  const before = [...queue, ...status, ...rows];
  const cursor = draft
    ? { line: before.length + draft.cursor.line, column: draft.cursor.column }
    : { line: before.length - 1, column: Math.min(size.columns - 1, textWidth(beforeCursor(panel))) };
  return { lines: [...before, ...(draft?.lines ?? [])], cursor, showsOverlay: laidOut !== null };
}

function inputRows({ input, theme, size }: LiveParts, maxRows: number): Live {
  const searching = input.searching();
  if (searching !== null) {
    const lead = fitWidth(`${searching}: `, size.columns - 4);
    const text = fitWidth(displayText(input.editor()).replaceAll('\n', ' '), size.columns - textWidth(lead) - 1);
    return { lines: [theme.paint('dim', lead) + text], cursor: { line: 0, column: textWidth(lead) + textWidth(text) } };
  }
  const layout = layoutEditor(input.editor(), theme.glyphs.prompt, size.columns, maxRows);
  const [first = '', ...rest] = layout.lines;
  return {
    ...layout,
    lines: [theme.paint('prompt', theme.glyphs.prompt) + first.slice(theme.glyphs.prompt.length), ...rest],
  };
}

function runningRows(parts: LiveParts, room: number): readonly string[] {
  if (!parts.running) return [];
  return (parts.runningPanels.rows(parts.running, parts.size.columns) ?? []).slice(-Math.max(1, room - 4));
}

function queueRows(parts: LiveParts): readonly string[] {
  const { theme, size } = parts;
  const shown = parts.queue.slice(0, mostQueued).map((message) => {
    const when = message.when === 'steer' ? 'next' : 'after this turn';
    return theme.paint(
      'dim',
      fitWidth(`${theme.glyphs.arrow} ${when}: ${sanitize(message.text).replace(/\s+/g, ' ')}`, size.columns - 1),
    );
  });
  const more = parts.queue.length - shown.length;
  return more > 0 ? [...shown, theme.paint('dim', `${theme.glyphs.arrow} ${more} more queued`)] : shown;
}
