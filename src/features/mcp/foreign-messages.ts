import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { isDeeperThan, isRecord, parseDeepJson, parseJson } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import { visible } from './foreign-tools.js';
import type { LeftOut, Sdk } from './open-connection.js';
import { repairFields, repairTool, type SchemaIssue } from './repairs.js';

/** A longer message is dropped; the request that it answers fails at once. */
export const maxMessageBytes = 16 * 1024 * 1024;
export const tooLong = `it answered with more than ${maxMessageBytes / 1024 / 1024} MiB, which was dropped`;
/** Of an entry of a list, or of any other result: what reads it calls itself once a level. */
const maxDepth = 512;

/** The key by which a request names its version of the protocol from 2026-07-28 on. */
const versionKey = 'io.modelcontextprotocol/protocolVersion';

/** A request without an answer. From 2026-07-28 on each request names its version, and its answer has more fields. */
interface OpenRequest {
  readonly method: string;
  readonly namesVersion: boolean;
}

/** Reads the messages of one connection. Servers break the letter of the protocol in many ways, and the SDK then drops a
 * whole message: what has one meaning is repaired first, so that one wrong field costs no more than itself. */
export interface ForeignMessages {
  /** Takes a message that is sent to the server. */
  sent(message: unknown): void;
  /** Returns the message that this JSON value is; null where it is none, or answers nothing that was asked. */
  received(value: unknown): JSONRPCMessage | null;
  /** Returns failures for the requests that a text answers which could not be read whole. `ends`: its beginning and its
   * end. Null: it is no answer. */
  unreadable(ends: readonly string[], why: string): readonly JSONRPCMessage[] | null;
  /** Returns failures for all requests that wait. */
  failAll(why: string): readonly JSONRPCMessage[];
  /** Returns the answer that says why there is none; null where the request has one. */
  fail(id: string | number, why: string): JSONRPCMessage | null;
  /** True once the server has refused `initialize` itself. */
  refusesInitialize(): boolean;
}

type Message = Record<string, unknown>;
type Id = string | number;

const resultSchemas: Readonly<Record<string, keyof Sdk['specTypeSchemas']>> = {
  initialize: 'InitializeResult',
  'server/discover': 'DiscoverResult',
  'tools/list': 'ListToolsResult',
  'tools/call': 'CallToolResult',
  'prompts/list': 'ListPromptsResult',
  'prompts/get': 'GetPromptResult',
  'resources/list': 'ListResourcesResult',
  'resources/read': 'ReadResourceResult',
};

const kinds: Readonly<Record<string, LeftOut['kind']>> = { tools: 'tool', prompts: 'prompt', resources: 'resource' };

export function createForeignMessages(sdk: Sdk, onLeftOut: (entry: LeftOut) => void): ForeignMessages {
  const open = new Map<Id, OpenRequest>();
  let refused = false;

  const answerTo = (id: Id, request: OpenRequest, message: Message): JSONRPCMessage => {
    const { method } = request;
    open.delete(id);
    if (message['result'] === undefined || isRecord(message['error'])) {
      refused ||= method === 'initialize';
      return errorAnswer(id, message['error']);
    }
    const result = repairResult(sdk, request, message['result'], onLeftOut);
    return typeof result === 'string'
      ? failure(id, `its answer to ${method} cannot be used: ${result}`)
      : { jsonrpc: '2.0', id, result };
  };

  const failed = (ids: readonly Id[], why: string): readonly JSONRPCMessage[] =>
    ids.map((id) => {
      open.delete(id);
      return failure(id, why);
    });

  return {
    sent: (message) => {
      if (!isRecord(message) || typeof message['method'] !== 'string') return;
      const { id, method } = message;
      const params = isRecord(message['params']) ? message['params'] : {};
      const namesVersion = isRecord(params['_meta']) && versionKey in params['_meta'];
      if (isId(id)) open.set(id, { method, namesVersion });
      if (method === 'notifications/cancelled' && isId(params['requestId'])) open.delete(params['requestId']);
    },
    received: (value) => {
      if (!isRecord(value)) return null;
      if (typeof value['method'] === 'string') return requestOf(sdk, value);
      const id = openId(value['id'], open) ?? (isRecord(value['error']) && value['id'] == null ? only(open) : null);
      const request = id === null ? undefined : open.get(id);
      return id === null || request === undefined ? null : answerTo(id, request, value);
    },
    unreadable: (ends, why) => {
      if (/^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"/.test(ends[0] ?? '')) return null;
      return failed(
        [...open.keys()].filter((id) => ends.some((text) => namesId(text, id))),
        why,
      );
    },
    failAll: (why) => failed([...open.keys()], why),
    fail: (id, why) => (open.delete(id) ? failure(id, why) : null),
    refusesInitialize: () => refused,
  };
}

/** Returns the JSON value of a text; undefined where it is none. */
export function parseMessage(text: string): unknown {
  try {
    return parseDeepJson(text.replace(/^\uFEFF/, ''));
  } catch {
    return undefined;
  }
}

function isId(value: unknown): value is Id {
  return typeof value === 'string' || typeof value === 'number';
}

/** Ids come back as texts from some servers. */
function openId(id: unknown, open: ReadonlyMap<Id, OpenRequest>): Id | null {
  if (!isId(id)) return null;
  if (open.has(id)) return id;
  const number = Number(id);
  return open.has(number) ? number : null;
}

/** The request that waits, where it is the only one. */
function only(open: ReadonlyMap<Id, OpenRequest>): Id | null {
  const [id = null] = open.keys();
  return open.size === 1 ? id : null;
}

function namesId(text: string, id: Id): boolean {
  const [, found = null] = /"id"\s*:\s*("[^"\\]*"|\d+)\s*[,}]/.exec(text) ?? [];
  return found !== null && String(parseJson(found)) === String(id);
}

function failure(id: Id, message: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: -32_603, message } };
}

/** Keeps the server's own words, in whatever form they come. */
function errorAnswer(id: Id, error: unknown): JSONRPCMessage {
  const { code, message, data } = isRecord(error) ? error : { code: 0, message: error, data: undefined };
  const words = typeof message === 'string' ? message : isTooDeep(error) ? '' : JSON.stringify(message ?? error);
  return {
    jsonrpc: '2.0',
    id,
    error: {
      code: Number.isSafeInteger(code) && code !== 0 ? Number(code) : -32_603,
      message: firstLine(visible(words ?? ''), 1000) || 'its answer has neither a result nor an error',
      ...(data === undefined || isTooDeep(data) ? {} : { data }),
    },
  };
}

/** A request or a notification of the server. One without a use is left to the SDK, which refuses it. */
function requestOf(sdk: Sdk, { id, method, params }: Message): JSONRPCMessage | null {
  // Nobody reads them, and they come in floods.
  if (method === 'notifications/message') return null;
  const { _meta: meta, ...others } = isRecord(params) && !isTooDeep(params) ? params : {};
  const given: Message = { ...others, ...(isRecord(meta) ? { _meta: meta } : {}) };
  if (method === 'elicitation/create') {
    const schema = given['mode'] === 'url' ? 'ElicitRequestURLParams' : 'ElicitRequestFormParams';
    repairFields(given, issuesOf(sdk, schema), () => undefined);
  }
  return { jsonrpc: '2.0', method: String(method), params: given, ...(isId(id) ? { id } : {}) };
}

function issuesOf(sdk: Sdk, schema: keyof Sdk['specTypeSchemas']): (value: unknown) => readonly SchemaIssue[] {
  return (value) => {
    const { issues = [] } = sdk.specTypeSchemas[schema]['~standard'].validate(value) as {
      readonly issues?: readonly SchemaIssue[];
    };
    return issues;
  };
}

/** Returns the result as the SDK accepts it, or a sentence. Entries that cannot be used are left out of their lists. */
function repairResult(
  sdk: Sdk,
  { method, namesVersion }: OpenRequest,
  result: unknown,
  onLeftOut: (entry: LeftOut) => void,
): Message | string {
  if (!isRecord(result)) return `it is ${wordOf(result)} instead of an object`;
  const { tools, ...others } = result;
  if (isTooDeep(method === 'tools/list' ? others : result)) return 'it is nested too deeply';
  const repaired: Message = { ...others, ...(tools === undefined ? {} : { tools }) };
  if (namesVersion) addRequiredFields(method, repaired);
  if (repaired['resultType'] === 'input_required') return repaired;
  prepare(method, repaired, onLeftOut);
  const schema = resultSchemas[method] ?? 'Result';
  return (
    repairFields(repaired, issuesOf(sdk, schema), (list, entry, problem) => {
      const kind = kinds[list];
      if (kind) onLeftOut({ kind, problem: `${nameOf(entry)}: ${problem}` });
    }) ?? repaired
  );
}

/** Adds the fields that every result has since 2026-07-28 where they are missing or wrong: an answer without them is
 * complete and not cached. The metadata of a result has no reader here, but a wrong field in it voids the result.
 * Source: Model Context Protocol 2026-07-28, "Result" and "CacheableResult", read 2026-11-26. */
function addRequiredFields(method: string, result: Message): void {
  if (method !== 'subscriptions/listen') delete result['_meta'];
  if (result['resultType'] !== 'input_required') result['resultType'] = 'complete';
  const { ttlMs, cacheScope } = result;
  if (!Number.isSafeInteger(ttlMs) || Number(ttlMs) < 0) result['ttlMs'] = 0;
  if (cacheScope !== 'public') result['cacheScope'] = 'private';
}

/** Repairs what the schema of the SDK cannot say. */
function prepare(method: string, result: Message, onLeftOut: (entry: LeftOut) => void): void {
  const list = method.endsWith('/list') ? method.slice(0, -'/list'.length) : '';
  if (list !== '' && (result[list] === undefined || result[list] === null || isEmptyObject(result[list])))
    result[list] = [];
  const { content, isError } = result;
  switch (method) {
    case 'initialize':
      result['capabilities'] = capabilitiesIn(result['capabilities']);
      result['serverInfo'] = serverName(result['serverInfo']);
      break;
    case 'server/discover':
      prepareDiscovered(result);
      break;
    case 'tools/list':
      if (Array.isArray(result['tools'])) result['tools'] = toolsIn(result['tools'], onLeftOut);
      break;
    case 'tools/call':
      if (content !== undefined)
        result['content'] = Array.isArray(content) ? content.map(contentBlock) : blockOf(content);
      // A failure must not look like a success.
      if (isError !== undefined) result['isError'] = isError === 'false' ? false : Boolean(isError);
      break;
    default:
  }
}

function prepareDiscovered(result: Message): void {
  result['capabilities'] = capabilitiesIn(result['capabilities']);
  if (typeof result['instructions'] !== 'string') delete result['instructions'];
  result['supportedVersions'] = [result['supportedVersions']].flat().filter((one) => typeof one === 'string');
}

function toolsIn(entries: readonly unknown[], onLeftOut: (entry: LeftOut) => void): readonly unknown[] {
  return entries.flatMap((entry) => {
    const tool = isTooDeep(entry) ? 'it is nested too deeply' : repairTool(entry);
    if (typeof tool !== 'string') return [tool];
    onLeftOut({ kind: 'tool', problem: `${nameOf(entry)}: ${tool}` });
    return [];
  });
}

/** A server that says of nothing that it has it is asked for tools all the same. */
function capabilitiesIn(value: unknown): Message {
  const given = Object.entries(isRecord(value) ? value : {}).filter(([, capability]) => capability !== false);
  const named = Object.fromEntries(given.map(([name, about]) => [name, isRecord(about) ? about : {}]));
  return ['tools', 'resources', 'prompts'].some((name) => Object.hasOwn(named, name)) ? named : { ...named, tools: {} };
}

/** Nobody reads what a server calls itself. */
function serverName(value: unknown): Message {
  const { name, version } = isRecord(value) ? value : {};
  return { name: typeof name === 'string' ? name : '', version: typeof version === 'string' ? version : '' };
}

const defaults: Readonly<Record<string, Message>> = {
  image: { mimeType: 'application/octet-stream' },
  audio: { mimeType: 'application/octet-stream' },
  resource_link: { name: '' },
};

/** Content without a known form is shown as it came. */
function contentBlock(block: unknown): unknown {
  if (!isRecord(block)) return { type: 'text', text: typeof block === 'string' ? block : JSON.stringify(block) };
  const { type, text, annotations: _annotations, _meta, ...others } = block;
  const known = String(type);
  if (known === 'text') return { type, text: typeof text === 'string' ? text : JSON.stringify(text ?? null) };
  if (typeof text === 'string' && type === undefined) return { type: 'text', text };
  const mimeType = others['mimeType'];
  const whole = {
    type,
    ...others,
    ...defaults[known],
    ...(typeof mimeType === 'string' ? { mimeType } : {}),
    ...(typeof others['name'] === 'string' ? { name: others['name'] } : {}),
  };
  return isKnownBlock(known, whole) ? whole : { type: 'text', text: JSON.stringify(block) };
}

function isKnownBlock(type: string, { data, uri, resource }: Message): boolean {
  switch (type) {
    case 'image':
    case 'audio':
      return typeof data === 'string' && /^[A-Za-z0-9+/=\s]*$/.test(data);
    case 'resource_link':
      return typeof uri === 'string';
    case 'resource':
      return (
        isRecord(resource) &&
        typeof resource['uri'] === 'string' &&
        (typeof resource['text'] === 'string' || typeof resource['blob'] === 'string')
      );
    default:
      return false;
  }
}

function blockOf(content: unknown): readonly unknown[] {
  return content === null || isEmptyObject(content) ? [] : [contentBlock(content)];
}

function isEmptyObject(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0;
}

function nameOf(entry: unknown): string {
  const { name, uri } = isRecord(entry) ? entry : {};
  const known = typeof name === 'string' ? name : uri;
  return typeof known === 'string' ? JSON.stringify(visible(known).slice(0, 64)) : 'one without a name';
}

function wordOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

function isTooDeep(value: unknown): boolean {
  return isDeeperThan(value, maxDepth);
}
