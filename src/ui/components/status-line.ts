import { addAll } from '../../kernel/core/lists.js';
import { todoNow } from '../../kernel/core/projection.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { fitWidth, textWidth } from '../terminal/rows.js';
import type { ScreenSize } from '../terminal/writer.js';
import { formatCost, formatCount, formatElapsed, type Greeting, greetingLines } from '../item-lines.js';
import { createTheme, type TerminalFacts, type Theme } from '../../kernel/console/theme.js';
import { emptyView, type View } from '../view.js';

/** The facts of the status line that the view does not know. */
export interface StatusFacts {
  readonly model: string;
  readonly approval: string;
  readonly sandbox: string;
  /** Shortened for display, e.g. `~/src/thing`. */
  readonly directory: string;
  readonly branch?: string | undefined;
  /** Tokens; null where nobody knows. */
  readonly contextWindow?: number | null | undefined;
  /** The key that interrupts, as people write it. */
  readonly interruptKey?: string | null | undefined;
  /** The mode of the input's keys, if they have modes. */
  readonly mode?: string | null | undefined;
  /** A command of the user runs. */
  readonly ownCommand?: boolean | undefined;
  /** Commands that run in the background. */
  readonly jobs?: number | undefined;
  /** The output of the user's custom status program, which replaces our line. */
  readonly own?: string | null | undefined;
  /** True after the user interrupted the turn. */
  readonly stopping?: boolean | undefined;
}

/** Returns one row, at most `columns - 1` wide. The least important parts are left out first; the current activity is
 * cut. */
export function statusLine(
  facts: StatusFacts | null,
  view: View,
  state: { readonly nowMs: number; readonly busySinceMs: number | null; readonly hint: string | null },
  theme: Theme,
  columns: number,
): string {
  const room = Math.max(0, columns - 1);
  if (state.hint !== null) return theme.paint('warn', fitWidth(state.hint, room));
  const separator = ` ${theme.glyphs.dot} `;
  const mode = (facts?.mode ?? '').toUpperCase();
  const left = room - (mode === '' ? 0 : textWidth(mode + separator));
  const parts = [mode, fitWidth(activity(view, state, facts), left), ...factParts(facts, view)]
    .filter((part) => part !== '')
    .map((part) => sanitize(part));
  const kept: string[] = [];
  let width = 0;
  for (const part of parts) {
    const added = textWidth(part) + (kept.length > 0 ? separator.length : 0);
    if (width + added > room) continue;
    kept.push(part);
    width += added;
  }
  addAll(kept, ownPart(facts, room - width - (kept.length > 0 ? separator.length : 0)));
  return theme.paint('dim', kept.length > 0 ? kept.join(separator) : fitWidth(parts[0] ?? '', room));
}

/** Says what the model does now; '' where it has nothing to do. */
export function todoRow({ todo }: View, columns: number): string {
  return fitWidth(sanitize(todoNow(todo)).replace(/\s+/g, ' '), columns - 1);
}

/** A lower terminal leaves rows out. */
const leastRows = 12;

/** Returns the rows above the first prompt, below the greeting of an empty session or the end of another, as the screen
 * shows them once it is loaded; null where they need more than these lines. */
export function openingRows(
  greeting: Greeting | null,
  facts: StatusFacts,
  terminal: TerminalFacts,
  { columns, rows }: ScreenSize,
  view: View = emptyView,
): readonly string[] | null {
  const theme = createTheme(terminal);
  const todo = todoRow(view, columns);
  const status = statusLine(facts, view, { nowMs: 0, busySinceMs: null, hint: null }, theme, columns);
  const above = greeting ? greetingLines(greeting, { theme, columns }) : [];
  const lines = [...above, '', ...(todo === '' ? [] : [theme.paint('dim', todo)]), status];
  const fits = rows >= leastRows && lines.every((line) => textWidth(line) <= columns);
  return fits && greeting?.more === undefined ? lines : null;
}

/** Returns the output of the user's custom status program. It is cut, and not left out. */
function ownPart(facts: StatusFacts | null, columns: number): readonly string[] {
  const own = fitWidth(sanitize(facts?.own ?? ''), columns);
  return own === '' ? [] : [own];
}

function activity(
  view: View,
  { nowMs, busySinceMs }: { readonly nowMs: number; readonly busySinceMs: number | null },
  facts: StatusFacts | null,
): string {
  if (facts?.ownCommand) return `your command runs${byKey(facts, 'stops it')}`;
  if (view.retry && !facts?.stopping) {
    const { attempt, maxRetries, atMs, reason } = view.retry;
    const seconds = Math.ceil((atMs - nowMs) / 1_000);
    const when = seconds > 0 ? ` in ${seconds}s` : '';
    return `retry ${attempt}/${maxRetries}${when}: ${sanitize(reason)}`;
  }
  return view.busy && busySinceMs !== null ? doing(view, formatElapsed(nowMs - busySinceMs), facts) : '';
}

function doing(view: View, elapsed: string, facts: StatusFacts | null): string {
  if (facts?.stopping) return `stopping ${elapsed}`;
  if (view.questions.length + view.forms.length > 0) return 'waiting for you';
  const doing = view.reasoning !== '' && view.text === '' ? 'thinking' : 'working';
  return `${doing} ${elapsed}${byKey(facts, 'interrupts')}`;
}

function byKey(facts: StatusFacts | null, what: string): string {
  const key = facts?.interruptKey ?? null;
  return key === null ? '' : `, ${key.toLowerCase()} ${what}`;
}

function factParts(facts: StatusFacts | null, view: View): string[] {
  if (facts === null || facts.own != null) return [];
  const { totals } = view;
  const window = facts.contextWindow ?? 0;
  const read = totals.input + totals.cacheRead + totals.cacheWrite;
  return [
    facts.model,
    facts.branch === undefined ? facts.directory : `${facts.directory} (${facts.branch})`,
    `approval ${facts.approval}`,
    jobsText(facts),
    facts.sandbox === 'off' ? '' : `sandbox ${facts.sandbox}`,
    window > 0 && totals.context > 0 ? `context ${Math.round((totals.context / window) * 100)}%` : '',
    read + totals.output > 0 ? `${formatCount(read)} in ${formatCount(totals.output)} out` : '',
    totals.cacheRead > 0 ? `cache ${Math.round((totals.cacheRead / read) * 100)}%` : '',
    totals.costKnown && totals.costUsd > 0 ? formatCost(totals.costUsd) : '',
  ];
}

function jobsText({ jobs = 0 }: StatusFacts): string {
  return jobs === 0 ? '' : `${jobs} job${jobs === 1 ? '' : 's'}`;
}
