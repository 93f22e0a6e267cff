import { parseJson } from '../../core/json.js';
import { addAll } from '../../core/lists.js';
import { isRecord, type JsonSchema } from '../../core/json.js';
import type { ReceivedCall } from '../../core/provider.js';

/** The names of the session's tools with the schemas of their arguments, which say how to read values without
 * quotes. */
export type ToolSchemas = ReadonlyMap<string, JsonSchema>;

/** Likelihood that an object is a call, by its place. `marked`: in a model's own markup for calls. `fenced`: in a block
 * of JSON, where a call names `tool`, or `name` with a known tool. `bare`: in the middle of a text, where only a known
 * tool with its arguments counts. */
export type Certainty = 'marked' | 'fenced' | 'bare';

const nameKeys = ['tool', 'name', 'tool_name', 'function'];
const argumentKeys = ['args', 'arguments', 'parameters', 'input', 'tool_input'];

/** Returns the calls in `text`, which must hold only objects or lists of them; null where it holds anything else, or
 * where one of them is no call. */
export function callsInJson(text: string, tools: ToolSchemas, certainty: Certainty): readonly ReceivedCall[] | null {
  const calls: ReceivedCall[] = [];
  for (let at = 0; ;) {
    at += /^[\s,;]*/.exec(text.slice(at))?.[0].length ?? 0;
    if (at >= text.length) return calls.length > 0 ? calls : null;
    const found = '{['.includes(text[at] ?? '') ? findJson(text, at) : null;
    const read = found === null ? null : callsOf(found.json, tools, certainty);
    if (found === null || read === null) return null;
    addAll(calls, read);
    at = found.end;
  }
}

/** The most places that are examined: an answer may be nothing but code. */
const maxPlaces = 200;

/** Returns whether an object in the middle of a text is a call of a known tool with its arguments. */
export function holdsCall(text: string, tools: ToolSchemas): boolean {
  let at = text.indexOf('{');
  for (let places = 0; at >= 0 && places < maxPlaces; places++) {
    const found = findJson(text, at);
    if (found !== null && callsOf(found.json, tools, 'bare') !== null) return true;
    at = text.indexOf('{', found === null ? at + 1 : found.end);
  }
  return false;
}

/** Returns true where `text` is valid JSON. */
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
  const items = (parseJson(json) as readonly unknown[]).map((item) => callOf(JSON.stringify(item), tools, certainty));
  const calls = items.filter((item) => item !== null);
  return items.length > 0 && calls.length === items.length ? calls : null;
}

/** Returns the certainty of an object under a name such as `tool_call`: it is a call, in a block of JSON even of an
 * unknown tool. */
function wrapped(certainty: Certainty): Certainty {
  return certainty === 'fenced' ? 'marked' : certainty;
}

/** Reads `{tool, args}`, `{name, arguments}`, `{name, parameters}`, `{tool_call: {…}}`, `{function: {…}}` and
 * similar objects. */
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
  const name = parseJson(members.get(key) ?? '""') as string;
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

/** Reads arguments, which may be a text that holds their JSON. Null where they are no object. */
function argumentsOf(json: string): string | null {
  if (json === 'null') return '{}';
  if (!json.startsWith('"')) return json.startsWith('{') ? json : null;
  const text = parseJson(json) as string;
  const found = text.trim() === '' ? { json: '{}' } : findJson(text, text.length - text.trimStart().length);
  return found?.json.startsWith('{') === true ? found.json : null;
}

/** Reads arguments written beside the name. */
function otherMembers(members: ReadonlyMap<string, string>, nameKey: string): string {
  const others = [...members].filter(
    ([key]) => key !== nameKey && key !== 'id' && key !== 'type' && key !== 'tool_call_id',
  );
  return `{${others.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(',')}}`;
}

/** Makes a call from arguments that are single texts. */
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

/** Keeps a text where the schema allows only a text; otherwise reads it as JSON where it is JSON. */
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
    parseJson(word);
    return word;
  } catch {
    return JSON.stringify(text);
  }
}

/** A JSON value found in a text. */
interface FoundJson {
  /** The value as JSON: unchanged where it was valid, else repaired. */
  readonly json: string;
  /** The position in the text after the value. */
  readonly end: number;
}

const maxDepth = 64;
const literals: Readonly<Record<string, string>> = {
  true: 'true',
  false: 'false',
  null: 'null',
  True: 'true',
  False: 'false',
  None: 'null',
  undefined: 'null',
};
const quotes: Readonly<Record<string, string>> = { '"': '"', "'": "'", '`': '`', '“': '”', '‘': '’' };

/** Reads the object or list at `at` as models write it: with comments, other quotes, names without quotes, extra commas
 * or missing ones at a line's end, Python's literals, line breaks in strings. Null where it is cut off, or where the
 * meaning would be a guess (an unescaped quote), because a wrong guess would run. */
export function findJson(text: string, at = 0): FoundJson | null {
  const reader = new Reader(text, at);
  const json = reader.value(0);
  if (json === null) return null;
  const exact = text.slice(at, reader.at);
  return { json: isJson(exact) ? exact : json, end: reader.at };
}

/** Returns the members of an object that `findJson` found, each value as JSON. */
function jsonMembers(json: string): ReadonlyMap<string, string> {
  const reader = new Reader(json, 0);
  const members = new Map<string, string>();
  reader.object(0, (key, value) => {
    members.set(key, value);
  });
  return members;
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}

class Reader {
  at: number;
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** Returns the value at `at` as JSON, or null. */
  value(depth: number): string | null {
    this.#blank();
    const first = this.#text[this.at] ?? '';
    if (depth > maxDepth || first === '') return null;
    if (first === '{') return this.object(depth, () => undefined);
    if (first === '[') return this.#list(depth);
    if (Object.hasOwn(quotes, first)) return this.#string(first);
    return this.#word();
  }

  object(depth: number, onMember: (key: string, json: string) => void): string | null {
    const members: string[] = [];
    const whole = this.#sequence('}', () => {
      const key = this.#key();
      if (key === null) return false;
      this.#blank();
      if (this.#text[this.at] !== ':') return false;
      this.at++;
      this.#blank();
      const start = this.at;
      const value = this.value(depth + 1);
      if (value === null) return false;
      const exact = this.#text.slice(start, this.at);
      onMember(parseJson(key) as string, isJson(exact) ? exact : value);
      members.push(`${key}:${value}`);
      return true;
    });
    return whole ? `{${members.join(',')}}` : null;
  }

  #list(depth: number): string | null {
    const items: string[] = [];
    const whole = this.#sequence(']', () => {
      const item = this.value(depth + 1);
      if (item === null) return false;
      items.push(item);
      return true;
    });
    return whole ? `[${items.join(',')}]` : null;
  }

  /** Reads members up to `close`; true where it is reached. A comma or at least a line's end separates two members. */
  #sequence(close: string, member: () => boolean): boolean {
    this.at++;
    for (let parted = true; ;) {
      const lineEnded = this.#blank();
      const next = this.#text[this.at];
      if (next === undefined) return false;
      if (next === close) {
        this.at++;
        return true;
      }
      if (next === ',') {
        this.at++;
        parted = true;
        continue;
      }
      if (!parted && !lineEnded) return false;
      if (!member()) return false;
      parted = false;
    }
  }

  #key(): string | null {
    const first = this.#text[this.at] ?? '';
    if (Object.hasOwn(quotes, first)) return this.#string(first);
    const name = this.#match(/[\w$-]+/y);
    return name === null ? null : JSON.stringify(name);
  }

  #word(): string | null {
    const number = this.#match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])/y);
    if (number !== null) return number;
    const word = this.#match(/[A-Za-z]+(?![\w.+-])/y);
    return word !== null && Object.hasOwn(literals, word) ? (literals[word] ?? null) : null;
  }

  #string(open: string): string | null {
    const close = quotes[open] ?? open;
    let json = '"';
    for (this.at++; ;) {
      const character = this.#text[this.at];
      if (character === undefined) return null;
      if (character === '\\') {
        json += this.#escape();
        continue;
      }
      this.at++;
      if (character === close) break;
      json += character === '"' || character < ' ' ? JSON.stringify(character).slice(1, -1) : character;
    }
    return this.#follows() ? `${json}"` : null;
  }

  /** An escape that JSON does not know (`\d`) means its own characters. */
  #escape(): string {
    const known = this.#match(/\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])/y);
    if (known !== null) return known;
    const next = this.#text[this.at + 1];
    if (next === '\n' || next === "'" || next === '`') {
      this.at += 2;
      return next === '\n' ? '\\n' : next;
    }
    this.at++;
    return '\\\\';
  }

  /** True where the text may follow a string; anything else shows that a quote inside the string was not escaped. */
  #follows(): boolean {
    const before = this.at;
    const lineEnded = this.#blank();
    const next = this.#text[this.at];
    this.at = before;
    return next === undefined || lineEnded || ',:}]'.includes(next);
  }

  /** Skips blanks, comments and line breaks written as `\n`. True where a line ended. */
  #blank(): boolean {
    const passed = this.#match(/(?:[\s\ufeff]|\/\*[\s\S]*?\*\/|\/\/[^\n]*|\\[nrt])+/y);
    return passed?.includes('\n') === true;
  }

  #match(expression: RegExp): string | null {
    expression.lastIndex = this.at;
    const found = expression.exec(this.#text)?.[0];
    if (found === undefined) return null;
    this.at += found.length;
    return found;
  }
}
