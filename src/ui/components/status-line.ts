import { todoNow } from '../../kernel/core/projection.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { fitWidth, textWidth } from '../terminal/rows.js';
import type { ScreenSize } from '../terminal/writer.js';
import { formatCost, formatCount, formatElapsed, type Greeting, greetingLines } from '../item-lines.js';
import { limitCountdown, limitTime } from '../../kernel/console/limit-times.js';
import { createTheme, type TerminalFacts, type Theme } from '../../kernel/console/theme.js';
import { emptyView, type View } from '../view.js';

/** The facts of the status line that the view does not know. */
export interface StatusFacts {
  readonly model: string;
  /** The effort of the model, if the user chose one. */
  readonly effort?: string | null | undefined;
  /** An approval mode, or `plan`. */
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
  /** Texts of features about the session, such as its goal. */
  readonly more?: string | undefined;
  /** The output of the user's custom status program, which replaces our line. */
  readonly own?: string | null | undefined;
  /** True after the user interrupted the turn. */
  readonly stopping?: boolean | undefined;
}

/** Returns one row, at most `columns - 1` wide: what happens now, the approval mode, then facts. The mode is never left
 * out. Where there is too little room, names become shorter, and then facts are left out from the right. */
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
  const { before, mode } = firstParts(facts, view, state, room, separator);
  const used = textWidth([...before, mode].join(separator));
  const behind = factsThatFit(facts, view, room - used - separator.length, separator);
  const own = ownPart(facts, room - used - separator.length);
  const dim = (text: string): string => theme.paint('dim', text);
  const lead = before.join(separator) + (before.length === 0 || mode === '' ? '' : separator);
  const all = [...behind, ...own].map((part) => separator + part).join('');
  const rest = before.length === 0 && mode === '' ? all.slice(separator.length) : all;
  const tone = modeTone(facts);
  return tone === null ? dim(lead + mode + rest) : dim(lead) + theme.paint(tone, mode) + dim(rest);
}

/** Returns what happens now and the approval mode, in the longest words that fit. */
function firstParts(
  facts: StatusFacts | null,
  view: View,
  state: { readonly nowMs: number; readonly busySinceMs: number | null },
  room: number,
  separator: string,
): { readonly before: readonly string[]; readonly mode: string } {
  const keys = (facts?.mode ?? '').toUpperCase();
  const { text, short, mayBeCut } = activity(view, state, facts);
  const [mode = '', shortMode = ''] = modeTexts(facts);
  const row = (...parts: readonly string[]): readonly string[] => parts.filter((part) => part !== '');
  const width = (...parts: readonly string[]): number => textWidth(row(...parts).join(separator));
  if (width(keys, text, mode) <= room) return { before: row(keys, text), mode };
  for (const named of [mode, shortMode]) {
    const left = room - width(keys, '.', named) + 1;
    if (mayBeCut && left >= Math.min(textWidth(text), textWidth(short) + leastReason))
      return { before: row(keys, fitWidth(text, left)), mode: named };
  }
  for (const [doing, named] of [
    [short, mode],
    [short, shortMode],
    ['', shortMode],
  ] as const)
    if (width(keys, doing, named) <= room) return { before: row(keys, doing), mode: named };
  return { before: [], mode: fitWidth(shortMode, room) };
}

/** The columns of a reason that are worth showing. */
const leastReason = 8;

/** `asks: dangerous`, and where there is little room `dangerous`. */
function modeTexts(facts: StatusFacts | null): readonly string[] {
  if (facts === null || facts.own != null) return ['', ''];
  const { approval } = facts;
  return approval === 'plan' ? ['plan, read-only', 'plan'] : [`asks: ${approval}`, approval];
}

/** Modes that a user should notice have a colour. */
function modeTone(facts: StatusFacts | null): 'warn' | 'prompt' | null {
  if (facts?.approval === 'never') return 'warn';
  return facts?.approval === 'plan' ? 'prompt' : null;
}

/** Returns the facts in the longest form that fits. */
function factsThatFit(facts: StatusFacts | null, view: View, room: number, separator: string): readonly string[] {
  if (facts === null || facts.own != null) return [];
  const fits = (parts: readonly string[]): boolean => textWidth(parts.join(separator)) <= room;
  const long = factParts(facts, view, { isLong: true });
  const all = [...long, ...tokenParts(view)];
  for (let count = all.length; count >= long.length; count--) if (fits(all.slice(0, count))) return all.slice(0, count);
  const short = factParts(facts, view, { isLong: false });
  for (let count = short.length; count > 0; count--) if (fits(short.slice(0, count))) return short.slice(0, count);
  return [];
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
  return fits ? lines : null;
}

/** Returns the output of the user's custom status program. It is cut, and not left out. */
function ownPart(facts: StatusFacts | null, columns: number): readonly string[] {
  const own = fitWidth(sanitize(facts?.own ?? ''), columns);
  return own === '' ? [] : [own];
}

/** The current activity; '' if there is none. `short`: where there is little room. */
interface Activity {
  readonly text: string;
  readonly short: string;
  /** Its end is a reason, of which the beginning says most. */
  readonly mayBeCut?: true;
}

function activity(
  view: View,
  { nowMs, busySinceMs }: { readonly nowMs: number; readonly busySinceMs: number | null },
  facts: StatusFacts | null,
): Activity {
  if (facts?.ownCommand) return withKey('your command runs', facts);
  if (view.retry && !facts?.stopping) {
    const { attempt, maxRetries, atMs, reason } = view.retry;
    const seconds = Math.ceil((atMs - nowMs) / 1_000);
    const when = seconds > 0 ? ` in ${seconds}s` : '';
    const short = `retry ${attempt}/${maxRetries}${when}`;
    return { text: `${short}: ${sanitize(reason)}`, short, mayBeCut: true };
  }
  if (view.limitUntil !== null && !facts?.stopping) return waiting(view.limitUntil, Date.now(), facts);
  if (!view.busy || busySinceMs === null) return { text: '', short: '' };
  return doing(view, formatElapsed(nowMs - busySinceMs), facts);
}

function waiting(until: number, now: number, facts: StatusFacts | null): Activity {
  const left = limitCountdown(until - now);
  return { ...withKey(`usage limit until ${limitTime(until, now)}, ${left} left`, facts), short: `limit ${left}` };
}

function doing(view: View, elapsed: string, facts: StatusFacts | null): Activity {
  if (facts?.stopping) return { text: `stopping ${elapsed}`, short: 'stopping' };
  if (view.questions.length + view.forms.length > 0) return { text: 'waiting for you', short: 'waiting' };
  const doing = view.reasoning !== '' && view.text === '' ? 'thinking' : 'working';
  return withKey(`${doing} ${elapsed}`, facts);
}

function withKey(text: string, facts: StatusFacts | null): Activity {
  const key = facts?.interruptKey ?? null;
  return { text: key === null ? text : `${text}, ${key} stops`, short: text };
}

function factParts(facts: StatusFacts, view: View, { isLong }: { readonly isLong: boolean }): readonly string[] {
  const { totals, queue, busy } = view;
  const model = isLong ? facts.model.replace(/^([^/]+)\/\1$/, '$1') : lastName(facts.model);
  const directory = isLong ? facts.directory : lastName(facts.directory);
  return [
    busy && queue.length > 0 ? `${queue.length} queued` : '',
    facts.more ?? '',
    facts.sandbox === 'off' ? '' : `sandbox ${facts.sandbox}`,
    facts.effort == null ? model : `${model} ${facts.effort}`,
    contextText(facts, totals.context),
    totals.costKnown && totals.costUsd > 0 ? formatCost(totals.costUsd) : '',
    jobsText(facts),
    facts.branch === undefined ? directory : `${directory} (${facts.branch})`,
  ]
    .filter((part) => part !== '')
    .map((part) => sanitize(part));
}

function contextText({ contextWindow }: StatusFacts, tokens: number): string {
  const window = contextWindow ?? 0;
  if (window === 0 || tokens === 0) return '';
  return `${Math.round((tokens / window) * 100)}% of ${formatCount(window).replace('.0', '')}`;
}

/** Tokens, for those who have the room. */
function tokenParts({ totals }: View): readonly string[] {
  const read = totals.input + totals.cacheRead + totals.cacheWrite;
  return [
    ...(read + totals.output > 0 ? [`${formatCount(read)} in ${formatCount(totals.output)} out`] : []),
    ...(totals.cacheRead > 0 ? [`cache ${Math.round((totals.cacheRead / read) * 100)}%`] : []),
  ];
}

/** Returns a model without its provider, a folder without those around it. */
function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

function jobsText({ jobs = 0 }: StatusFacts): string {
  return jobs === 0 ? '' : `${jobs} job${jobs === 1 ? '' : 's'}`;
}
