import { limitSpan, limitTime } from '../kernel/console/limit-times.js';
import { firstLine, withoutEnd } from '../kernel/core/text.js';
import type { TurnEnd } from '../kernel/core/session-port.js';
import { expandTabs, fitWidth, textWidth, wrapLine, wrapWords } from './terminal/rows.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { finishedCallRows } from './calls/call-rows.js';
import type { ItemStyle } from './item-style.js';
import type { Theme } from '../kernel/console/theme.js';
import type { TranscriptItem } from './view.js';

/** Returns a finished item as lines. An assistant's text is not among them, because it streams. */
export function itemLines(
  item: Exclude<TranscriptItem, { readonly type: 'assistant' }>,
  style: ItemStyle,
): readonly string[] {
  switch (item.type) {
    case 'user':
      return userLines(item, style);
    case 'reasoning':
      return reasoningLines(item.text, style);
    case 'result':
      return finishedCallRows(item, style);
    case 'told':
      return toldLines(item, style);
    case 'notice':
      return noticeLines(item.level, item.message, style);
    case 'void':
      return voidLines(item, style);
    case 'ended':
      return endLines(item.end, style);
    default:
      return item satisfies never;
  }
}

function userLines(
  { text, seq, from }: Extract<TranscriptItem, { readonly type: 'user' }>,
  style: ItemStyle,
): string[] {
  const { glyphs, paint } = style.theme;
  const lines = sentLines(text, seq, style).map((line, index) =>
    index === 0 ? paint('prompt', glyphs.prompt) + line : line,
  );
  return band([...lines, ...(from === undefined ? [] : [paint('dim', `  (${from})`)])], style.theme);
}

/** Sets lines of the user apart from all others: they have a ground from edge to edge. */
function band(lines: readonly string[], { fill }: Theme): string[] {
  return lines.map((line) => fill('user', line));
}

const maxCommandLength = 500;

/** Returns the first line of a command that the user typed, laid out as their messages are. */
export function commandLines(line: string, { theme }: Pick<ItemStyle, 'theme'>): string[] {
  return band(
    [theme.paint('prompt', theme.glyphs.prompt) + expandTabs(sanitize(firstLine(line, maxCommandLength)))],
    theme,
  );
}

/** Returns a note for the model as one row that says what it is about. */
function toldLines({ seq, text }: Extract<TranscriptItem, { readonly type: 'told' }>, style: ItemStyle): string[] {
  const { theme, columns } = style;
  const lead = 'sent to the model: ';
  const whole = sanitize(text.trim().replace(/^\[Note: ([^]*)\]$/, '$1'));
  const short = shortNote(whole);
  if (short === whole && textWidth(lead + short) <= columns) return [theme.paint('dim', lead + short)];
  const more = ` (/show ${seq})`;
  const room = Math.max(8, columns - lead.length - more.length);
  return [theme.paint('dim', lead + fitWidth(short, room, theme.glyphs.ellipsis) + more)];
}

/** Returns the first sentence of a note, without the arguments of a call that it names. A line that ends with a colon
 * takes the next one along. */
function shortNote(note: string): string {
  const line =
    note
      .replace(/^\[([^\]\n]+)\]\n+/, '$1: ')
      .replace(/^([^\n]*:)\n+/, '$1 ')
      .split('\n')[0] ?? '';
  const named = line.replace(/^(the user (?:undid|redid) )what (\w+)\([^]*\) did to files/, '$1$2');
  return /^[^]*?(?=\. [A-Z])/.exec(named)?.[0] ?? named;
}

function reasoningLines(text: string, style: ItemStyle): string[] {
  const { glyphs, paint } = style.theme;
  const lines = sanitize(text)
    .split('\n')
    .map((line, index) => expandTabs(index === 0 ? `${glyphs.ellipsis} ${line}` : line));
  return lines.flatMap((line) => prose(line, style)).map((line) => paint('dim', line));
}

/** Breaks a text of ours at words; `indent` is that of the lines after the first. */
function prose(line: string, { columns, wrap }: Pick<ItemStyle, 'columns' | 'wrap'>, indent = 0): string[] {
  return wrap === 'terminal' ? [line] : wrapWords(line, columns, indent);
}

function voidLines(item: Extract<TranscriptItem, { readonly type: 'void' }>, { theme, columns }: ItemStyle): string[] {
  const reason = sanitize(item.reason);
  const count = `${item.attempt} of ${item.maxRetries}`;
  const said = `Connection lost mid-answer (${reason}). Discarding it and retrying (${count}).`;
  const text = `${theme.glyphs.retry} ${said}`;
  return wrapWords(text, columns, 2).map((line) => theme.paint('warn', line));
}

/** The text above the first prompt. It is not Markdown, because Markdown takes longer to load than the rest of the
 * screen. */
export interface Greeting {
  readonly name: string;
  /** Follows the name. */
  readonly line: string;
  /** The lines below it. */
  readonly more?: readonly string[];
}

/** Returns a greeting as lines. */
export function greetingLines(
  { name, line, more = [] }: Greeting,
  { theme, columns }: Pick<ItemStyle, 'theme' | 'columns'>,
): string[] {
  const head = theme.paint('bold', sanitize(name)) + sanitize(line);
  return [head, ...more.map((text) => sanitize(text))].flatMap((text) => wrapWords(text, columns));
}

/** A notice is always broken at words: nobody copies it. */
export function noticeLines(
  level: 'info' | 'warn' | 'error',
  message: string,
  { theme, columns }: Pick<ItemStyle, 'theme' | 'columns'>,
): string[] {
  const [first = '', ...rest] = sanitize(message).split('\n');
  const info = theme.paint('dim', theme.glyphs.dot);
  const sign =
    level === 'error' ? theme.paint('bad', theme.glyphs.bad) : level === 'warn' ? theme.paint('warn', '!') : info;
  return [`${sign} ${first}`, ...rest.map((line) => `  ${line}`)].flatMap((line) =>
    wrapWords(expandTabs(line), columns, 2),
  );
}

function endLines(end: TurnEnd, style: ItemStyle): string[] {
  switch (end.status) {
    case 'completed':
      return [];
    case 'interrupted':
      return [style.theme.paint('warn', `${style.theme.glyphs.bad} Interrupted.`)];
    case 'limit_reached':
      return noticeLines(
        'warn',
        end.fault
          ? faultText(end)
          : end.limit === 'repeated_calls'
            ? 'Stopped: the same call kept giving the same result.'
            : `Stopped after ${end.turns} responses with tool calls.`,
        style,
      );
    case 'failed':
      return noticeLines('error', faultText(end), style);
    default:
      return end.status satisfies never;
  }
}

function limitHint(retryAt: number, now: number): string {
  const when = `The limit ends ${limitTime(retryAt, now)}, in ${limitSpan(retryAt - now)}.`;
  return `${when} /wait waits for it and continues; /model uses another model.`;
}

function faultText(end: TurnEnd): string {
  if (!end.fault) return 'The turn failed.';
  const { message, retryAt } = end.fault;
  const hint = retryAt === undefined ? end.fault.hint : limitHint(retryAt, Date.now());
  return hint === undefined ? message : `${message}\n${hint}`;
}

const shortText = { rows: 12, head: 3, tail: 2 };

/** Returns the lines of a text that a person sent. Of a long one, which is mostly pasted, only the first and last
 * lines. */
function sentLines(text: string, seq: number, style: { readonly theme: Theme; readonly columns: number }): string[] {
  const lines = sanitize(withoutEnd(text, '\n'))
    .split('\n')
    .map((line) => expandTabs(line));
  const heights = lines.map((line) => wrapLine(line, style.columns).length);
  const rows = heights.reduce((sum, height) => sum + height, 0);
  if (rows <= shortText.rows) return lines;
  const cut = (line: string): string => {
    const first = wrapLine(line.slice(0, style.columns * 4), style.columns - 4);
    return first.length > 2
      ? first
          .slice(0, 2)
          .map((row) => row.text)
          .join('') + style.theme.glyphs.ellipsis
      : line;
  };
  const hidden = lines.length - shortText.head - shortText.tail;
  if (hidden <= 0) return [...lines.map(cut), style.theme.paint('dim', `[long lines, /show ${seq}]`)];
  const chip = style.theme.paint('dim', `[${hidden} more ${hidden === 1 ? 'line' : 'lines'}, /show ${seq}]`);
  return [...lines.slice(0, shortText.head).map(cut), chip, ...lines.slice(-shortText.tail).map(cut)];
}

/** Whole seconds, for what still runs: `3s`, `2m 03s`. */
export function formatElapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000));
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m ${String(seconds % 60).padStart(2, '0')}s`;
}

/** `950`, `12.3k`, `1.2M`. */
export function formatCount(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 999_500) return `${(count / 1_000).toFixed(count < 99_950 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatCost(usd: number): string {
  return usd > 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}
