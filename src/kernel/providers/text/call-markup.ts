import { largestOf } from '../../core/lists.js';
import type { ReceivedCall } from '../../core/provider.js';
import { callOfTexts, callsInJson, findJson, isWholeJson, type ToolSchemas } from './found-calls.js';

/** A place where a call may begin, and how to read on from there. */
export interface Block {
  /** Takes the text from the block's first character on; `final`: no more follows. Each call for the same block passes
   * a longer text. */
  read(text: string, final: boolean): BlockState;
}

/** `wait`: more text is needed. `calls`: the block is whole and `length` characters long. `text`: it is not a call, and
 * its first `length` characters are shown. */
type BlockState =
  | { readonly state: 'wait' }
  | { readonly state: 'calls'; readonly calls: readonly ReceivedCall[]; readonly length: number }
  | { readonly state: 'text'; readonly length: number };

const wait: BlockState = { state: 'wait' };
/** The most closings that are tried for one block, and the most characters it may have: the cost of a hostile answer
 * must stay in proportion to its length. */
const maxClosings = 32;
const maxUnits = 2 * 1024 * 1024;

/** Returns a block between a form's opening and one of its closings. */
export function closedBlock(form: Form, tools: ToolSchemas): Block {
  return closingBlock(
    {
      start: form.open.length,
      next: (text, from) => firstOf(text, form.close, from),
      overlap: largestOf(
        form.close.map((close) => close.length - 1),
        0,
      ),
      read: (body) => form.read(body, tools),
      isOver: (body) => !/^\s*(?:[[{]|<(?:parameter|param|arg_value)\b)/.test(body),
    },
    tools,
  );
}

/** Returns a fence of JSON; `head` is its first line. */
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
  /** Index at which the body starts. */
  readonly start: number;
  /** The next place where the block may end. */
  next(text: string, from: number): Closing | null;
  /** The characters of a closing that may be cut off at the end of the text. */
  readonly overlap: number;
  read(body: string): readonly ReceivedCall[] | null;
  /** True where the closing cannot be part of an argument. */
  isOver(body: string): boolean;
}

/** Skips a closing inside an argument. A block without a closing counts only where its JSON is whole. A closed block
 * with broken JSON becomes a call whose arguments are no JSON, so that the model sees the error. */
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

/** Reads JSON that ends with its brackets, behind a mark (`prefix`) or bare. */
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

/** Makes a call from a closed block with a known tool and broken JSON: the error about its arguments shows the
 * model. */
function malformed(body: string, tools: ToolSchemas, length: number): BlockState | null {
  const name = namedTool(body, tools);
  return name === null ? null : { state: 'calls', calls: [{ id: '', name, arguments: body.trim() }], length };
}

/** Finds the known tool that a broken call names. */
export function namedTool(text: string, tools: ToolSchemas): string | null {
  const name =
    /["'](?:tool|name)["']\s*:\s*["']([^"']+)["']/.exec(text)?.[1] ??
    /<(?:function=|invoke name=["'])([\w.-]+)/.exec(text)?.[1];
  return name !== undefined && tools.has(name) ? name : null;
}

/** One way in which models write calls. A block runs from `open` to a `close`; without closers it ends where its JSON
 * ends. */
interface Form {
  readonly open: string;
  readonly close: readonly string[];
  /** The calls in a block's body, or null where it holds none. */
  read(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null;
}

/** The markups of the models' own training. Sources: the chat templates of Qwen, Hermes, GLM, DeepSeek, Mistral, Llama,
 * Kimi, Nemotron, MiniMax. */
export const markups: readonly Form[] = [
  { open: '<tool_call>', close: ['</tool_call>'], read: readToolCall },
  { open: '<function=', close: ['</function>'], read: readFunction },
  ...['<invoke name=', '<function name=', '<｜DSML｜invoke name='].map((open): Form => ({
    open,
    close: [`</${/[^<\s]+/.exec(open)?.[0] ?? ''}>`],
    read: readInvoke,
  })),
  ...['<｜tool▁call▁begin｜>', '<|tool▁call▁begin|>'].map((open): Form => ({
    open,
    close: [open.replace('begin', 'end')],
    read: readDeepSeek,
  })),
  { open: '<|tool_call_begin|>', close: ['<|tool_call_end|>'], read: readKimi },
  { open: '<TOOLCALL>', close: ['</TOOLCALL>'], read: readMarkedJson },
  { open: '<|START_ACTION|>', close: ['<|END_ACTION|>'], read: readMarkedJson },
  { open: '[TOOL_CALLS]', close: [], read: readMistral },
  { open: '<|python_tag|>', close: [], read: readMarkedJson },
  { open: '<|function_call|>', close: [], read: readMarkedJson },
  { open: 'functools', close: [], read: (body, tools) => (body.startsWith('[') ? readMarkedJson(body, tools) : null) },
];

/** Tags around calls that mean nothing themselves. */
export const wrappers: readonly string[] = [
  '<｜DSML｜function_calls>',
  '</｜DSML｜function_calls>',
  '<｜DSML｜tool_calls>',
  '</｜DSML｜tool_calls>',
  '<minimax:tool_call>',
  '</minimax:tool_call>',
  '<function_calls>',
  '</function_calls>',
  '<seed:tool_call>',
  '</seed:tool_call>',
  '</tool_call>',
  '<|tool_calls_section_begin|>',
  '<|tool_calls_section_end|>',
  '<｜tool▁calls▁begin｜>',
  '<｜tool▁calls▁end｜>',
  '<|tool▁calls▁begin|>',
  '<|tool▁calls▁end|>',
  '<｜end▁of▁sentence｜>',
  '<|end▁of▁sentence|>',
];

function readMarkedJson(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  return callsInJson(body, tools, 'marked');
}

/** Reads JSON (Hermes, Qwen), `<function=…>` (Qwen 3 Coder), or a name with `<arg_key>` and `<arg_value>` (GLM). */
function readToolCall(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const text = body.trim();
  if (text.startsWith('{') || text.startsWith('[')) return readMarkedJson(text, tools);
  const inner = /^<function=([\s\S]*?)(?:<\/function>\s*)?$/.exec(text)?.[1];
  if (inner !== undefined) return readFunction(inner, tools);
  const name = /^[\w.-]+/.exec(text)?.[0] ?? '';
  const given = [...text.matchAll(/<arg_key>([\s\S]*?)<\/arg_key>\s*<arg_value>([\s\S]*?)<\/arg_value>/g)].map(
    ([, key = '', value = '']) => [key.trim(), value] as const,
  );
  const rest = text
    .slice(name.length)
    .replace(/<arg_key>[\s\S]*?<\/arg_key>\s*<arg_value>[\s\S]*?<\/arg_value>/g, '')
    .trim();
  return name !== '' && rest === '' && (given.length > 0 || tools.has(name)) ? [callOfTexts(name, given, tools)] : null;
}

/** Reads `name>` and then `<parameter=key>` … (Qwen) or one object (Llama 3.1). */
function readFunction(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const head = /^\s*([\w.-]+)\s*>/.exec(body);
  if (head === null) return null;
  const [whole, name = ''] = head;
  const rest = body.slice(whole.length).trim();
  if (rest.startsWith('{')) {
    const found = findJson(rest);
    return found !== null && found.end === rest.length ? [{ id: '', name, arguments: found.json }] : null;
  }
  const given = [...rest.matchAll(/<parameter=([^>]+)>([\s\S]*?)(?:<\/parameter>|(?=\n<parameter=)|$)/g)].map(
    ([, key = '', value = '']) => [key.trim(), unpadded(value)] as const,
  );
  return given.length > 0 || rest === '' ? [callOfTexts(name, given, tools)] : null;
}

/** Returns the value without the line breaks that the form puts around it. */
function unpadded(value: string): string {
  return /^\r?\n/.test(value) ? value.replace(/^\r?\n/, '').replace(/\r?\n$/, '') : value;
}

/** Reads `"name">` and then `<parameter name="key" string="false">` … (DeepSeek 3.2, MiniMax, MiniCPM). */
function readInvoke(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const head = /^\s*["']([^"']+)["'][^>]*>/.exec(body);
  if (head === null) return null;
  const [whole, name = ''] = head;
  const rest = body.slice(whole.length);
  const parameter = new RegExp(
    [
      String.raw`<(?:｜DSML｜)?param(?:eter)? name=["']([^"']+)["']([^>]*)>`,
      String.raw`(?:<!\[CDATA\[([\s\S]*?)\]\]>|([\s\S]*?))`,
      String.raw`<\/(?:｜DSML｜)?param(?:eter)?>`,
    ].join(''),
    'g',
  );
  const given = [...rest.matchAll(parameter)].map(([, key = '', attributes = '', quoted, plain = '']) => ({
    key,
    text: quoted ?? plain,
    isText: attributes.includes('string="true"'),
  }));
  if (given.length === 0 && rest.trim() !== '') return null;
  const texts = new Set(given.filter(({ isText }) => isText).map(({ key }) => key));
  const typed =
    texts.size === 0
      ? tools
      : new Map([
          ...tools,
          [name, { properties: Object.fromEntries([...texts].map((key) => [key, { type: 'string' }])) }],
        ]);
  return [
    callOfTexts(
      name,
      given.map(({ key, text }) => [key, text] as const),
      typed,
    ),
  ];
}

/** Reads `[function<｜tool▁sep｜>]name`, then the arguments behind another separator or in a block of JSON. */
function readDeepSeek(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const text = body.replace(/^function<[|｜]tool▁sep[|｜]>/, '').trim();
  const head = /^([\w.-]+)\s*(?:<[|｜]tool▁sep[|｜]>)?\s*(?:```(?:json)?\s*)?/.exec(text);
  return head === null ? null : namedJson(head[1] ?? '', text.slice(head[0].length).replace(/\s*```$/, ''), tools);
}

/** Reads `functions.name:0<|tool_call_argument_begin|>{…}`. */
function readKimi(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const head = /^\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>/.exec(body);
  return head === null ? null : namedJson(head[1] ?? '', body.slice(head[0].length), tools);
}

/** Reads a list of calls, or `name[CALL_ID]…[ARGS]{…}`. */
function readMistral(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const head = /^\s*([\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\]\s*)?(?=\{)/.exec(body);
  return head === null ? readMarkedJson(body, tools) : namedJson(head[1] ?? '', body.slice(head[0].length), tools);
}

function namedJson(name: string, json: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const text = json.trim();
  if (text === '') return [callOfTexts(name, [], tools)];
  const found = text.startsWith('{') ? findJson(text) : null;
  return found !== null && found.end === text.length ? [{ id: '', name, arguments: found.json }] : null;
}
