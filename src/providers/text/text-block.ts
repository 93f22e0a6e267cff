import type { ReceivedCall } from '../../core/provider.js';
import { callsInJson, isWholeJson, type ToolSchemas } from './text-calls.js';
import type { Form } from './text-forms.js';

/** A place where a call may have begun, and how it is read on. */
export interface Block {
  /** Takes the text so far, from the block's first character on; `final`: there is no more. The same block is given
   * longer texts each time. */
  read(text: string, final: boolean): BlockState;
}

/** `wait`: more text is needed. `calls`: the block is whole and `length` long. `text`: it is no call; its first
 * `length` characters are shown. */
export type BlockState =
  | { readonly state: 'wait' }
  | { readonly state: 'calls'; readonly calls: readonly ReceivedCall[]; readonly length: number }
  | { readonly state: 'text'; readonly length: number };

const wait: BlockState = { state: 'wait' };
/** Closings that are tried for one block, and units of text that one may have: a hostile answer must not cost more than
 * its length allows. */
const maxClosings = 32;
const maxUnits = 2 * 1024 * 1024;

/** A block between a form's opening and one of its closings. */
export function closedBlock(form: Form, tools: ToolSchemas): Block {
  return closingBlock(
    {
      start: form.open.length,
      next: (text, from) => firstOf(text, form.close, from),
      overlap: Math.max(0, ...form.close.map((close) => close.length - 1)),
      read: (body) => form.read(body, tools),
      isOver: (body) => !/^\s*(?:[[{]|<(?:parameter|param|arg_value)\b)/.test(body),
    },
    tools,
  );
}

/** A fence of JSON: `head` is its first line. */
export function fencedBlock(head: string, tools: ToolSchemas): Block {
  return closingBlock(
    {
      start: head.length,
      next: (text, from) => firstOf(text, ['```'], from),
      overlap: 2,
      read: (body) => callsInJson(body, tools, 'fenced'),
      isOver: isWholeJson,
    },
    tools,
  );
}

interface Closing {
  readonly at: number;
  readonly length: number;
}

interface Closings {
  /** Where the body starts. */
  readonly start: number;
  /** The next place at which the block may end. */
  next(text: string, from: number): Closing | null;
  /** Characters of a closing that may stand at the end of a text. */
  readonly overlap: number;
  read(body: string): readonly ReceivedCall[] | null;
  /** True where the closing cannot have stood inside an argument. */
  isOver(body: string): boolean;
}

/** A closing that stands inside an argument is passed over. A block that is not closed counts only where its JSON is
 * whole; one that is closed and broken goes back to the model as a call whose arguments are no JSON. */
function closingBlock(closings: Closings, tools: ToolSchemas): Block {
  const state: Tried = { searched: closings.start, count: 0, broken: null };
  return {
    read(text, final) {
      const settled = tryClosings(text, closings, tools, state);
      if (settled !== null) return settled;
      if (!final) {
        state.searched = Math.max(state.searched, text.length - closings.overlap);
        return wait;
      }
      const body = text.slice(closings.start);
      const calls = isWholeJson(body) ? closings.read(body) : null;
      return calls === null
        ? (state.broken ?? { state: 'text', length: closings.start })
        : { state: 'calls', calls, length: text.length };
    },
  };
}

interface Tried {
  searched: number;
  count: number;
  broken: BlockState | null;
}

function tryClosings(text: string, closings: Closings, tools: ToolSchemas, state: Tried): BlockState | null {
  for (let close = closings.next(text, state.searched); close !== null; close = closings.next(text, state.searched)) {
    if (++state.count > maxClosings || close.at > maxUnits)
      return state.broken ?? { state: 'text', length: text.length };
    state.searched = close.at + close.length;
    const body = text.slice(closings.start, close.at);
    const length = close.at + close.length;
    const calls = closings.read(body);
    if (calls !== null) return { state: 'calls', calls, length };
    state.broken ??= malformed(body, tools, length);
    if (closings.isOver(body)) return state.broken ?? { state: 'text', length };
  }
  return null;
}

/** JSON that ends where its brackets do, behind a mark (`prefix`) or bare. */
export function jsonBlock(prefix: number, read: (body: string) => readonly ReceivedCall[] | null): Block {
  const brackets = { at: prefix, depth: 0, inString: false };
  return {
    read(text, final) {
      while (brackets.at < text.length) {
        if (!countBracket(text, brackets)) continue;
        const calls = read(text.slice(prefix, brackets.at));
        if (calls !== null) return { state: 'calls', calls, length: brackets.at };
        return { state: 'text', length: brackets.at };
      }
      return final ? { state: 'text', length: Math.min(prefix + 1, text.length) } : wait;
    },
  };
}

/** Passes one character; true where it closes the outermost bracket. */
function countBracket(text: string, brackets: { at: number; depth: number; inString: boolean }): boolean {
  const character = text[brackets.at++] ?? '';
  if (brackets.inString) {
    if (character === '\\') brackets.at++;
    else if (character === '"') brackets.inString = false;
    return false;
  }
  if ('{['.includes(character)) brackets.depth++;
  if (brackets.depth === 0) return false;
  if (character === '"') brackets.inString = true;
  return '}]'.includes(character) && --brackets.depth === 0;
}

function firstOf(text: string, closers: readonly string[], from: number): Closing | null {
  const found = closers
    .map((close) => ({ at: text.indexOf(close, from), length: close.length }))
    .filter(({ at }) => at >= 0);
  return found.reduce<Closing | null>((best, next) => (best === null || next.at < best.at ? next : best), null);
}

/** A closed block with a known tool and JSON that nobody can read: the model is told by the error that the arguments
 * get. */
function malformed(body: string, tools: ToolSchemas, length: number): BlockState | null {
  const name = namedTool(body, tools);
  return name === null ? null : { state: 'calls', calls: [{ id: '', name, arguments: body.trim() }], length };
}

/** The known tool that a broken call names. */
export function namedTool(text: string, tools: ToolSchemas): string | null {
  const name =
    /["'](?:tool|name)["']\s*:\s*["']([^"']+)["']/.exec(text)?.[1] ??
    /<(?:function=|invoke name=["'])([\w.-]+)/.exec(text)?.[1];
  return name !== undefined && tools.has(name) ? name : null;
}
