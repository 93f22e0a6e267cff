import type { TurnEnd } from '../core/agent-event.js';
import type { WrapMode } from './markdown/markdown-render.js';
import { sanitize } from './sanitize.js';
import type { Theme } from './theme.js';
import { callLine, headRows, resultLines, type ResultDetail } from './tool-lines.js';
import type { Item } from './view.js';
import { expandTabs } from './width.js';

export interface ItemStyle { readonly theme: Theme; readonly columns: number; readonly detail: ResultDetail; readonly wrap?: WrapMode | undefined }

/** A finished item as lines; an assistant's text is not among them, it streams. */
export function itemLines(item: Exclude<Item, { readonly type: 'assistant' }>, style: ItemStyle): string[] {
  const { theme } = style;
  switch (item.type) {
    case 'user': return userLines(item.text, item.seq, style);
    case 'reasoning': return reasoningLines(item.text, theme);
    case 'call': return [callLine(item.title, theme)];
    case 'result': return resultLines(item.summary, item.result, item.seq, style.detail, style);
    case 'notice': return noticeLines(item.level, item.message, theme);
    case 'void': return [theme.paint('warn', `${theme.glyphs.retry} The answer above broke off (${sanitize(item.reason)}); it is void and asked for again, try ${item.attempt} of ${item.maxRetries}.`)];
    case 'ended': return endLines(item.end, theme);
    default: return item satisfies never;
  }
}

function userLines(text: string, seq: number, style: ItemStyle): string[] {
  const lines = headRows(text, style.detail.show === 'full' ? Number.POSITIVE_INFINITY : style.detail.maxRows, seq, style, (all) => all.map((line) => style.theme.paint('user', line)));
  return lines.map((line, index) => (index === 0 ? style.theme.paint('prompt', style.theme.glyphs.prompt) + line : line));
}

function reasoningLines(text: string, theme: Theme): string[] {
  return sanitize(text).split('\n').map((line, index) => theme.paint('dim', expandTabs(index === 0 ? `${theme.glyphs.ellipsis} ${line}` : line)));
}

export function noticeLines(level: 'info' | 'warn' | 'error', message: string, theme: Theme): string[] {
  const [first = '', ...rest] = sanitize(message).split('\n');
  const sign = level === 'error' ? theme.paint('bad', theme.glyphs.bad) : level === 'warn' ? theme.paint('warn', '!') : theme.paint('dim', theme.glyphs.dot);
  return [`${sign} ${first}`, ...rest.map((line) => `  ${line}`)];
}

function endLines(end: TurnEnd, theme: Theme): string[] {
  switch (end.status) {
    case 'completed': return [];
    case 'interrupted': return [theme.paint('warn', `${theme.glyphs.bad} Interrupted.`)];
    case 'limit_reached': return noticeLines('warn', end.fault ? faultText(end) : `Stopped after ${end.turns} responses that asked for tools.`, theme);
    case 'failed': return noticeLines('error', faultText(end), theme);
    default: return end.status satisfies never;
  }
}

function faultText(end: TurnEnd): string {
  if (!end.fault) return 'The turn failed.';
  return end.fault.hint === undefined ? end.fault.message : `${end.fault.message}\n${end.fault.hint}`;
}
