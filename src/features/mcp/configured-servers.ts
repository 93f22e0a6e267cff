import { parseJson } from '../../kernel/core/json.js';
import { createHash } from 'node:crypto';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isRecord } from '../../kernel/core/json.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { isThisMachine } from '../../kernel/network/proxies.js';
import { loadingVariable } from './executed-files.js';
import { type HeadersHelper, shellVariables } from './headers-helper.js';
import { nameProblem } from './server-names.js';

/** The connection to a server. Variables are filled in. */
export type Way =
  | {
      readonly kind: 'stdio';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      /** Absolute. */
      readonly cwd: string;
    }
  | {
      readonly kind: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      /** Prints further headers, which win. */
      readonly helper?: HeadersHelper;
      readonly signIn: SignInSettings;
    };

/** The settings of `mcp.json` for the sign-in to a server. */
export interface SignInSettings {
  /** The id of this program as a client. An https address means a document that describes this program, for servers
   * that read such documents. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** The port that the browser comes back to; any without it. */
  readonly callbackPort?: number;
  readonly scope?: string;
}

/** A server of `mcp.json`. */
export interface ConfiguredServer {
  /** The name that it has here; one in a file may be shortened. */
  readonly name: string;
  /** The file that names it. */
  readonly file: string;
  readonly origin: 'user' | 'project';
  /** The entry as written, without filled-in variables. */
  readonly entry: unknown;
  /** Of the entry, and of the file where that is a project's: the same words mean another program there. */
  readonly sha256: string;
  /** A sentence where it cannot be used as it is written. */
  readonly way: Way | { readonly kind: 'unusable'; readonly problem: string };
  readonly enabled: boolean;
  /** `direct`: a model gets the tools of the server themselves. `deferred`: it finds them by a search. */
  readonly expose: 'auto' | 'direct' | 'deferred';
  readonly startupTimeoutMs: number;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  /** Globs over the names that the server gives its tools. Null: all. */
  readonly include: readonly string[] | null;
  readonly exclude: readonly string[];
  /** Tools whose calls need no question. */
  readonly allow: readonly string[];
  /** The address of the directory that the server gets (`roots`); null: it gets none. */
  readonly root: string | null;
}

/** The place that entries are read for. */
export interface EntryPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** `http.allow_insecure`: http to other machines than this one. */
  readonly allowInsecure?: boolean;
  /** Given for the file of a project: variables that are not filled in there. */
  readonly withheld?: readonly string[];
}

interface ReadFile {
  readonly kind: 'read';
  readonly entries: Readonly<Record<string, unknown>>;
  /** Whatever else it holds. */
  readonly others: Readonly<Record<string, unknown>>;
  /** The SHA-256 of the file's bytes, hex. */
  readonly sha256: string;
}

/** The content of a file of servers. Entries are as they are written. */
export type ServerFile =
  | ReadFile
  | { readonly kind: 'missing' }
  | { readonly kind: 'broken'; readonly problem: string };

const maxFileBytes = 1024 * 1024;

/** Reads `{"mcpServers": {…}}`, or an object that holds the servers themselves, as files of plugins do. */
export function readServerFile(file: string): ServerFile {
  let text: string | null;
  try {
    text = readBoundedText(file, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
  } catch (error) {
    return { kind: 'broken', problem: error instanceof Error ? error.message : String(error) };
  }
  if (text === null) return { kind: 'missing' };
  try {
    const value: unknown = parseJson(text);
    const found = isRecord(value) ? entriesIn(value) : null;
    return found
      ? { kind: 'read', ...found, sha256: createHash('sha256').update(text).digest('hex') }
      : { kind: 'broken', problem: 'it needs an object "mcpServers"' };
  } catch (error) {
    return { kind: 'broken', problem: error instanceof Error ? error.message : 'it is not JSON' };
  }
}

function entriesIn(value: Readonly<Record<string, unknown>>): Pick<ReadFile, 'entries' | 'others'> | null {
  const { mcpServers: entries, ...others } = value;
  if (entries !== undefined) return isRecord(entries) ? { entries, others } : null;
  const isServer = ([, entry]: readonly [string, unknown]): boolean =>
    isRecord(entry) && (typeof entry['command'] === 'string' || typeof entry['url'] === 'string');
  const all = Object.entries(value);
  if (!all.some(isServer)) return null;
  return {
    entries: Object.fromEntries(all.filter(isServer)),
    others: Object.fromEntries(all.filter((one) => !isServer(one))),
  };
}

/** Makes a server of its entry. Never throws: an entry that cannot be used says why. */
export function configuredServer(name: string, entry: unknown, file: string, place: EntryPlace): ConfiguredServer {
  const given = isRecord(entry) ? entry : {};
  const isOwn = place.withheld === undefined;
  const first = (...keys: readonly string[]): unknown => keys.map((key) => given[key]).find((it) => it !== undefined);
  return {
    name,
    file,
    origin: isOwn ? 'user' : 'project',
    entry,
    sha256: createHash('sha256')
      .update(JSON.stringify([name, entry, ...(isOwn ? [] : [file])]))
      .digest('hex'),
    way: wayOf(name, given, place),
    enabled: given['enabled'] !== false && given['disabled'] !== true,
    expose: exposeOf(given),
    startupTimeoutMs: milliseconds(given['startup_timeout_ms'], 30_000),
    timeoutMs: milliseconds(first('timeout_ms', 'timeout'), 60_000),
    maxTimeoutMs: milliseconds(given['max_timeout_ms'], 600_000),
    include: texts(first('include_tools', 'enabled_tools', 'includeTools')),
    exclude: texts(first('exclude_tools', 'disabled_tools', 'excludeTools')) ?? [],
    // Only the user says which calls need no question.
    allow: isOwn ? (texts(given['allow']) ?? []) : [],
    root: given['roots'] === true ? pathToFileURL(place.cwd).href : null,
  };
}

function exposeOf({ expose, alwaysLoad }: Readonly<Record<string, unknown>>): ConfiguredServer['expose'] {
  if (expose === 'direct' || expose === 'deferred') return expose;
  return expose === undefined && alwaysLoad === true ? 'direct' : 'auto';
}

/** Returns true if the name matches one of the globs. `*` matches any characters. */
export function fitsGlob(globs: readonly string[], name: string): boolean {
  return globs.some((glob) => {
    const [start = '', ...rest] = glob.split('*');
    const end = rest.pop();
    if (end === undefined) return glob === name;
    if (!name.startsWith(start)) return false;
    let at = start.length;
    for (const part of rest) {
      const found = name.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return name.endsWith(end) && name.length - end.length >= at;
  });
}

function wayOf(name: string, entry: Readonly<Record<string, unknown>>, place: EntryPlace): ConfiguredServer['way'] {
  const named = nameProblem(name);
  if (named !== null) return unusable(named);
  const key = place.withheld?.find((withheld) => [...variablesIn(entry), ...helperVariables(entry)].includes(withheld));
  if (key !== undefined) return unusable(`${key} is one of your keys, which project files cannot use`);
  const loading = place.withheld === undefined ? null : loadingVariable(entry);
  if (loading !== null) return unusable(`${loading} makes programs load other code, and project files cannot set it`);
  const missing = new Set<string>();
  const fill = (text: string): string => filledIn(text, place.env, missing);
  const way = kindOf(entry) === 'http' ? httpWay(entry, fill, place) : stdioWay(entry, fill, place);
  if (missing.size > 0) return unusable(`${[...missing].join(', ')} is not set; export it, or write \${NAME:-default}`);
  return way;
}

function unusable(problem: string): ConfiguredServer['way'] {
  return { kind: 'unusable', problem };
}

function kindOf({ transport, type = transport, url, command }: Readonly<Record<string, unknown>>): unknown {
  if (type === 'streamable-http' || type === 'streamableHttp') return 'http';
  return type ?? (typeof url === 'string' && command === undefined ? 'http' : 'stdio');
}

function stdioWay(
  entry: Readonly<Record<string, unknown>>,
  fill: (text: string) => string,
  { cwd, home }: EntryPlace,
): ConfiguredServer['way'] {
  if (kindOf(entry) !== 'stdio')
    return unusable(`type ${JSON.stringify(kindOf(entry))} is not supported; use "stdio" or "http"`);
  const { command, args = [], env = {}, cwd: folder = '.' } = entry;
  const list = texts(args);
  const pairs = textPairs(env, fill);
  if (typeof command !== 'string' || command === '') return unusable('it needs a "command" or a "url"');
  if (list === null) return unusable('"args" needs a list of texts');
  if (pairs === null) return unusable('"env" needs texts by name');
  if (typeof folder !== 'string') return unusable('"cwd" needs a text');
  const path = (text: string): string => (text.startsWith('~/') ? join(home, text.slice(2)) : text);
  const start = path(fill(folder));
  return {
    kind: 'stdio',
    command: path(fill(command)),
    args: list.map((text) => path(fill(text))),
    env: pairs,
    cwd: isAbsolute(start) ? start : resolve(cwd, start),
  };
}

function httpWay(
  entry: Readonly<Record<string, unknown>>,
  fill: (text: string) => string,
  place: EntryPlace,
): ConfiguredServer['way'] {
  const { url, headers = {}, headersHelper: helper } = entry;
  const pairs = textPairs(headers, fill);
  if (typeof url !== 'string') return unusable('it needs a "url"');
  if (pairs === null) return unusable('"headers" needs texts by name');
  if (helper !== undefined && (typeof helper !== 'string' || helper.trim() === ''))
    return unusable('"headersHelper" needs a command');
  const address = URL.parse(fill(url));
  if (address === null || !isAllowed(address, entry, place)) return unusable(needsHttps);
  const signIn = signInSettings(entry['oauth'], fill);
  const way = { kind: 'http', url: address.href, headers: pairs, signIn } as const;
  return helper === undefined ? way : { ...way, helper: headersHelper(helper, place) };
}

const needsHttps =
  '"url" needs https, or http on this machine; "allow_insecure": true in an entry of your mcp.json allows http to ' +
  'that host, http.allow_insecure=true to all';

/** Only the user's own file allows http to the host of an entry. */
function isAllowed(
  { protocol, hostname }: URL,
  entry: Readonly<Record<string, unknown>>,
  { allowInsecure, withheld }: EntryPlace,
): boolean {
  if (protocol === 'https:') return true;
  const isOwn = withheld === undefined && entry['allow_insecure'] === true;
  return protocol === 'http:' && (isOwn || allowInsecure === true || isThisMachine(hostname));
}

/** Returns true if requests to the address of an entry can be read on their way. */
export function isUnencrypted(entry: unknown): boolean {
  const url = isRecord(entry) && typeof entry['url'] === 'string' ? URL.parse(entry['url']) : null;
  return url?.protocol === 'http:' && !isThisMachine(url.hostname);
}

function headersHelper(command: string, { env, cwd }: EntryPlace): HeadersHelper {
  const named = shellVariables(command).flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { command, cwd, env: Object.fromEntries(named) };
}

/** Returns the variables that the command for headers is given. The shell fills them in. */
export function helperVariables(entry: unknown): readonly string[] {
  const helper = isRecord(entry) ? entry['headersHelper'] : undefined;
  return typeof helper === 'string' ? shellVariables(helper) : [];
}

/** `oauth` of an entry. What is none of its keys is left out. */
function signInSettings(oauth: unknown, fill: (text: string) => string): SignInSettings {
  if (!isRecord(oauth)) return {};
  const { client_secret: clientSecret } = oauth;
  // Claude Code has other names for the same.
  const { clientId = oauth['client_id'], callbackPort: port = oauth['callback_port'] } = oauth;
  const { scopes: scope = oauth['scope'] } = oauth;
  return {
    ...(typeof clientId === 'string' ? { clientId: fill(clientId) } : {}),
    ...(typeof clientSecret === 'string' ? { clientSecret: fill(clientSecret) } : {}),
    ...(typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536 ? { callbackPort: port } : {}),
    ...(typeof scope === 'string' ? { scope: fill(scope) } : {}),
  };
}

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Returns the names of all variables in the texts of an entry, each text read by itself as it is when it is filled
 * in: the start of a variable in one text must not hide another one. */
export function variablesIn(entry: unknown): readonly string[] {
  if (typeof entry === 'string') return [...new Set(Array.from(entry.matchAll(variable), ([, name = '']) => name))];
  return isRecord(entry) || Array.isArray(entry) ? [...new Set(Object.values(entry).flatMap(variablesIn))] : [];
}

/** Fills in `${NAME}` and `${NAME:-default}` once. Names that are not set are noted in `missing`. */
function filledIn(text: string, env: EntryPlace['env'], missing: Set<string>): string {
  return text.replaceAll(variable, (_whole, name: string, usual: string | undefined) => {
    const value = env[name] === '' && usual !== undefined ? usual : (env[name] ?? usual);
    if (value === undefined) missing.add(name);
    return value ?? '';
  });
}

function texts(value: unknown): readonly string[] | null {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : null;
}

function textPairs(value: unknown, fill: (text: string) => string): Readonly<Record<string, string>> | null {
  if (!isRecord(value)) return null;
  const pairs: [string, string][] = [];
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== 'string') return null;
    pairs.push([name, fill(text)]);
  }
  return Object.fromEntries(pairs);
}

function milliseconds(value: unknown, usual: number): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 1 ? Math.min(value, 2 ** 31 - 1) : usual;
}
