import type { ReceivedCall } from '../../core/provider.js';
import { callOfTexts, callsInJson, type ToolSchemas } from './text-calls.js';
import { findJson } from './text-json.js';

/** One way in which models write calls. A block runs from `open` to a `close`; without closers it ends where its JSON
 * ends. */
export interface Form {
  readonly open: string;
  readonly close: readonly string[];
  /** The calls in a block's body, or null where it is none. */
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

/** Tags around calls that mean nothing by themselves. */
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

/** JSON (Hermes, Qwen), `<function=…>` (Qwen 3 Coder), or a name with `<arg_key>` and `<arg_value>` (GLM). */
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

/** `name>` and then `<parameter=key>` … (Qwen) or one object (Llama 3.1). */
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

/** The value without the line breaks that the form puts around it, where it puts any. */
function unpadded(value: string): string {
  return /^\r?\n/.test(value) ? value.replace(/^\r?\n/, '').replace(/\r?\n$/, '') : value;
}

/** `"name">` and then `<parameter name="key" string="false">` … (DeepSeek 3.2, MiniMax, MiniCPM). */
function readInvoke(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const head = /^\s*["']([^"']+)["'][^>]*>/.exec(body);
  if (head === null) return null;
  const [whole, name = ''] = head;
  const rest = body.slice(whole.length);
  const parameter =
    /<(?:｜DSML｜)?param(?:eter)? name=["']([^"']+)["']([^>]*)>(?:<!\[CDATA\[([\s\S]*?)\]\]>|([\s\S]*?))<\/(?:｜DSML｜)?param(?:eter)?>/g;
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

/** `[function<｜tool▁sep｜>]name`, then the arguments behind another separator or in a block of JSON. */
function readDeepSeek(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const text = body.replace(/^function<[|｜]tool▁sep[|｜]>/, '').trim();
  const head = /^([\w.-]+)\s*(?:<[|｜]tool▁sep[|｜]>)?\s*(?:```(?:json)?\s*)?/.exec(text);
  return head === null ? null : namedJson(head[1] ?? '', text.slice(head[0].length).replace(/\s*```$/, ''), tools);
}

/** `functions.name:0<|tool_call_argument_begin|>{…}`. */
function readKimi(body: string, tools: ToolSchemas): readonly ReceivedCall[] | null {
  const head = /^\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>/.exec(body);
  return head === null ? null : namedJson(head[1] ?? '', body.slice(head[0].length), tools);
}

/** A list of calls, or `name[CALL_ID]…[ARGS]{…}`. */
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
