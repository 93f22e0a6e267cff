import { type Envelope, isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { type ToolResultData, tookMs } from '../../kernel/core/event.js';
import { revealHidden } from '../../kernel/core/sanitize.js';
import type { Theme } from '../../kernel/console/theme.js';
import { editedLines, placeLines } from '../diff-lines.js';
import type { ItemStyle } from '../item-style.js';
import { expandTabs, textWidth, unjoined, wrapWords } from '../terminal/rows.js';
import { type CallBlock, callOutcome, type CallReading, newOutput, readCall, type CallText } from './call-readings.js';
import { changedFileRows, detailRows, outputRows, type ResultStyle } from './result-rows.js';

/** A call that has ended. `call` is null where only its result is known. */
export interface FinishedCall {
  readonly seq: number;
  readonly call: CallText | null;
  /** The user was asked and allowed it. */
  readonly allowed: boolean;
  readonly summary: string;
  readonly result: ToolResultData;
}

/** Returns a call that has ended, in rows: `✔ read src/main.ts · 6 lines`, what it was about where that needs lines of
 * its own, and its result. */
export function finishedCallRows(finished: FinishedCall, itemStyle: ItemStyle): readonly string[] {
  const { result, seq } = finished;
  const { theme, columns, detail } = itemStyle;
  const call = finished.call ?? { name: result.name, arguments: '' };
  const style: ResultStyle = { ...itemStyle, name: call.name, seq };
  const envelope = parseEnvelope(result.output);
  const reading = readCall(call);
  const outcome = shortOutcome(finished, call, theme.glyphs.minus);
  const head = `${signOf(result, theme)} ${headText(reading, theme, detail.show === 'line')}`;
  const row = head + factsOf(finished, outcome, theme);
  // A long error is a sentence of its own.
  const isApart = isError(envelope) && textWidth(row) > columns;
  const rows = proseRows(isApart ? head + factsOf(finished, '', theme) : row, style);
  const error = isApart ? proseRows(outcome, style) : [];
  if (detail.show === 'line') return [...rows, ...error];
  const blocks = blockRows(reading.blocks, result.diff === undefined, style);
  const output = resultRows({ call, envelope, outcome, diff: result.diff }, style);
  const isUnmarked = !theme.colors && blocks.length > 0 && error.length + output.length > 0;
  const mark = isUnmarked && result.diff === undefined ? ['result:'] : [];
  return [...rows, ...blocks, ...mark, ...error, ...output];
}

/** Returns the row of a call that runs, in one line however long it is. */
export function runningCallRow(call: CallText, elapsed: string, theme: Theme): string {
  const facts = theme.paint('dim', ` ${theme.glyphs.dot} ${elapsed}`);
  return `${theme.paint('call', theme.glyphs.ellipsis)} ${headText(readCall(call), theme, true)}${facts}`;
}

/** Returns the verb, the subject and the further parameters. `isAll`: no blocks follow, so the first line of the first
 * one says what the call is about. */
function headText({ verb, subject, more, blocks }: CallReading, theme: Theme, isAll: boolean): string {
  const about = isAll && subject === '' ? firstLineOf(blocks[0], theme) : subject;
  const parts = [
    theme.paint('bold', cleanLine(verb)),
    cleanLine(about),
    ...more.map((text) => theme.paint('dim', cleanLine(text))),
  ];
  return parts.filter((part) => part !== '').join(' ');
}

function firstLineOf(block: CallBlock | undefined, { glyphs }: Theme): string {
  if (!block || block.kind === 'change') return '';
  const lines = block.text.split('\n').filter((line) => line.trim() !== '');
  return (lines[0] ?? '') + (lines.length > 1 ? ` ${glyphs.ellipsis}` : '');
}

function cleanLine(line: string): string {
  return expandTabs(unjoined(line));
}

function signOf(result: ToolResultData, { paint, glyphs }: Theme): string {
  return isGoodResult(result) ? paint('good', glyphs.good) : paint('bad', glyphs.bad);
}

/** False for a call that failed, and for a command that ended with another exit code than 0. */
export function isGoodResult({ success, output }: Pick<ToolResultData, 'success' | 'output'>): boolean {
  const envelope = parseEnvelope(output);
  return success && !isError(envelope) && (typeof envelope.exit_code !== 'number' || envelope.exit_code === 0);
}

/** Returns the outcome of a call in a few words; nothing where the output says the same in its first line. `minus`: the
 * sign before a number of removed lines. */
export function shortOutcome(
  { summary: cut, result }: Pick<FinishedCall, 'summary' | 'result'>,
  call: CallText,
  minus = '−',
): string {
  const envelope = parseEnvelope(result.output);
  const summary = wholeSummary(cut, envelope);
  const said = callOutcome(call, { summary, envelope, counts: changeCounts(result.diff) });
  const text = revealHidden(said)
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/^−|(?<= )−(?=\d)/g, minus);
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

function factsOf({ result, allowed }: FinishedCall, outcome: string, { paint, glyphs }: Theme): string {
  const ms = tookMs(result) ?? 0;
  const facts = [outcome, ms < leastShownMs ? '' : formatDuration(ms), allowed ? 'you allowed it' : ''];
  return paint('dim', facts.flatMap((fact) => (fact === '' ? [] : [` ${glyphs.dot} ${fact}`])).join(''));
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

interface Ended {
  readonly call: CallText;
  readonly envelope: Envelope;
  /** The outcome in the row of the call, or below it. */
  readonly outcome: string;
  readonly diff: string | undefined;
}

function resultRows({ call, envelope, outcome, diff }: Ended, style: ResultStyle): readonly string[] {
  if (diff !== undefined) return changedFileRows(diff, style);
  if (!isError(envelope)) {
    const output = newOutput(call, envelope.output);
    return output === outcome ? [] : outputRows(output, style);
  }
  const isSaid = outcome.includes(envelope.error.replace(/\s+/g, ' ').trim());
  const error = isSaid ? [] : proseRows(revealHidden(envelope.error), style);
  return [...error, ...detailRows(envelope, style)];
}
