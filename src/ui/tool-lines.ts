import { isError, parseEnvelope, type Envelope } from '../core/envelope.js';
import type { ToolResultData } from '../core/event.js';
import { isRecord } from '../core/json.js';
import { decisionText } from './panels/decision-text.js';
import { changeLines } from './diff-lines.js';
import { formatDuration } from './format.js';
import { wrapLine } from './rows.js';
import { sanitize } from './sanitize.js';
import { splitStyledLines } from './sgr.js';
import type { Theme } from './theme.js';
import { expandTabs, unjoined } from './width.js';

/** How much of a result is printed: up to `maxRows` rows of it, the few rows that tell most, or only its summary. */
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
  style: { readonly theme: Theme; readonly columns: number },
): string[] {
  const { theme } = style;
  const envelope = parseEnvelope(result.output);
  const summary = wholeSummary(cutSummary, envelope);
  const good =
    result.success && !isError(envelope) && (typeof envelope.exit_code !== 'number' || envelope.exit_code === 0);
  const sign = good ? theme.paint('good', theme.glyphs.good) : theme.paint('bad', theme.glyphs.bad);
  const head = `${sign} ${decisionText(summary, { lines: false })} ${theme.paint('dim', `(${formatDuration(result.duration_ms)})`)}`;
  if (detail.show === 'line') return [head];
  const body = result.diff === undefined ? outputOf(envelope, summary) : result.diff;
  if (body.trim() === '') return [head];
  const part = partOf(result, detail);
  const paint = result.diff === undefined ? null : (lines: string[]): string[] => changeLines(lines, theme);
  return [head, ...partRows(body, part, `Ctrl-O or /show ${seq}`, style, paint)];
}

function partOf({ name, diff }: ToolResultData, { show, maxRows }: ResultDetail): Part {
  if (show === 'full') return { rows: maxRows, from: 'start' };
  const ofDiff = diff?.startsWith('--- /dev/null') === true ? newFileHead : changeHead;
  const part = diff === undefined ? (headParts[name] ?? otherHead) : ofDiff;
  return { ...part, rows: Math.min(part.rows, maxRows) };
}

/** A summary that is the beginning of the error, cut, as the whole of it. */
function wholeSummary(summary: string, envelope: Envelope): string {
  return isError(envelope) && summary.endsWith('…') && envelope.error.startsWith(summary.slice(0, -1))
    ? envelope.error
    : summary;
}

/** The text a reader wants of an envelope; nothing where the summary says it already. */
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

/** A part of a text in rows as the terminal wraps them, and how many lines are left out and `where` one sees them. */
function partRows(
  text: string,
  part: Part,
  where: string,
  style: { readonly theme: Theme; readonly columns: number },
  paint: ((lines: string[]) => string[]) | null,
): string[] {
  const whole = text.replace(/\n+$/, '');
  const bounded = part.from === 'start' ? whole.slice(0, headChars) : whole.slice(-headChars);
  const clean = unjoined(sanitize(bounded, { colors: style.theme.colors && paint === null }));
  const lines = (paint ? paint(clean.split('\n')) : splitStyledLines(clean)).map((line) => expandTabs(line));
  const kept = takeRows(lines, part, style.columns);
  if (kept.length === lines.length && bounded.length === whole.length) return kept;
  const hidden = (bounded.length === whole.length ? lines.length : whole.split('\n').length) - kept.length;
  const { ellipsis } = style.theme.glyphs;
  const note = style.theme.paint('dim', `${ellipsis} +${hidden} ${hidden === 1 ? 'line' : 'lines'}, ${where}`);
  return part.from === 'start' ? [...kept, note] : [note, ...kept];
}

/** Whole lines that fit into the rows of `part`; a line that is much longer is left out. */
function takeRows(lines: readonly string[], { rows: most, from }: Part, columns: number): string[] {
  const inOrder = from === 'start' ? lines : lines.toReversed();
  const kept: string[] = [];
  let rows = 0;
  for (const line of inOrder) {
    const height = wrapLine(line, columns).length;
    if (rows + height > most && (rows > 0 || height > most * 2)) break;
    rows += height;
    kept.push(line);
  }
  return from === 'start' ? kept : kept.toReversed();
}

const shortText = { rows: 12, head: 3, tail: 2 };

/** A text that a person sent: a long one, pasted for the most part, as its first and last lines. */
export function sentLines(
  text: string,
  seq: number,
  style: { readonly theme: Theme; readonly columns: number },
): string[] {
  const lines = sanitize(text.replace(/\n+$/, ''))
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
