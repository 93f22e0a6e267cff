import type { TurnEnd } from '../core/session.js';
import type { MarkdownStyle, WrapMode } from './markdown/markdown-render.js';
import { wrapWords } from './rows.js';
import { sanitize } from './sanitize.js';
import type { Theme } from './theme.js';
import { callLine, resultLines, sentLines, type ResultDetail } from './tool-lines.js';
import type { Item } from './view.js';
import { expandTabs } from './width.js';

export interface ItemStyle {
  readonly theme: Theme;
  readonly columns: number;
  readonly detail: ResultDetail;
  readonly wrap?: WrapMode | undefined;
  readonly link?: MarkdownStyle['link'];
}

/** A finished item as lines; an assistant's text is not among them, it streams. */
export function itemLines(item: Exclude<Item, { readonly type: 'assistant' }>, style: ItemStyle): string[] {
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

function reasoningLines(text: string, style: ItemStyle): string[] {
  const { glyphs, paint } = style.theme;
  const lines = sanitize(text)
    .split('\n')
    .map((line, index) => expandTabs(index === 0 ? `${glyphs.ellipsis} ${line}` : line));
  return lines.flatMap((line) => prose(line, style)).map((line) => paint('dim', line));
}

/** The lines of a text of ours, broken at words; `indent` is that of the lines after the first. */
function prose(line: string, { columns, wrap }: Pick<ItemStyle, 'columns' | 'wrap'>, indent = 0): string[] {
  return wrap === 'terminal' ? [line] : wrapWords(line, columns, indent);
}

function voidLines(item: Extract<Item, { readonly type: 'void' }>, { theme, columns }: ItemStyle): string[] {
  const reason = sanitize(item.reason);
  const count = `try ${item.attempt} of ${item.maxRetries}`;
  const text = `${theme.glyphs.retry} The answer above broke off (${reason}); it is void and asked for again, ${count}.`;
  return wrapWords(text, columns, 2).map((line) => theme.paint('warn', line));
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
