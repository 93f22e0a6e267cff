import { isRecord, parseJson } from '../../core/json.js';
import type { JsonSchema } from '../../core/json.js';
import type { Quirks, SchemaDialect } from '../quirks.js';
import { schemaFor } from '../wires/tool-schemas.js';
import type { Failed } from './attempt.js';

/** Result of a refused request: how the next request differs, and the setting that keeps it so. */
export interface Lesson {
  readonly quirks: Quirks;
  /** Description of the difference, for the notice. */
  readonly change: string;
  /** The setting of the quirk, for the notice. */
  readonly setting: string;
}

/** Messages of servers that do not accept a field. Sources: error bodies of OpenAI ("Unsupported parameter", "Unknown
 * parameter", "Unrecognized request argument supplied"), Google ("Unknown name … Cannot find field"), Groq ("property …
 * is unsupported"), Mistral, vLLM and Databricks ("Extra inputs are not permitted"), xAI ("Argument not supported"),
 * Ollama ("does not support thinking"), servers in Rust ("unknown field") (read 2026-11). */
const refusesField = new RegExp(
  [
    'unsupported',
    'not supported',
    "does(?: not|n't) support",
    'unrecogni[sz]ed',
    'unknown',
    'unexpected',
    'extra[ _]?(?:inputs?|fields?|forbidden)',
    'additional propert',
    'not (?:permitted|allowed|accepted|available)',
    'invalid (?:parameter|argument|field)',
    'cannot find field',
    'no such field',
    'must be omitted',
    'deprecated',
  ].join('|'),
  'i',
);

/** Messages of servers whose ids of calls have nine letters or digits. Source: Mistral's API and chat templates, as
 * vLLM, llama-server, LM Studio and MLX servers quote them. */
const wantsNineLetters = /tool[ _-]?call[ _-]?ids?\b[^.]{0,200}(?:length of 9|9 char|nine|a-z)|is not nine letters/i;

/** Fields without which there is no request. */
const needed = new Set(['model', 'messages', 'input', 'tools', 'stream', 'system', 'instructions']);

/** Names that servers use for a field of ours. */
const otherNames: readonly { readonly field: string; readonly names: RegExp }[] = [
  { field: 'reasoning_effort', names: /does(?: not|n't) support (?:thinking|reasoning)\b/i },
  { field: 'thinking', names: /does(?: not|n't) support (?:thinking|reasoning)\b|thinking (?:is|are) not supported/i },
  { field: 'stream_options', names: /include_usage/i },
];

/** Returns how to send a refused request again; null where nothing is known that would help. `sent`: the body of the
 * refused request; `learned`: what earlier refusals taught. */
export function learnFrom(
  { fault, body: text = '' }: Failed,
  sent: () => Readonly<Record<string, unknown>>,
  preset: Quirks,
  learned: Quirks,
): Lesson | null {
  const quirks = { ...preset, ...learned };
  if (wantsNineLetters.test(`${fault.message} ${text}`) && quirks.call_id_form !== 'nine')
    return lesson({ call_id_form: 'nine' }, 'ids of tool calls are nine letters and digits', 'call_id_form="nine"');
  const refusal = `${fault.message} ${text}`;
  const schema = aboutSchemas(refusal, fault) ? schemaLesson(refusal, sent(), quirks) : null;
  if (schema !== null) return schema;
  if (fault.code !== 'bad_request' || (fault.status !== 400 && fault.status !== 422)) return null;
  const body = sent();
  if (refusesReasoning.test(refusal)) return reasoningLesson(body, quirks);
  if (!refusesField.test(text)) return null;
  return extrasLesson(text, body, quirks) ?? fieldLesson(text, body, learned);
}

/** Messages of servers that cannot read the reasoning that they or another of their machines gave: a conversation would
 * fail from then on. Sources: Azure OpenAI ("The encrypted content … could not be verified", `invalid_encrypted_content`),
 * Anthropic ("Invalid `signature` in `thinking` block") (read 2026-11). */
const refusesReasoning =
  /invalid_encrypted_content|encrypted content \S+ could not be|invalid [`'"]?signature[`'"]? in [`'"]?(?:redacted_)?thinking/i;

function reasoningLesson(body: Readonly<Record<string, unknown>>, quirks: Quirks): Lesson | null {
  const written = JSON.stringify(body.messages ?? body.input ?? []);
  const isSent = ['"encrypted_content":', '"signature":', '"type":"redacted_thinking"'].some((one) =>
    written.includes(one),
  );
  return isSent && quirks.reasoning_return !== 'none'
    ? lesson({ reasoning_return: 'none' }, 'earlier reasoning is omitted', 'reasoning_return="none"')
    : null;
}

/** Messages of servers that do not accept the schema of a tool. Sources: OpenAI ("Invalid schema for function"), Google
 * ("function_declarations[3].parameters"), Moonshot ("tools.function.parameters is not a valid …"), Anthropic
 * ("tools.0.custom.input_schema"), llama.cpp ("JSON schema conversion failed", "failed to parse grammar"), Ollama
 * ("cannot unmarshal … tools.function.parameters") (read 2026-11). */
const refusesSchema =
  /schema|function[_ ]?declaration|function\.parameters|input_schema|parameters\.\w|parse grammar|\btools?[.[]\d|invalid (?:tool|function) name|tools?\b[^.]{0,40}\bname/i;
const failsAtGrammar = /parse grammar|schema conversion|grammar/i;

function aboutSchemas(text: string, { code, status }: Failed['fault']): boolean {
  if (code === 'bad_request' && (status === 400 || status === 422)) return refusesSchema.test(text);
  return status === 500 && failsAtGrammar.test(text) && /schema|grammar/i.test(text);
}

interface SentTool {
  readonly name: string;
  readonly schema: JsonSchema;
}

/** The most tools of a server that are left out; a provider that refuses more refuses something else. */
const maxRefusedTools = 16;

/** Writes the schemas in another form where that changes those that were refused. Where it does not, leaves out the
 * tool that the error names. */
function schemaLesson(text: string, body: Readonly<Record<string, unknown>>, quirks: Quirks): Lesson | null {
  const tools = toolsIn(body);
  const named = namedTool(text, tools);
  const isChanged = ({ schema }: SentTool, dialect: SchemaDialect): boolean =>
    JSON.stringify(schemaFor(schema, dialect)) !== JSON.stringify(schema);
  const dialect = simplerDialects(text, quirks).find((one) =>
    named === null ? tools.some((tool) => isChanged(tool, one)) : isChanged(named, one),
  );
  if (dialect !== undefined) {
    const what = named === null ? '' : `, as for \`${named.name}\``;
    return lesson({ tool_schemas: dialect }, `tool schemas are simplified${what}`, `tool_schemas="${dialect}"`);
  }
  const refused = quirks.refused_tools ?? [];
  if (named === null || refused.length >= maxRefusedTools) return null;
  const all = [...refused, named.name];
  return lesson(
    { refused_tools: all },
    `the tool \`${named.name}\` is omitted`,
    `refused_tools=${JSON.stringify(all)}`,
  );
}

/** Returns the dialects that may be tried, in their order. */
function simplerDialects(text: string, { tool_schemas: known = 'plain' }: Quirks): readonly SchemaDialect[] {
  if (known !== 'plain' && known !== 'moonshot') return [];
  return known === 'moonshot' || failsAtGrammar.test(text) || /pattern|repetition/i.test(text)
    ? ['grammar']
    : ['moonshot', 'grammar'];
}

function toolsIn({ tools }: Readonly<Record<string, unknown>>): readonly SentTool[] {
  if (!Array.isArray(tools)) return [];
  return (tools as readonly unknown[]).map((tool) => {
    const outer = isRecord(tool) ? tool : {};
    const inner = isRecord(outer.function) ? outer.function : outer;
    const schema = inner.parameters ?? inner.input_schema;
    return {
      name: typeof inner.name === 'string' ? inner.name : '',
      schema: (isRecord(schema) ? schema : {}) as JsonSchema,
    };
  });
}

/** Returns the tool that an error names, by its name or by its place in the list. */
function namedTool(text: string, tools: readonly SentTool[]): SentTool | null {
  const byName = tools
    .filter(
      ({ name }) => name !== '' && new RegExp(`(?<![\\w-])${name.replaceAll(/[^\w-]/g, '.')}(?![\\w-])`).test(text),
    )
    .toSorted((one, other) => other.name.length - one.name.length)[0];
  // A short name may be a word of the sentence.
  if (byName && (byName.name.includes('_') || new RegExp(`["'\`]${byName.name}["'\`]`).test(text))) return byName;
  const place =
    /function_?declarations[.[](\d+)/i.exec(text)?.[1] ??
    /\btools[.[](\d+)(?!\]?\.?function_?declarations)/i.exec(text)?.[1];
  return (place === undefined ? undefined : tools[Number(place)]) ?? null;
}

function lesson(quirks: Quirks, change: string, setting: string): Lesson {
  return { quirks, change, setting };
}

/** Fields inside messages and calls: what the server, or the one before it, gave a call beyond its protocol. */
function extrasLesson(text: string, body: Readonly<Record<string, unknown>>, quirks: Quirks): Lesson | null {
  const written = JSON.stringify(body.messages ?? body.input ?? []);
  const names = [
    'extra_content',
    'provider_specific_fields',
    'thinking_blocks',
    'provider_metadata',
    'caller',
    'thought_signature',
  ];
  const path = /(?:messages|input)[\s\S]{0,40}?(?:tool_calls|content)[\s\S]{0,40}?\d+[.\]'", ]+(\w+)/.exec(text)?.[1];
  const name = [...names, ...(path === undefined || known.has(path) ? [] : [path])].find(
    (one) => text.includes(one) && written.includes(`"${one}"`),
  );
  if (name !== undefined && quirks.call_extras !== false)
    return lesson({ call_extras: false }, `\`${name}\` of tool calls is omitted`, 'call_extras=false');
  const reasoning = ['reasoning_content', 'reasoning_details'].find(
    (one) => text.includes(one) && written.includes(`"${one}"`),
  );
  return reasoning !== undefined && quirks.reasoning_return !== 'none'
    ? lesson({ reasoning_return: 'none' }, `\`${reasoning}\` of messages is omitted`, 'reasoning_return="none"')
    : null;
}

/** Fields of the protocol inside messages. */
const known = new Set([
  'id',
  'type',
  'function',
  'name',
  'arguments',
  'content',
  'role',
  'text',
  'input',
  'tool_use_id',
]);

function fieldLesson(text: string, body: Readonly<Record<string, unknown>>, learned: Quirks): Lesson | null {
  const field = refusedField(
    text,
    Object.keys(body).filter((name) => !needed.has(name)),
  );
  if (field === null) return null;
  const other =
    field === 'max_tokens' ? 'max_completion_tokens' : field === 'max_completion_tokens' ? 'max_tokens' : null;
  if (other !== null && learned.max_tokens_field === undefined && text.includes(other))
    return lesson({ max_tokens_field: other }, `\`${other}\` is sent for \`${field}\``, `max_tokens_field="${other}"`);
  const change = `\`${field}\` is omitted`;
  if (field === 'stream_options') return lesson({ stream_usage: false }, change, 'stream_usage=false');
  if (field === 'parallel_tool_calls')
    return lesson({ parallel_tool_calls: false }, change, 'parallel_tool_calls=false');
  if (field === 'tool_choice') return lesson({ tool_choice: false }, change, 'tool_choice=false');
  const refused = [...(learned.refused_fields ?? []), field];
  return lesson({ refused_fields: refused }, change, `refused_fields=${JSON.stringify(refused)}`);
}

/** Returns the field of the request that an error names: in its own field for that, else first in its text. */
function refusedField(text: string, sent: readonly string[]): string | null {
  const named = fieldInError(text);
  if (named !== null) {
    const field = sent.find((name) => named === name || named.startsWith(`${name}.`) || named.startsWith(`${name}[`));
    if (field !== undefined) return field;
  }
  const places = sent.flatMap((field) => {
    const at = placeOf(field, text);
    return at < 0 ? [] : [{ field, at }];
  });
  return places.toSorted((one, other) => one.at - other.at)[0]?.field ?? null;
}

/** Returns the index of a field's name in a message. A name that is also a word counts only where it is quoted, or is
 * called a field. */
function placeOf(field: string, text: string): number {
  const plain = text.replaceAll('\\', ' ');
  const other = otherNames.find((one) => one.field === field)?.names;
  const found = field.includes('_')
    ? new RegExp(`(?<![\\w])${field}(?![\\w])`).exec(plain)
    : new RegExp(`(?:["'\`]|(?:parameter|argument|field|property|name)s?:? )${field}(?![\\w])`, 'i').exec(plain);
  return found?.index ?? (other === undefined ? -1 : plain.search(other));
}

/** Returns `error.param` (OpenAI), or the `loc` of an entry of `detail` (pydantic), as a path; null where there is
 * neither. */
function fieldInError(text: string): string | null {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return null;
  }
  for (let depth = 0; depth < 4 && (isRecord(value) || Array.isArray(value)); depth++) {
    if (Array.isArray(value)) value = value[0];
    if (!isRecord(value)) return null;
    if (typeof value.param === 'string' && value.param !== '') return value.param;
    const [detail] = Array.isArray(value.detail) ? (value.detail as readonly unknown[]) : [];
    if (isRecord(detail) && Array.isArray(detail.loc)) return detail.loc.filter((part) => part !== 'body').join('.');
    value = value.error;
  }
  return null;
}
