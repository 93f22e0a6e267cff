import { addAll } from '../../core/lists.js';
import type { ReceivedCall } from '../../core/provider.js';
import { type Block, closedBlock, fencedBlock, jsonBlock, markups, namedTool, wrappers } from './call-markup.js';
import { callsInJson, holdsCall, type ToolSchemas } from './found-calls.js';

/** The part of an answer that is shown. */
interface Shown {
  readonly type: 'text' | 'reasoning';
  readonly text: string;
}

/** Splits an answer into text, thinking and calls while it arrives. */
export interface TextScanner {
  push(text: string): readonly Shown[];
  /** The answer is over. `cut`: it reached the output limit, so that a call may be incomplete. */
  end(cut: boolean): { readonly shown: readonly Shown[]; readonly calls: readonly ReceivedCall[] };
}

/** Kind of block that begins at a place. `more`: not known yet. */
type Opening =
  | { readonly kind: 'none' | 'more' }
  | { readonly kind: 'skip'; readonly length: number }
  | { readonly kind: 'think'; readonly length: number; readonly close: RegExp }
  | { readonly kind: 'thought'; readonly length: number }
  | { readonly kind: 'code'; readonly length: number }
  | { readonly kind: 'block'; readonly block: Block };

/** After this many places that looked like a call and were none, the rest is text. */
const maxFailed = 64;
const asText = { kind: 'text' } as const;
const fenceEnd = /\n```/;
const none: Opening = { kind: 'none' };
const more: Opening = { kind: 'more' };
const firstKey = new RegExp(
  [
    String.raw`^(?:\{|\[\s*\{)\s*["']?`,
    '(?:tool|name|tool_name|tool_calls?|function|function_call|args|arguments|parameters|type|id)',
    String.raw`["']?\s*:`,
  ].join(''),
);
const openFirstKey = /^(?:\[\s*)?(?:\{\s*(?:["']?[a-z_]{0,13}["']?\s*)?)?$/;
const markStart = /^\s*(?:[\w.-]+\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\]\s*)?(?=\{)|(?=[[{]))/;
const openMarkStart = /^\s*[\w.-]{0,128}\s*(?:\[[\w\s[\]-]{0,128})?$/;

export function createTextScanner(tools: ToolSchemas): TextScanner {
  return new Scanner(tools);
}

/** A call of so many characters is looked at again only when it has grown by a thirty-second part. */
const longBlock = 16 * 1024;

class Scanner implements TextScanner {
  readonly #tools: ToolSchemas;
  #calls: ReceivedCall[] = [];
  #shown: Shown[] = [];
  /** The text that is not read yet. */
  #rest = '';
  #block: Block | null = null;
  /** `close`: what ends thinking, or code in another language. */
  #mode: { readonly kind: 'text' } | { readonly kind: 'code' | 'think'; readonly close: RegExp } = asText;
  /** Blanks and wrapper tags, which are shown only where text follows. */
  #glue = '';
  /** The current line as far as it was shown. */
  #line = '';
  #spoke = false;
  /** Text that has come and was not looked at. */
  #late = '';
  /** Number of places that looked like a call and were none. */
  #failed = 0;

  constructor(tools: ToolSchemas) {
    this.#tools = tools;
  }

  push(text: string): readonly Shown[] {
    this.#late += text;
    // To look at a long call again with each of its small pieces would take time in the square of its length.
    if (this.#block !== null && this.#rest.length > longBlock && this.#late.length < this.#rest.length / 32) return [];
    this.#rest += this.#late;
    this.#late = '';
    this.#read(false);
    return this.#take();
  }

  end(cut: boolean): { readonly shown: readonly Shown[]; readonly calls: readonly ReceivedCall[] } {
    this.#rest += this.#late;
    this.#late = '';
    const half = cut && this.#block !== null ? namedTool(this.#rest, this.#tools) : null;
    if (half !== null) {
      this.#calls.push({ id: '', name: half, arguments: this.#rest });
      this.#rest = '';
    }
    this.#read(true);
    if (this.#calls.length === 0 && this.#glue !== '') this.#shown.push({ type: 'text', text: this.#glue });
    return { shown: this.#take(), calls: this.#calls };
  }

  #take(): readonly Shown[] {
    const shown = this.#shown;
    this.#shown = [];
    return shown;
  }

  #read(final: boolean): void {
    while (this.#rest !== '' && this.#step(final));
  }

  /** Takes one step; false where more text is needed. */
  #step(final: boolean): boolean {
    if (this.#block !== null) return this.#readBlock(this.#block, final);
    if (this.#mode.kind !== 'text') return this.#pass(final, this.#mode.kind, this.#mode.close);
    const at = this.#failed > maxFailed ? -1 : this.#rest.search(/[<[{`f◁]/);
    if (at !== 0) {
      this.#say(at < 0 ? this.#rest.length : at);
      return true;
    }
    const opening = this.#opening(final);
    switch (opening.kind) {
      case 'none':
        this.#say(1);
        return true;
      case 'more':
        return false;
      case 'skip':
        this.#glue += this.#cut(opening.length);
        return true;
      case 'think':
        this.#cut(opening.length);
        this.#mode = { kind: 'think', close: opening.close };
        return true;
      case 'thought':
        this.#cut(opening.length);
        this.#calls = [];
        return true;
      case 'code':
        this.#say(opening.length);
        this.#mode = { kind: 'code', close: fenceEnd };
        return true;
      case 'block':
        this.#block = opening.block;
        return true;
      default:
        return opening satisfies never;
    }
  }

  #readBlock(block: Block, final: boolean): boolean {
    const result = block.read(this.#rest, final);
    if (result.state === 'wait') return false;
    this.#block = null;
    if (result.state === 'text') {
      this.#failed++;
      this.#say(result.length);
      return true;
    }
    const text = this.#cut(result.length);
    addAll(this.#calls, asReceived(result.calls, text));
    this.#glue = withoutTags(this.#glue);
    this.#line = '';
    return true;
  }

  /** Reads code in another language up to its closing fence, and thinking up to its closing mark or to the end. */
  #pass(final: boolean, kind: 'code' | 'think', close: RegExp): boolean {
    const found = close.exec(this.#rest);
    const held = final ? 0 : kind === 'code' ? 3 : longestClosing;
    const length = found?.index ?? Math.max(0, this.#rest.length - held);
    const closing = found?.[0].length ?? 0;
    if (kind === 'code') this.#say(length + closing);
    else {
      if (length > 0) this.#shown.push({ type: 'reasoning', text: this.#cut(length) });
      this.#cut(closing);
    }
    if (found === null) return final && this.#rest !== '';
    this.#mode = asText;
    return true;
  }

  /** Shows the next `length` characters. Blanks wait for the text after them. */
  #say(length: number): void {
    const text = this.#cut(length);
    const end = text.trimEnd().length;
    if (end > 0) {
      const glue = this.#calls.length > 0 ? withoutTags(this.#glue) : this.#glue;
      const said = glue + text.slice(0, end);
      this.#shown.push({ type: 'text', text: this.#spoke || this.#calls.length === 0 ? said : said.trimStart() });
      this.#glue = '';
      this.#spoke = true;
    }
    this.#glue += text.slice(end);
    this.#line = (text.includes('\n') ? text.slice(text.lastIndexOf('\n') + 1) : this.#line + text).slice(-400);
  }

  #cut(length: number): string {
    const text = this.#rest.slice(0, length);
    this.#rest = this.#rest.slice(length);
    return text;
  }

  #opening(final: boolean): Opening {
    const rest = this.#rest;
    if (rest.startsWith('`')) return this.#fence(rest, final);
    if (isInCode(this.#line)) return none;
    if (rest.startsWith('{')) return this.#bare(rest, final);
    const list = rest.startsWith('[') ? this.#bare(rest, final) : none;
    if (list.kind === 'block' || (list.kind === 'more' && !openings.some((open) => open.startsWith(rest)))) return list;
    const thinking = thinkingAt(rest);
    if (thinking !== null) return { kind: 'think', ...thinking };
    const thought = thinkingEndAt(rest);
    return thought > 0 ? { kind: 'thought', length: thought } : this.#markup(rest, final);
  }

  /** Reads a model's own markup. */
  #markup(rest: string, final: boolean): Opening {
    const form = markups.find(({ open }) => rest.startsWith(open));
    if (form !== undefined)
      return form.close.length > 0
        ? { kind: 'block', block: closedBlock(form, this.#tools) }
        : this.#marked(form.open, form.read.bind(form), rest, final);
    const wrapper = wrappers.find((tag) => rest.startsWith(tag));
    if (wrapper !== undefined) return { kind: 'skip', length: wrapper.length };
    return !final && (openings.some((open) => open.startsWith(rest)) || mayBeThinking(rest)) ? more : none;
  }

  /** Reads a fence at the start of a line: JSON that may be a call, or code that stays as it is. */
  #fence(rest: string, final: boolean): Opening {
    if (this.#line.trim() !== '') return none;
    const head = /^```[ \t]*([\w+-]*)[ \t]*(?:\r?\n\s*|(?=[{[]))/.exec(rest);
    if (head === null) return headless(rest, final);
    const [whole, language = ''] = head;
    const body = rest.slice(whole.length);
    if (!final && body === '') return more;
    if (callLanguage.test(language) && firstKey.test(body))
      return { kind: 'block', block: fencedBlock(whole, this.#tools) };
    return !final && callLanguage.test(language) && openFirstKey.test(body)
      ? more
      : { kind: 'code', length: whole.trimEnd().length };
  }

  /** Reads JSON behind a mark. */
  #marked(
    open: string,
    read: (body: string, tools: ToolSchemas) => readonly ReceivedCall[] | null,
    rest: string,
    final: boolean,
  ): Opening {
    const body = rest.slice(open.length);
    if (markStart.test(body))
      return { kind: 'block', block: markBlock(open, body, (whole) => read(whole, this.#tools)) };
    return !final && openMarkStart.test(body) ? more : none;
  }

  /** Reads an object or a list of them in the text (Llama). An object with `tool` must begin its line, so that a quoted
   * call does not run. */
  #bare(rest: string, final: boolean): Opening {
    const before = this.#line.trimEnd().at(-1) ?? '';
    if ('}[],"\'(=`'.includes(before) && before !== '') return none;
    if (!firstKey.test(rest)) return !final && openFirstKey.test(rest) ? more : none;
    const isQuoted = /^(?:\[\s*)?\{\s*["']?tool(?:_calls?)?\b/.test(rest) && this.#line.trim() !== '';
    return { kind: 'block', block: jsonBlock(0, (body) => (isQuoted ? null : callsInJson(body, this.#tools, 'bare'))) };
  }
}

/** Returns the calls of a block. Where the arguments of a call differ from the block's text, the first such call keeps
 * that text for the record. */
function asReceived(calls: readonly ReceivedCall[], text: string): readonly ReceivedCall[] {
  const changed = calls.findIndex((call) => !text.includes(call.arguments));
  return calls.map((call, index) => (index === changed ? { ...call, received: text } : call));
}

const callLanguage = /^(?:|json|json5|jsonc|tool|tools|tool_call|tool_calls|tool_code)$/i;

/** Reads backticks in a line that is not complete. */
function headless(rest: string, final: boolean): Opening {
  if (!final && /^`{1,3}(?!`)[ \t]*[\w+-]*[ \t]*\r?$/.test(rest)) return more;
  return rest.startsWith('```') ? { kind: 'code', length: 3 } : none;
}

/** Returns a marked block. Its JSON may follow a name; brackets count from the JSON on. */
function markBlock(open: string, body: string, read: (body: string) => readonly ReceivedCall[] | null): Block {
  const named = markStart.exec(body)?.[0] ?? '';
  const start = open.length + named.length;
  return jsonBlock(start, (json) => read(named + json));
}

/** Returns true for a place in inline code, behind an odd number of backticks. */
function isInCode(line: string): boolean {
  return line.split('`').length % 2 === 0;
}

function withoutTags(glue: string): string {
  return wrappers.reduce((text, tag) => text.replaceAll(tag, ''), glue);
}

const openings: readonly string[] = [...markups.map(({ open }) => open), ...wrappers];

/** Thinking that began: `length` characters open it, `close` finds its end. */
interface ThinkingStart {
  readonly length: number;
  readonly close: RegExp;
}

/** The characters of a closing that may be cut off at the end of a text. */
const longestClosing = 40;

const longestOpening = 240;

/** Tags written `<name>` and `</name>`, in any case. Sources: the templates of DeepSeek, Qwen, Seed, EXAONE, LongCat,
 * MiniMax; prompts made the others common. */
const tagNames = [
  'think',
  'thinking',
  'thought',
  'thoughts',
  'reasoning',
  'reflection',
  'analysis',
  'scratchpad',
  'inner_monologue',
  'chain_of_thought',
  'cot',
  'seed:think',
  'mm:think',
  'antml:thinking',
  'longcat_think',
  'think_fast',
];

interface Marks {
  readonly open: string;
  readonly close: readonly string[];
  /** Marks that end the thinking and belong to the text after it. */
  readonly before?: readonly string[];
  /** True where the closing always ends thinking, even without an opening. */
  readonly alone?: true;
}

/** Marks of the models' own training. Sources: the templates of Mistral, Cohere, Apertus, Sky-T1, Kimi-VL, Solar, Gemma
 * 4 and gpt-oss. */
const marks: readonly Marks[] = [
  { open: '[THINK]', close: ['[/THINK]'], alone: true },
  { open: '[THINKING]', close: ['[/THINKING]'], alone: true },
  { open: '<|START_THINKING|>', close: ['<|END_THINKING|>'], alone: true },
  { open: '<|inner_prefix|>', close: ['<|inner_suffix|>'], alone: true },
  { open: '<|begin_of_thought|>', close: ['<|end_of_thought|>'], alone: true },
  { open: '◁think▷', close: ['◁/think▷'], alone: true },
  { open: '<|think|>', close: ['<|/think|>', '<|end|>'] },
  { open: '<|channel>thought', close: ['<channel|>'] },
  { open: '<|channel|>analysis', close: ['<|end|>', '<|return|>', '<|call|>'], before: ['<|start|>', '<|channel|>'] },
];

const names = tagNames.join('|');
const openTag = new RegExp(`^<(${names})(?:\\s[^<>]{0,200})?(?<!/)>`, 'i');
const openTagStart = new RegExp(`^<(?:${names})\\s[^<>]{0,200}$`, 'i');
const closeTag = new RegExp(`^</(?:${names})\\s{0,8}>`, 'i');
const closeTagStart = new RegExp(`^</(?:${names})\\s{0,8}$`, 'i');
const literals: readonly string[] = [
  ...tagNames.flatMap((name) => [`<${name}`, `</${name}`]),
  ...marks.flatMap(({ open, close, alone }) => (alone ? [open, ...close] : [open])),
];
const starts = marks.map(({ open, close, before = [] }) => ({
  open,
  close: new RegExp([...close.map(escaped), ...before.map((mark) => `(?=${escaped(mark)})`)].join('|'), 'i'),
}));

/** Returns the thinking that begins at the start of `text`, or null. */
function thinkingAt(text: string): ThinkingStart | null {
  const tag = openTag.exec(text.slice(0, longestOpening));
  if (tag !== null) return { length: tag[0].length, close: new RegExp(`</${tag[1] ?? ''}\\s{0,8}>`, 'i') };
  const mark = starts.find(({ open }) => text.startsWith(open));
  return mark === undefined ? null : { length: mark.open.length, close: mark.close };
}

/** Returns the length of the closing at the start of `text`, or 0. The text before a closing was thinking, even without
 * an opening. */
function thinkingEndAt(text: string): number {
  const tag = closeTag.exec(text.slice(0, longestClosing));
  if (tag !== null) return tag[0].length;
  return marks.flatMap(({ close, alone }) => (alone ? close : [])).find((close) => text.startsWith(close))?.length ?? 0;
}

/** Returns true where `text` may become an opening or a closing with more text. */
function mayBeThinking(text: string): boolean {
  if (text.length > longestOpening) return false;
  const lower = text.toLowerCase();
  return (
    literals.some((literal) => literal.startsWith(text) || literal.startsWith(lower)) ||
    openTagStart.test(text) ||
    closeTagStart.test(text)
  );
}

function escaped(text: string): string {
  return text.replace(/[[\]|/]/g, String.raw`\$&`);
}

/** Every call matches this; most answers do not, and need no closer look. */
const hint = new RegExp(
  [
    '"(?:name|tool|tools?_calls?|function)"',
    '[<[](?:[|｜/]|tool|TOOL|func|invoke|minimax|seed:)',
    '<start_function_call>',
    'functools',
    String.raw`call:\w`,
    String.raw`to=\w`,
  ].join('|'),
);
/** The markup of models whose calls this program does not read. Sources: the templates of LFM2, Gemma, gpt-oss,
 * Apertus, Kimi K3, OLMo, LM Studio. */
const foreign = new RegExp(
  [
    String.raw`<\|tool_call(?:s|_start)?\|?>`,
    '<start_function_call>',
    '<tool_code>',
    String.raw`<\|tools_prefix\|>`,
    String.raw`\[TOOL_REQUEST\]`,
    String.raw`<\|channel\|>commentary to=\w`,
    '<tool_calls?>',
    '<function_calls?>',
    '<minimax:tool_call>',
    '<seed:tool_call>',
    String.raw`\bcall:\w+\{`,
    '<｜tool▁call',
  ].join('|'),
);

/** Returns true where an answer without calls holds what looks like one, outside inline code and code in another
 * language. */
export function hasLeakedCall(text: string, tools: ToolSchemas): boolean {
  if (!hint.test(text)) return false;
  const scanner = createTextScanner(tools);
  scanner.push(text);
  if (scanner.end(false).calls.length > 0) return true;
  const prose = text.replace(/^```[\s\S]*?(?:^```|$(?![\s\S]))/gm, '').replace(/`[^`\n]*`/g, '');
  return /^```tool_(?:code|call)/m.test(text) || foreign.test(prose) || holdsCall(prose, tools);
}
