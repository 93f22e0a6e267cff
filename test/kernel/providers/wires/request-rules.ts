import { existsSync, readFileSync } from 'node:fs';
import azure from '../../../../fixtures/clouds/azure.schemas.json' with { type: 'json' };
import converse from '../../../../fixtures/clouds/bedrock.schemas.json' with { type: 'json' };
import vertex from '../../../../fixtures/clouds/vertex.schemas.json' with { type: 'json' };
import { pathToFileURL } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

import { bedrockClient, shapeErrors } from '../smithy-shapes.js';

type Fields = Readonly<Record<string, unknown>>;

const schemas = pathToFileURL('../shared/fixtures/schemas/schemas.json');
export const hasSchemas = existsSync(schemas);
/** What the clouds publish, in our own words: `<cloud>:<name>`. */
const ofClouds = Object.entries({ azure, vertex, 'bedrock-converse': converse }).flatMap(([cloud, { $defs }]) =>
  Object.keys($defs).map((name) => [`${cloud}:${name}`, { $ref: `#/$defs/${name}`, $defs }] as const),
);
const documents: Readonly<Record<string, object>> = {
  ...(hasSchemas ? (JSON.parse(readFileSync(schemas, 'utf8')) as Readonly<Record<string, object>>) : {}),
  ...Object.fromEntries(ofClouds),
};
const bedrock = await bedrockClient();
export const hasBedrockShapes = bedrock !== null;
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false });
const compiled = new Map<string, ValidateFunction>();

/** What the vendor's published schema says against `body`; null where nothing (or where the schemas are absent). */
export function schemaError(name: string, body: unknown): string | null {
  const document = documents[name];
  if (!document) return hasSchemas ? `no schema ${name}` : null;
  let validate = compiled.get(name);
  if (!validate) compiled.set(name, (validate = ajv.compile(document)));
  if (name === 'bedrock-converse:request' && bedrock !== null) {
    const [error] = shapeErrors({ modelId: 'm', ...(body as object) }, bedrock['ConverseStreamRequest$'] as never);
    if (error !== undefined) return error;
  }
  if (validate(body)) return null;
  const named = JSON.stringify((validate.errors ?? []).map(({ params }) => params));
  return `${ajv.errorsText(validate.errors)} ${named}`.slice(0, 500);
}

const list = (value: unknown): readonly Fields[] => value as readonly Fields[];

/** The vendors' rules about calls and their answers that no schema states. Each returns what is broken. */
export const rules: Readonly<Record<string, (body: Fields) => readonly string[]>> = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
};

function chat(body: Fields): readonly string[] {
  const broken: string[] = [];
  const seen = new Set<unknown>();
  let open: unknown[] = [];
  for (const message of list(body.messages)) {
    if (message.role === 'tool') {
      if (open.shift() !== message.tool_call_id)
        broken.push(`tool message for ${String(message.tool_call_id)} out of place`);
      continue;
    }
    if (open.length > 0) broken.push(`calls ${open.join()} not answered before ${String(message.role)}`);
    open = [];
    if (message.role !== 'assistant') continue;
    if (message.content === null && message.tool_calls === undefined)
      broken.push('assistant message with nothing in it');
    for (const call of list(message.tool_calls ?? [])) {
      if (seen.has(call.id)) broken.push(`id ${String(call.id)} twice`);
      seen.add(call.id);
      open.push(call.id);
      const made = call.function as Fields;
      broken.push(...nameAndArguments(made.name, made.arguments));
    }
  }
  broken.push(
    ...turns(
      list(body.messages)
        .filter(({ role }) => role !== 'system')
        .map(({ role }) => String(role)),
    ),
  );
  return open.length > 0 ? [...broken, 'calls not answered at the end'] : broken;
}

/** The sides take turns and the user begins; results belong to the model's side. */
function turns(roles: readonly string[]): readonly string[] {
  const broken: string[] = [];
  roles.forEach((role, index) => {
    const before = roles[index - 1];
    if (index === 0 ? role !== 'user' : role === before && role !== 'tool')
      broken.push(`${role} after ${before ?? 'nothing'} at ${index}`);
  });
  return broken;
}

/** What Mistral's templates demand: without results and calls, user and assistant alternate. */
export function mistralTurns(messages: readonly Fields[]): readonly string[] {
  const said = messages
    .filter(({ role, tool_calls: calls }) => role !== 'system' && role !== 'tool' && calls === undefined)
    .map(({ role }) => String(role));
  return said
    .flatMap((role, index) => ((role === 'user') === (index % 2 === 0) ? [] : [`${said.join(' ')} does not alternate`]))
    .slice(0, 1);
}

/** Responses' items as the messages that a server makes of them: the items of one response are one. */
export function asMessages(items: readonly Fields[]): readonly Fields[] {
  const made: Fields[] = [];
  for (const { type, role } of items) {
    if (type === 'reasoning') continue;
    const message =
      type === 'function_call'
        ? { role: 'assistant', tool_calls: [] }
        : { role: type === 'function_call_output' ? 'tool' : (role ?? 'assistant') };
    const before = made.at(-1);
    if (before?.role === 'assistant' && message.role === 'assistant') made[made.length - 1] = { ...before, ...message };
    else made.push(message);
  }
  return made;
}

function nameAndArguments(name: unknown, args: unknown): readonly string[] {
  const value: unknown = typeof args === 'string' ? JSON.parse(args) : args;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return [
    ...(isObject ? [] : ['arguments that are not an object']),
    ...(/^[a-zA-Z0-9_-]{1,64}$/.test(String(name)) ? [] : [`name ${String(name)}`]),
  ];
}

function responses(body: Fields): readonly string[] {
  const broken: string[] = [];
  const open = new Set<unknown>();
  const seen = new Set<unknown>();
  const input = list(body.input);
  broken.push(...turns(asMessages(input).map(({ role }) => String(role))));
  input.forEach((item, index) => {
    if (typeof item.type !== 'string') broken.push(`item ${index} without a type`);
    if (item.type === 'function_call') {
      if (seen.has(item.call_id)) broken.push(`id ${String(item.call_id)} twice`);
      seen.add(item.call_id);
      open.add(item.call_id);
      broken.push(...nameAndArguments(item.name, item.arguments));
    } else if (item.type === 'function_call_output') {
      if (!open.delete(item.call_id)) broken.push(`output for ${String(item.call_id)} out of place`);
    } else if (item.type === 'reasoning') {
      const next = input[index + 1];
      if (!next || next.role === 'user' || next.type === 'function_call_output')
        broken.push('reasoning without what it led to');
    } else if (item.role === 'user' && open.size > 0) broken.push('calls not answered before the user');
  });
  return open.size > 0 ? [...broken, 'calls not answered at the end'] : broken;
}

function messages(body: Fields): readonly string[] {
  const broken: string[] = [];
  const seen = new Set<unknown>();
  let open: unknown[] = [];
  list(body.messages).forEach((message, index) => {
    const blocks = list(message.content);
    if (message.role !== (index % 2 === 0 ? 'user' : 'assistant'))
      broken.push(`message ${index} is of ${String(message.role)}`);
    if (blocks.length === 0) broken.push(`message ${index} is empty`);
    const results = blocks.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => id);
    if (results.join() !== open.join()) broken.push(`results ${results.join()} for calls ${open.join()}`);
    if (blocks.slice(0, results.length).some(({ type }) => type !== 'tool_result')) broken.push('results not first');
    const calls = blocks.filter(({ type }) => type === 'tool_use');
    open = calls.map(({ id }) => id);
    for (const { id, name, input } of calls) {
      if (seen.has(id)) broken.push(`id ${String(id)} twice`);
      seen.add(id);
      broken.push(...nameAndArguments(name, input));
    }
    if (blocks.some(({ type, text }) => type === 'text' && String(text).trim() === '')) broken.push('blank text');
    if (String(blocks.at(-1)?.type).endsWith('thinking')) broken.push('thinking at the end');
  });
  if (open.length > 0) broken.push('calls not answered at the end');
  const last = list(body.messages).at(-1);
  const text = last?.role === 'assistant' ? list(last.content).at(-1)?.text : undefined;
  if (typeof text === 'string' && (/\s$/.test(text) || (body.thinking as Fields | undefined)?.type === 'enabled'))
    broken.push('a prefill that is not taken');
  if ((JSON.stringify(body).match(/"cache_control":\{/g) ?? []).length > 4) broken.push('more than four cache marks');
  return broken;
}

/** Every string in `value`, keys included, that a strict parser would refuse. */
export function loneSurrogates(value: unknown): number {
  let found = 0;
  JSON.parse(JSON.stringify(value), (key, item: unknown) => {
    if (!key.isWellFormed() || (typeof item === 'string' && !item.isWellFormed())) found++;
    return item;
  });
  return found;
}
