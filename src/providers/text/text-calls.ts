import type { JsonSchema } from '../../core/json.js';
import { isRecord } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';
import { findJson, jsonMembers } from './text-json.js';

/** What the session's tools are called, with the schemas of their arguments: values that come without quotes are read
 * by them. */
export type ToolSchemas = ReadonlyMap<string, JsonSchema>;

/** How sure the form makes that an object is a call. `marked`: it stands in a model's own markup for calls. `fenced`:
 * in a block of JSON, where a call names `tool`, or `name` with a known tool. `bare`: in the middle of a text, where
 * only a known tool with its arguments counts. */
export type Certainty = 'marked' | 'fenced' | 'bare';

const nameKeys = ['tool', 'name', 'tool_name', 'function'];
const argumentKeys = ['args', 'arguments', 'parameters', 'input', 'tool_input'];

/** The calls in `text`, which must hold objects (or lists of them) and nothing else; null where it does not, or where
 * one of them is no call. */
export function callsInJson(text: string, tools: ToolSchemas, certainty: Certainty): readonly ReceivedCall[] | null {
  const calls: ReceivedCall[] = [];
  for (let at = 0; ;) {
    at += /^[\s,;]*/.exec(text.slice(at))?.[0].length ?? 0;
    if (at >= text.length) return calls.length > 0 ? calls : null;
    const found = '{['.includes(text[at] ?? '') ? findJson(text, at) : null;
    const read = found === null ? null : callsOf(found.json, tools, certainty);
    if (found === null || read === null) return null;
    calls.push(...read);
    at = found.end;
  }
}

/** True where `text` is whole JSON, whatever it says. */
export function isWholeJson(text: string): boolean {
  const found = findJson(text, text.length - text.trimStart().length);
  return found !== null && text.slice(found.end).trim() === '';
}

function callsOf(json: string, tools: ToolSchemas, certainty: Certainty): readonly ReceivedCall[] | null {
  if (!json.startsWith('[')) {
    const list = jsonMembers(json).get('tool_calls');
    if (list?.startsWith('[') === true) return callsOf(list, tools, wrapped(certainty));
    const call = callOf(json, tools, certainty);
    return call === null ? null : [call];
  }
  const items = (JSON.parse(json) as readonly unknown[]).map((item) => callOf(JSON.stringify(item), tools, certainty));
  const calls = items.filter((item) => item !== null);
  return items.length > 0 && calls.length === items.length ? calls : null;
}

/** What stands in an object that is named for a call is one, in a block of JSON even of an unknown tool. */
function wrapped(certainty: Certainty): Certainty {
  return certainty === 'fenced' ? 'marked' : certainty;
}

/** `{tool, args}`, `{name, arguments}`, `{name, parameters}`, `{tool_call: {…}}`, `{function: {…}}` and their like. */
function callOf(json: string, tools: ToolSchemas, certainty: Certainty): ReceivedCall | null {
  if (!json.startsWith('{')) return null;
  const members = jsonMembers(json);
  for (const wrapper of ['tool_call', 'function_call', 'function']) {
    const inner = members.get(wrapper);
    if (inner?.startsWith('{') === true)
      return callOf(inner, tools, wrapper === 'function' ? certainty : wrapped(certainty));
  }
  const key = nameKeys.find((candidate) => members.get(candidate)?.startsWith('"') === true);
  if (key === undefined) return null;
  const name = JSON.parse(members.get(key) ?? '""') as string;
  const argumentKey = argumentKeys.find((candidate) => members.has(candidate));
  if (!isMeant(name, key, argumentKey, tools, certainty)) return null;
  const args = argumentKey === undefined ? otherMembers(members, key) : argumentsOf(members.get(argumentKey) ?? '{}');
  return args === null ? null : { id: '', name, arguments: args };
}

function isMeant(
  name: string,
  key: string,
  argumentKey: string | undefined,
  tools: ToolSchemas,
  certainty: Certainty,
): boolean {
  if (tools.has(name)) return certainty !== 'bare' || argumentKey !== undefined;
  if (certainty === 'marked') return name !== '';
  return certainty === 'fenced' && key === 'tool' && argumentKey !== undefined && name !== '';
}

/** Arguments may come as a text that holds their JSON. Null where they are no object. */
function argumentsOf(json: string): string | null {
  if (json === 'null') return '{}';
  if (!json.startsWith('"')) return json.startsWith('{') ? json : null;
  const text = JSON.parse(json) as string;
  const found = text.trim() === '' ? { json: '{}' } : findJson(text, text.length - text.trimStart().length);
  return found?.json.startsWith('{') === true ? found.json : null;
}

/** Arguments written beside the name. */
function otherMembers(members: ReadonlyMap<string, string>, nameKey: string): string {
  const others = [...members].filter(
    ([key]) => key !== nameKey && key !== 'id' && key !== 'type' && key !== 'tool_call_id',
  );
  return `{${others.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(',')}}`;
}

/** A call whose arguments came one by one as texts. */
export function callOfTexts(
  name: string,
  given: readonly (readonly [key: string, text: string])[],
  tools: ToolSchemas,
): ReceivedCall {
  const properties = tools.get(name)?.properties;
  const members = given.map(
    ([key, text]) => `${JSON.stringify(key)}:${valueOf(text, isRecord(properties) ? properties[key] : undefined)}`,
  );
  return { id: '', name, arguments: `{${members.join(',')}}` };
}

/** A text stays one where the schema allows a text and nothing else; else it is what its JSON says, if it is JSON. */
function valueOf(text: string, schema: unknown): string {
  const type = isRecord(schema) ? schema.type : undefined;
  const trimmed = text.trim();
  if (type === 'string' || trimmed === '') return JSON.stringify(text);
  if (trimmed.startsWith('{') || trimmed.startsWith('[')) {
    const found = findJson(trimmed);
    return found !== null && found.end === trimmed.length ? found.json : JSON.stringify(text);
  }
  const word = trimmed === 'True' ? 'true' : trimmed === 'False' ? 'false' : trimmed === 'None' ? 'null' : trimmed;
  try {
    JSON.parse(word);
    return word;
  } catch {
    return JSON.stringify(text);
  }
}
