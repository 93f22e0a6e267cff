import { isTooDeep, parseJson } from '../../kernel/core/json.js';
import { join } from 'node:path';
import { isRecord } from '../../kernel/core/json.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { nameProblem } from './configured-servers.js';
import { parse as parseJsonc } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';

/** The places of the user's and the project's files. */
export interface ClientPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  /** The root of the repository. */
  readonly root: string;
}

/** A server of another program, as an entry of ours. */
export type FoundEntry =
  | { readonly name: string; readonly file: string; readonly entry: Entry; readonly notes: readonly string[] }
  | { readonly name: string; readonly file: string; readonly problem: string };

type Entry = Readonly<Record<string, unknown>>;

interface Client {
  readonly files: (place: ClientPlace) => readonly string[];
  /** The servers in the content of a file, by name. */
  readonly servers: (content: Entry, place: ClientPlace) => Entry;
  /** Makes an entry of ours; a text says why that cannot be done. */
  readonly translate: (entry: Entry) => Entry | string;
  /** Its way to write a variable, as ours. */
  readonly variables: (text: string) => string;
}

/** Programs whose servers can be taken over. Sources: their documentation on MCP, read in November 2026. */
export const otherClients: Readonly<Record<string, Client>> = {
  'claude-code': {
    files: ({ home, root }) => [join(home, '.claude.json'), join(root, '.mcp.json')],
    servers: (content, { root, cwd }) => {
      const projects = record(content['projects']);
      return {
        ...record(content['mcpServers']),
        ...record(record(projects[root])['mcpServers']),
        ...record(record(projects[cwd])['mcpServers']),
      };
    },
    translate: ({ type, command, args, env, url, headers, headersHelper }) =>
      type === 'sse' || type === 'ws'
        ? `${type} is not supported`
        : present({ command, args, env, url, ...(command === undefined ? { headers, headersHelper } : {}) }),
    variables: (text) => text,
  },
  codex: {
    files: ({ env, home, root }) => [
      join(env['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml'),
      join(root, '.codex', 'config.toml'),
    ],
    servers: (content) => record(content['mcp_servers']),
    translate: codexEntry,
    variables: (text) => text,
  },
  cursor: {
    files: ({ home, root }) => [join(home, '.cursor', 'mcp.json'), join(root, '.cursor', 'mcp.json')],
    servers: (content) => record(content['mcpServers']),
    translate: ({ type, command, args, env, url, headers }) =>
      type === 'sse' ? 'sse is not supported' : present({ command, args, env, url, headers }),
    variables: editorVariables,
  },
  vscode: {
    files: ({ env, home, root }) => [
      join(env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'Code', 'User', 'mcp.json'),
      join(home, 'Library', 'Application Support', 'Code', 'User', 'mcp.json'),
      join(root, '.vscode', 'mcp.json'),
    ],
    servers: (content) => record(content['servers']),
    translate: ({ type, command, args, env, cwd, url, headers }) =>
      type === 'sse' ? 'sse is not supported' : present({ command, args, env, cwd, url, headers }),
    variables: editorVariables,
  },
  gemini: {
    files: ({ home, root }) => [join(home, '.gemini', 'settings.json'), join(root, '.gemini', 'settings.json')],
    servers: (content) => record(content['mcpServers']),
    // `httpUrl` is the older name; a `url` without a type is tried over HTTP there as well.
    translate: ({ type, command, args, env, cwd, url, httpUrl, headers, timeout, includeTools, excludeTools }) =>
      command === undefined && httpUrl === undefined && (type ?? transportOf(url)) === 'sse'
        ? 'sse is not supported; many servers offer http at /mcp instead of /sse'
        : present({
            ...(command === undefined ? { url: httpUrl ?? url, headers } : { command, args, env, cwd }),
            timeout_ms: timeout,
            include_tools: includeTools,
            exclude_tools: excludeTools,
          }),
    variables: (text) => text.replaceAll(/\$([A-Za-z_]\w*)/g, '${$1}'),
  },
  opencode: {
    files: ({ env, home, root }) =>
      [join(env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'opencode'), root].flatMap((folder) => [
        join(folder, 'opencode.json'),
        join(folder, 'opencode.jsonc'),
      ]),
    servers: (content) => record(content['mcp']),
    translate: ({ command, environment, url, headers, enabled, timeout }) => {
      const [program, ...args] = Array.isArray(command) ? (command as readonly unknown[]) : [];
      return present({
        ...(program === undefined ? { url, headers } : { command: program, args, env: environment }),
        enabled: enabled === false ? false : undefined,
        timeout_ms: timeout,
      });
    },
    variables: (text) => text.replaceAll(/\{env:([A-Za-z_]\w*)\}/g, '${$1}'),
  },
};

/** A `url` without a type is tried over HTTP first; one that ends so is no other than what it says. */
function transportOf(url: unknown): 'http' | 'sse' {
  return typeof url === 'string' && /\/sse\/?$/.test(url) ? 'sse' : 'http';
}

function codexEntry(entry: Entry): Entry | string {
  const { command, args, env, env_vars: passed, cwd, url, bearer_token_env_var: token } = entry;
  const names = (Array.isArray(passed) ? (passed as readonly unknown[]) : []).map((item) =>
    isRecord(item) ? item['name'] : item,
  );
  const variables = {
    ...Object.fromEntries(names.map((name) => [String(name), `\${${String(name)}}`])),
    ...record(env),
  };
  const headers = {
    ...(typeof token === 'string' ? { Authorization: `Bearer \${${token}}` } : {}),
    ...record(entry['http_headers']),
    ...Object.fromEntries(
      Object.entries(record(entry['env_http_headers'])).map(([name, value]) => [name, `\${${String(value)}}`]),
    ),
  };
  return present({
    ...(command === undefined
      ? { url, headers: unlessEmpty(headers) }
      : { command, args, env: unlessEmpty(variables), cwd }),
    startup_timeout_ms: inMs(entry['startup_timeout_sec']),
    timeout_ms: inMs(entry['tool_timeout_sec']),
    enabled: entry['enabled'] === false ? false : undefined,
    include_tools: entry['enabled_tools'],
    exclude_tools: entry['disabled_tools'],
  });
}

/** `${env:N}`, `${input:id}`, `${userHome}` and `${workspaceFolder}`: a server of ours starts where the session is. */
function editorVariables(text: string): string {
  return text
    .replaceAll(/\$\{env:([A-Za-z_]\w*)\}/g, '${$1}')
    .replaceAll(/\$\{input:([^}]*)\}/g, (_whole, id: string) => `\${${id.replaceAll(/\W/g, '_').toUpperCase()}}`)
    .replaceAll(/\$\{(?:workspaceFolder|workspaceRoot)\}/g, '.')
    .replaceAll(/^\$\{userHome\}/g, '~');
}

const maxFileBytes = 16 * 1024 * 1024;

/** Reads the servers of another program; of two of the same name the one of the project counts, as it does there.
 * Starts nothing and keeps nothing. Throws a sentence where a file cannot be read. */
export async function serversOfClient(client: Client, place: ClientPlace): Promise<readonly FoundEntry[]> {
  const found = new Map<string, FoundEntry>();
  for (const file of client.files(place)) {
    const text = readBoundedText(file, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
    if (text === null) continue;
    const content = record(file.endsWith('.toml') ? await tomlOf(text, file) : await jsonOf(text, file));
    for (const [name, entry] of Object.entries(client.servers(content, place)))
      found.set(name, foundEntry(client, name, record(entry), file));
  }
  return [...found.values()];
}

function foundEntry(client: Client, given: string, entry: Entry, file: string): FoundEntry {
  const translated = client.translate(entry);
  if (typeof translated === 'string') return { name: given, file, problem: translated };
  if (translated['command'] === undefined && translated['url'] === undefined)
    return { name: given, file, problem: 'it has neither a command nor a url' };
  const name = fittingName(given);
  const notes = name === given ? [] : [`named ${name}: a name has at most 24 letters, digits, _ and -`];
  const ours = mapTexts(translated, client.variables);
  const others = unknownVariables(ours);
  if (others.length > 0) notes.push(`${others.join(', ')} is not supported; write out the value`);
  return { name, file, entry: ours, notes };
}

function fittingName(name: string): string {
  if (nameProblem(name) === null) return name;
  const plain = name.replaceAll(/[^A-Za-z0-9-]+/g, '_').slice(0, 24);
  return nameProblem(plain) === null ? plain : 'server';
}

function unknownVariables(entry: Entry): readonly string[] {
  return [...new Set(JSON.stringify(entry).match(/\$\{(?![A-Za-z_]\w*(?::-[^}]*)?\})[^}"]*\}|\{file:[^}"]*\}/g) ?? [])];
}

async function tomlOf(text: string, file: string): Promise<unknown> {
  try {
    return parseToml(text);
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** With comments and trailing commas, as the editors allow them. */
async function jsonOf(text: string, file: string): Promise<unknown> {
  try {
    return parseJson(text);
  } catch (error) {
    if (isTooDeep(text)) throw unreadable(file, error);
    const problems: Parameters<typeof parseJsonc>[1] = [];
    const value: unknown = parseJsonc(text, problems, { allowTrailingComma: true });
    if (problems.length > 0) throw unreadable(file, error);
    return value;
  }
}

function unreadable(file: string, error: unknown): Error {
  const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  return new Error(`${file} cannot be read: ${message}`, { cause: error });
}

function mapTexts(value: Entry, change: (text: string) => string): Entry {
  const changed = (item: unknown): unknown => {
    if (typeof item === 'string') return change(item);
    if (Array.isArray(item)) return item.map(changed);
    return isRecord(item) ? mapTexts(item, change) : item;
  };
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, changed(item)]));
}

function record(value: unknown): Entry {
  return isRecord(value) ? value : {};
}

function present(entry: Entry): Entry {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));
}

function unlessEmpty(entry: Entry): Entry | undefined {
  return Object.keys(entry).length > 0 ? entry : undefined;
}

function inMs(seconds: unknown): number | undefined {
  return typeof seconds === 'number' ? Math.round(seconds * 1000) : undefined;
}
