import { firstLine, withoutEnd } from '../kernel/core/text.js';
import { type Envelope, isError, parseEnvelope } from '../kernel/core/envelope.js';
import { type ToolResultData, tookMs } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import type { TurnEnd } from '../kernel/core/session-port.js';
import { expandTabs, splitStyledLines, unjoined, wrapLine, wrapWords } from './terminal/rows.js';
import { decisionText, sanitize } from '../kernel/core/sanitize.js';
import { changeLines } from './diff-lines.js';
import type { KeyOf } from './editor/keybindings.js';
import type { MarkdownStyle, WrapMode } from './markdown/blocks.js';
import type { Theme } from '../kernel/console/theme.js';
import type { TranscriptItem } from './view.js';

export interface ItemStyle {
  readonly theme: Theme;
  readonly columns: number;
  readonly detail: ResultDetail;
  readonly wrap?: WrapMode | undefined;
  readonly link?: MarkdownStyle['link'];
  /** Missing where no keys are read. */
  readonly keyOf?: KeyOf | undefined;
}

/** Returns a finished item as lines. An assistant's text is not among them, because it streams. */
export function itemLines(item: Exclude<TranscriptItem, { readonly type: 'assistant' }>, style: ItemStyle): string[] {
  const { theme } = style;
  switch (item.type) {
    case 'user':
      return userLines(item.text, item.seq, style);
    case 'reasoning':
      return reasoningLines(item.text, style);
    case 'call':
      return [callLine(item.title, theme)];
    case 'result':
      return resultLines(item.summary, item.result, item.seq, style.detail, style);
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

function userLines(text: string, seq: number, style: ItemStyle): string[] {
  const { glyphs, paint } = style.theme;
  return sentLines(text, seq, style).map((line, index) => (index === 0 ? paint('prompt', glyphs.prompt) + line : line));
}

const maxCommandLength = 500;

/** Returns the first line of a command that the user typed, laid out as their messages are. */
export function commandLines(line: string, style: ItemStyle): string[] {
  const { glyphs, paint } = style.theme;
  return [paint('prompt', glyphs.prompt) + paint('user', expandTabs(sanitize(firstLine(line, maxCommandLength))))];
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
  const count = `try ${item.attempt} of ${item.maxRetries}`;
  const said = `The answer above broke off (${reason}); it is void and asked for again, ${count}.`;
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
            ? 'Stopped: the same call gave the same result again and again.'
            : `Stopped after ${end.turns} responses that asked for tools.`,
        style,
      );
    case 'failed':
      return noticeLines('error', faultText(end), style);
    default:
      return end.status satisfies never;
  }
}

function faultText(end: TurnEnd): string {
  if (!end.fault) return 'The turn failed.';
  return end.fault.hint === undefined ? end.fault.message : `${end.fault.message}\n${end.fault.hint}`;
}

/** The printed part of a result: up to `maxRows` rows of it, the few most important rows, or only its summary. */
export interface ResultDetail {
  readonly show: 'full' | 'head' | 'line';
  readonly maxRows: number;
}

/** A part of a text: so many of its rows, from its beginning or its end. */
interface Part {
  readonly rows: number;
  readonly from: 'start' | 'end';
}

const headParts: Readonly<Record<string, Part>> = {
  bash: { rows: 12, from: 'end' },
  file_read: { rows: 3, from: 'start' },
  grep: { rows: 8, from: 'start' },
  glob: { rows: 8, from: 'start' },
};
const otherHead: Part = { rows: 12, from: 'start' };
const newFileHead: Part = { rows: 20, from: 'start' };
const changeHead: Part = { rows: 40, from: 'start' };

/** No output is looked at beyond this many characters for its first rows. */
const headChars = 65_536;

/** `↪ bash(command="npm test")`, escaped: a title cannot forge a second line. */
export function callLine(title: string, theme: Theme): string {
  const text = decisionText(title, { lines: false });
  const open = text.indexOf('(');
  const name = open > 0 ? text.slice(0, open) : text;
  return `${theme.paint('call', theme.glyphs.call)} ${theme.paint('bold', name)}${text.slice(name.length)}`;
}

/** `✔ 3 files found (34ms)` and below it what the tool gave. */
export function resultLines(
  cutSummary: string,
  result: ToolResultData,
  seq: number,
  detail: ResultDetail,
  style: Pick<ItemStyle, 'theme' | 'columns' | 'keyOf'>,
): string[] {
  const { theme } = style;
  const envelope = parseEnvelope(result.output);
  const summary = wholeSummary(cutSummary, envelope);
  const good =
    result.success && !isError(envelope) && (typeof envelope.exit_code !== 'number' || envelope.exit_code === 0);
  const sign = good ? theme.paint('good', theme.glyphs.good) : theme.paint('bad', theme.glyphs.bad);
  const head = `${sign} ${decisionText(summary, { lines: false })}${took(result, theme)}`;
  if (detail.show === 'line') return [head];
  const body = result.diff === undefined ? outputOf(envelope, summary) : result.diff;
  if (body.trim() === '') return [head];
  const part = partOf(result, detail);
  const paint = result.diff === undefined ? null : (lines: string[]): string[][] => changeLines(lines, style);
  const key = style.keyOf?.('show_last') ?? null;
  return [head, ...partRows(body, part, `${key === null ? '' : `${key} or `}/show ${seq}`, style, paint)];
}

/** Says how long it took, where that is known: a call that never ran, and a writer that keeps no times, say 0. */
function took(result: ToolResultData, theme: Theme): string {
  const ms = tookMs(result);
  return ms === null || ms === 0 ? '' : ` ${theme.paint('dim', `(${formatDuration(ms)})`)}`;
}

function partOf({ name, diff }: ToolResultData, { show, maxRows }: ResultDetail): Part {
  if (show === 'full') return { rows: maxRows, from: 'start' };
  const ofDiff = diff?.startsWith('--- /dev/null') === true ? newFileHead : changeHead;
  const part = diff === undefined ? (headParts[name] ?? otherHead) : ofDiff;
  return { ...part, rows: Math.min(part.rows, maxRows) };
}

/** Returns the whole error if the summary is its cut beginning. */
function wholeSummary(summary: string, envelope: Envelope): string {
  return isError(envelope) && summary.endsWith('…') && envelope.error.startsWith(summary.slice(0, -1))
    ? envelope.error
    : summary;
}

/** Returns the text of an envelope for a reader; nothing if the summary says it already. */
function outputOf(envelope: Envelope, summary: string): string {
  if (!isError(envelope)) return envelope.output === summary ? '' : envelope.output;
  const details = envelope.details;
  const rest =
    isRecord(details) && typeof details.output === 'string'
      ? details.output
      : details === undefined
        ? ''
        : JSON.stringify(details);
  const lead = summary.includes(envelope.error) ? '' : envelope.error;
  return [lead, rest].filter((part) => part !== '').join('\n');
}

/** Returns a part of a text in rows as the terminal wraps them, and a note on how many lines are left out and `where`
 * they can be seen. */
function partRows(
  text: string,
  part: Part,
  where: string,
  style: { readonly theme: Theme; readonly columns: number },
  paint: ((lines: string[]) => string[][]) | null,
): string[] {
  const whole = withoutEnd(text, '\n');
  const bounded = part.from === 'start' ? whole.slice(0, headChars) : whole.slice(-headChars);
  const clean = unjoined(sanitize(bounded, { colors: style.theme.colors && paint === null }));
  const lines = paint ? paint(clean.split('\n')) : splitStyledLines(clean).map((line) => [expandTabs(line)]);
  const kept = takeRows(lines, part, style.columns);
  const shown = kept.flat();
  if (kept.length === lines.length && bounded.length === whole.length) return shown;
  const hidden = (bounded.length === whole.length ? lines.length : whole.split('\n').length) - kept.length;
  const { ellipsis } = style.theme.glyphs;
  const note = style.theme.paint('dim', `${ellipsis} +${hidden} ${hidden === 1 ? 'line' : 'lines'}, ${where}`);
  return part.from === 'start' ? [...shown, note] : [note, ...shown];
}

/** Returns the whole lines that fit into the rows of `part`; a line that is much longer is left out. */
function takeRows(
  lines: readonly (readonly string[])[],
  { rows: most, from }: Part,
  columns: number,
): (readonly string[])[] {
  const inOrder = from === 'start' ? lines : lines.toReversed();
  const kept: (readonly string[])[] = [];
  let rows = 0;
  for (const line of inOrder) {
    const height = line.reduce((sum, row) => sum + wrapLine(row, columns).length, 0);
    if (rows + height > most && (rows > 0 || height > most * 2)) break;
    rows += height;
    kept.push(line);
  }
  return from === 'start' ? kept : kept.toReversed();
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
  if (rows <= shortText.rows) return lines.map((line) => style.theme.paint('user', line));
  const cut = (line: string): string => {
    const first = wrapLine(line.slice(0, style.columns * 4), style.columns - 4);
    return first.length > 2
      ? first
          .slice(0, 2)
          .map((row) => row.text)
          .join('') + style.theme.glyphs.ellipsis
      : line;
  };
  const bold = (line: string): string => style.theme.paint('user', cut(line));
  const hidden = lines.length - shortText.head - shortText.tail;
  if (hidden <= 0) return [...lines.map(bold), style.theme.paint('dim', `[long lines, /show ${seq}]`)];
  const chip = style.theme.paint('dim', `[${hidden} more ${hidden === 1 ? 'line' : 'lines'}, /show ${seq}]`);
  return [...lines.slice(0, shortText.head).map(bold), chip, ...lines.slice(-shortText.tail).map(bold)];
}

/** `34ms`, `1.2s`, `2m 03s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)}ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)}s`;
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)}m ${String(seconds % 60).padStart(2, '0')}s`;
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
