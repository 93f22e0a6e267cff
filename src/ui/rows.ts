import { applySgr, openSgr, sgrReset, type SgrState } from './sgr.js';
import { certainWidth, clusters, isCertain } from './width.js';

/** One row of the terminal. `text` begins and ends without attributes. */
export interface Row {
  readonly text: string;
  readonly width: number;
  /** It continues the row above: the terminal wrapped, nobody wrote a line break. */
  readonly soft: boolean;
  /** No SGR, and every character's width is beyond doubt: a difference may start inside the row. */
  readonly plain: boolean;
}

export const emptyRow: Row = { text: '', width: 0, soft: false, plain: true };

/** The rows that a terminal of `columns` makes of one line by wrapping it. No tabs, no line breaks in `line`. */
export function wrapLine(line: string, columns: number): readonly Row[] {
  if (line === '') return [emptyRow];
  const ascii = /^[\x20-\x7e]*$/.test(line);
  if (ascii) return sliceRows(line, Math.max(1, columns));
  return wrapStyled(line, Math.max(1, columns));
}

function sliceRows(line: string, columns: number): Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < line.length; at += columns) {
    const text = line.slice(at, at + columns);
    rows.push({ text, width: text.length, soft: at > 0, plain: true });
  }
  return rows;
}

function wrapStyled(line: string, columns: number): Row[] {
  const rows: Row[] = [];
  const state: SgrState = new Map();
  let text = '';
  let width = 0;
  let plain = true;
  const close = (): void => {
    rows.push({ text: state.size > 0 ? text + sgrReset : text, width, soft: rows.length > 0, plain });
    text = openSgr(state);
    plain = text === '';
    width = 0;
  };
  for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
    if (part.startsWith('\x1b[')) {
      applySgr(state, part.slice(2, -1));
      text += part;
      plain = false;
      continue;
    }
    if (!isCertain(part)) plain = false;
    for (const cluster of clusters(part)) {
      if (width + cluster.width > columns && width > 0) { close(); plain &&= isCertain(part); }
      text += cluster.text;
      width += cluster.width;
    }
  }
  close();
  return rows;
}

/** `line` without its first `count` columns, its attributes kept. */
export function dropColumns(line: string, count: number): string {
  const state: SgrState = new Map();
  let dropped = 0;
  let rest = '';
  for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
    if (part.startsWith('\x1b[')) {
      if (dropped < count) applySgr(state, part.slice(2, -1));
      else rest += part;
      continue;
    }
    for (const cluster of clusters(part)) {
      if (dropped >= count) { rest += rest === '' ? openSgr(state) + cluster.text : cluster.text; continue; }
      dropped += cluster.width;
    }
  }
  return rest;
}

/** Length of the part of two plain rows that is the same, in code units and in columns. */
export function commonPrefix(left: string, right: string): { readonly length: number; readonly columns: number } {
  const end = Math.min(left.length, right.length);
  let length = 0;
  let columns = 0;
  while (length < end && left.charCodeAt(length) === right.charCodeAt(length)) {
    columns += Math.max(0, certainWidth(left.charCodeAt(length)));
    length++;
  }
  return { length, columns };
}
