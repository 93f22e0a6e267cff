import { type Envelope, isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { type ToolResultData, tookMs } from '../../kernel/core/event.js';
import { revealHidden } from '../../kernel/core/sanitize.js';
import type { Theme } from '../../kernel/console/theme.js';
import { editedLines, placeLines } from '../diff-lines.js';
import type { ItemStyle } from '../item-style.js';
import { expandTabs, textWidth, unjoined, wrapWords } from '../terminal/rows.js';
import {
  type CallBlock,
  callOutcome,
  type CallReading,
  hidesOutput,
  readCall,
  type RecordedCall,
} from './call-readings.js';
import { changedFileRows, detailRows, outputRows, type ResultStyle } from './result-rows.js';

/** A call that has ended. `call` is null where only its result is known. */
export interface FinishedCall {
  readonly seq: number;
  readonly call: RecordedCall | null;
  /** The user was asked and allowed it. */
  readonly allowed: boolean;
  readonly summary: string;
  readonly result: ToolResultData;
}

/** Returns a call that has ended, in rows: `✔ read src/main.ts · 6 lines`, what it was about where that needs lines of
 * its own, and its result. */
export function finishedCallRows(finished: FinishedCall, itemStyle: ItemStyle): readonly string[] {
  const { result, seq } = finished;
  const { theme } = itemStyle;
  const call = finished.call ?? { name: result.name, arguments: '' };
  const style: ResultStyle = { ...itemStyle, name: call.name, seq };
  const envelope = parseEnvelope(result.output);
  const reading = readCall(call);
  const outcome = outcomeOf(finished, call, envelope, theme);
  const head = [signOf(result, envelope, theme), headText(reading, style)].join(' ');
  const row = [head, ...factsOf(finished, outcome, theme)].join('');
  const isLong = isError(envelope) && textWidth(row) > style.columns;
  const rows = isLong
    ? [...proseRows([head, ...factsOf(finished, '', theme)].join(''), style), ...proseRows(outcome, style)]
    : proseRows(row, style);
  if (style.detail.show === 'line') return rows;
  const blocks = blockRows(reading.blocks, result.diff === undefined, style);
  const output = resultRows(envelope, result, outcome, style);
  const apart = !theme.colors && blocks.length > 0 && output.length > 0 && result.diff === undefined ? ['result:'] : [];
  return [...rows, ...blocks, ...apart, ...output];
}

/** Returns the row of a call that runs, in one line however long it is. */
export function runningCallRow(call: RecordedCall, elapsed: string, theme: Theme): string {
  const reading = readCall(call);
  const [first] = reading.blocks;
  const about = reading.subject === '' && first?.kind !== 'change' ? firstLineOf(first) : '';
  const text = [headText(reading, { theme, detail: { show: 'full' } }), about].filter((part) => part !== '').join(' ');
  return `${theme.paint('call', theme.glyphs.ellipsis)} ${text}${theme.paint('dim', ` ${theme.glyphs.dot} ${elapsed}`)}`;
}

function firstLineOf(block: Exclude<CallBlock, { readonly kind: 'change' }> | undefined): string {
  const lines = (block?.text ?? '').split('\n').filter((line) => line.trim() !== '');
  return cleanLine(lines[0] ?? '') + (lines.length > 1 ? ' …' : '');
}

function cleanLine(line: string): string {
  return expandTabs(unjoined(line));
}

function headText(
  reading: CallReading,
  { theme, detail }: Pick<ItemStyle, 'theme'> & { readonly detail: { readonly show: string } },
): string {
  const { verb, subject, more, blocks } = reading;
  const [first] = blocks;
  // Where blocks are not shown, the first line says what the call is about.
  const about =
    detail.show === 'line' && subject === '' && first && first.kind !== 'change' ? firstLineOf(first) : subject;
  return [theme.paint('bold', cleanLine(verb)), cleanLine(about), ...more.map(cleanLine)]
    .filter((part) => part !== '')
    .join(' ');
}

function signOf(result: ToolResultData, envelope: Envelope, { paint, glyphs }: Theme): string {
  const hasFailed = typeof envelope.exit_code === 'number' && envelope.exit_code !== 0;
  return result.success && !isError(envelope) && !hasFailed ? paint('good', glyphs.good) : paint('bad', glyphs.bad);
}

/** Returns the outcome in a few words; nothing where the output says the same in its first line. */
function outcomeOf(
  { summary: cut, result }: FinishedCall,
  call: RecordedCall,
  envelope: Envelope,
  { glyphs }: Theme,
): string {
  const summary = wholeSummary(cut, envelope);
  const said = callOutcome(call, { summary, envelope, counts: changeCounts(result.diff) });
  const text = revealHidden(said)
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/^−|(?<= )−(?=\d)/g, glyphs.minus);
  if (isError(envelope) || envelope.output === said) return text;
  const beginning = said.endsWith('…') ? said.slice(0, -1) : said;
  return beginning !== '' && envelope.output.startsWith(beginning) ? '' : text;
}

/** Returns the whole error if the summary is its cut beginning. */
function wholeSummary(summary: string, envelope: Envelope): string {
  return isError(envelope) && summary.endsWith('…') && envelope.error.startsWith(summary.slice(0, -1))
    ? envelope.error
    : summary;
}

function changeCounts(diff: string | undefined): { readonly added: number; readonly removed: number } | null {
  if (diff === undefined) return null;
  const lines = diff.slice(diff.indexOf('\n@@') + 1).split('\n');
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
  return { added: count('+'), removed: count('-') };
}

/** Shorter times are not worth a word. */
const leastShownMs = 100;

function factsOf({ result, allowed }: FinishedCall, outcome: string, { paint, glyphs }: Theme): readonly string[] {
  const ms = tookMs(result) ?? 0;
  const facts = [outcome, ms < leastShownMs ? '' : formatDuration(ms), allowed ? 'you allowed it' : ''];
  return facts.filter((fact) => fact !== '').map((fact) => paint('dim', ` ${glyphs.dot} ${fact}`));
}

/** `0.1s`, `3.4s`, `2m 03s`. */
function formatDuration(milliseconds: number): string {
  if (milliseconds < 59_950) return `${(milliseconds / 1_000).toFixed(1)}s`;
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)}m ${String(seconds % 60).padStart(2, '0')}s`;
}

/** Breaks a line at words, unless the terminal wraps. */
function proseRows(line: string, { columns, wrap }: Pick<ItemStyle, 'columns' | 'wrap'>): readonly string[] {
  return wrap === 'terminal' ? [line] : wrapWords(line, columns);
}

function blockRows(blocks: readonly CallBlock[], showsChange: boolean, style: ItemStyle): readonly string[] {
  return blocks.flatMap((block, index) => [
    ...(index > 0 && block.kind === 'prose' ? [''] : []),
    ...rowsOf(block, showsChange, style),
  ]);
}

function rowsOf(block: CallBlock, showsChange: boolean, style: ItemStyle): readonly string[] {
  switch (block.kind) {
    case 'lines': {
      const lines = unjoined(block.text)
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => expandTabs(line));
      return block.name === undefined ? lines : [`${block.name}=`, ...lines];
    }
    case 'prose':
      return unjoined(block.text)
        .trimEnd()
        .split('\n')
        .flatMap((line) => proseRows(expandTabs(line), style));
    case 'markdown':
      return (
        style.markdown?.(block.text) ?? rowsOf({ kind: 'prose', text: revealHidden(block.text) }, showsChange, style)
      );
    case 'change': {
      if (!showsChange) return [];
      const [before, after] = [block.before, block.after].map((text) => (text === null ? '' : revealHidden(text)));
      return placeLines(editedLines(before ?? '', (after ?? '').replace(/\n$/, '')), style, null);
    }
    default:
      return block satisfies never;
  }
}

function resultRows(
  envelope: Envelope,
  result: ToolResultData,
  outcome: string,
  style: ResultStyle,
): readonly string[] {
  if (result.diff !== undefined) return changedFileRows(result.diff, style);
  if (!isError(envelope)) {
    const isSaid = envelope.output === outcome || hidesOutput(style.name);
    return isSaid ? [] : outputRows(envelope.output, style);
  }
  const error = outcome.includes(envelope.error.replace(/\s+/g, ' ').trim())
    ? []
    : proseRows(revealHidden(envelope.error), style);
  return [...error, ...detailRows(envelope, style)];
}
