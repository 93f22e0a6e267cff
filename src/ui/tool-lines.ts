import { isError, parseEnvelope, type Envelope } from '../core/envelope.js';
import type { ToolResultData } from '../core/event.js';
import { isRecord } from '../core/json.js';
import { decisionText } from './panels/decision-text.js';
import { paintDiff } from './diff-lines.js';
import { formatDuration } from './format.js';
import { wrapLine } from './rows.js';
import { sanitize } from './sanitize.js';
import { splitStyledLines } from './sgr.js';
import type { Theme } from './theme.js';
import { expandTabs } from './width.js';

/** How much of a result is printed: all of it, its first rows, or only its summary. */
export interface ResultDetail { readonly show: 'full' | 'head' | 'line'; readonly maxRows: number }

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
export function resultLines(cutSummary: string, result: ToolResultData, seq: number, detail: ResultDetail, style: { readonly theme: Theme; readonly columns: number }): string[] {
  const { theme } = style;
  const envelope = parseEnvelope(result.output);
  const summary = wholeSummary(cutSummary, envelope);
  const good = result.success && !isError(envelope) && (typeof envelope.exit_code !== 'number' || envelope.exit_code === 0);
  const sign = good ? theme.paint('good', theme.glyphs.good) : theme.paint('bad', theme.glyphs.bad);
  const head = `${sign} ${decisionText(summary, { lines: false })} ${theme.paint('dim', `(${formatDuration(result.duration_ms)})`)}`;
  if (detail.show === 'line') return [head];
  const body = result.diff === undefined ? outputOf(envelope, summary) : result.diff;
  if (body.trim() === '') return [head];
  const limit = detail.show === 'full' ? Number.POSITIVE_INFINITY : detail.maxRows;
  return [head, ...headRows(body, limit, seq, style, result.diff === undefined ? null : (lines) => paintDiff(lines, theme))];
}

/** A summary that is the beginning of the error, cut, as the whole of it. */
function wholeSummary(summary: string, envelope: Envelope): string {
  return isError(envelope) && summary.endsWith('…') && envelope.error.startsWith(summary.slice(0, -1)) ? envelope.error : summary;
}

/** The text a reader wants of an envelope; nothing where the summary says it already. */
function outputOf(envelope: Envelope, summary: string): string {
  if (!isError(envelope)) return envelope.output === summary ? '' : envelope.output;
  const details = envelope.details;
  const rest = isRecord(details) && typeof details.output === 'string' ? details.output : details === undefined ? '' : JSON.stringify(details);
  const lead = summary.includes(envelope.error) ? '' : envelope.error;
  return [lead, rest].filter((part) => part !== '').join('\n');
}

/** The first `maxRows` rows of a text as the terminal will wrap them, and how to see the rest. */
export function headRows(
  text: string, maxRows: number, seq: number, style: { readonly theme: Theme; readonly columns: number }, paint: ((lines: string[]) => string[]) | null = null,
): string[] {
  const bounded = maxRows === Number.POSITIVE_INFINITY ? text : text.slice(0, headChars);
  const clean = sanitize(bounded.replace(/\n+$/, ''), { colors: style.theme.colors && paint === null });
  const lines = paint ? paint(clean.split('\n')) : splitStyledLines(clean);
  const kept: string[] = [];
  let rows = 0;
  for (const line of lines) {
    const expanded = expandTabs(line);
    const height = wrapLine(expanded, style.columns).length;
    if (rows + height > maxRows && (rows > 0 || height > maxRows * 2)) break;
    rows += height;
    kept.push(expanded);
  }
  if (kept.length === lines.length && bounded.length === text.length) return kept;
  const hidden = text.replace(/\n+$/, '').split('\n').length - kept.length;
  const { ellipsis, dot } = style.theme.glyphs;
  return [...kept, style.theme.paint('dim', `${ellipsis} ${hidden} more ${hidden === 1 ? 'line' : 'lines'} ${dot} /show ${seq}`)];
}
