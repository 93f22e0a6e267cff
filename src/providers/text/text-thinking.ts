/** Thinking that has begun: `length` characters open it, `close` finds what ends it. */
export interface ThinkingStart {
  readonly length: number;
  readonly close: RegExp;
}

/** Characters of a closing that may stand at the end of a text that goes on. */
export const longestClosing = 40;

const longestOpening = 240;

/** Tags that are written `<name>` and `</name>`, in any case. Sources: the templates of DeepSeek, Qwen, Seed, EXAONE,
 * LongCat, MiniMax; the others are habits that prompts have taught. */
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
  /** What ends the thinking and belongs to what follows. */
  readonly before?: readonly string[];
  /** True where the closing means nothing but the end of thinking, also where no opening was seen. */
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

/** The thinking that begins where `text` begins, or null. */
export function thinkingAt(text: string): ThinkingStart | null {
  const tag = openTag.exec(text.slice(0, longestOpening));
  if (tag !== null) return { length: tag[0].length, close: new RegExp(`</${tag[1] ?? ''}\\s{0,8}>`, 'i') };
  const mark = starts.find(({ open }) => text.startsWith(open));
  return mark === undefined ? null : { length: mark.open.length, close: mark.close };
}

/** The length of a closing that `text` begins with, or 0: what came before it was thought, although nothing said so. */
export function thinkingEndAt(text: string): number {
  const tag = closeTag.exec(text.slice(0, longestClosing));
  if (tag !== null) return tag[0].length;
  return marks.flatMap(({ close, alone }) => (alone ? close : [])).find((close) => text.startsWith(close))?.length ?? 0;
}

/** True where `text` may become an opening or a closing once more of it has come. */
export function mayBeThinking(text: string): boolean {
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
