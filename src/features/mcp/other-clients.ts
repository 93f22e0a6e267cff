import { join } from 'node:path';
import { readForeignSettings, recordIn as record } from '../../kernel/config/foreign-settings.js';
import type { SourcePlace } from '../../kernel/console/importer.js';
import { isRecord } from '../../kernel/core/json.js';
import { isUnencrypted } from './configured-servers.js';
import { fittingNames } from './server-names.js';

/** The places of the user's and the project's files. */
export interface ClientPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  /** The root of the repository. */
  readonly root: string;
}

/** A server of another program, as an entry of ours. */
export type FoundEntry = {
  readonly name: string;
  /** Its name there. */
  readonly given: string;
  readonly file: string;
} & ({ readonly entry: Entry; readonly notes: readonly string[] } | { readonly problem: string });

type Entry = Readonly<Record<string, unknown>>;

interface Client {
  readonly userFiles: (place: ClientPlace) => readonly string[];
  readonly projectFiles?: (place: ClientPlace) => readonly string[];
  /** The servers of projects are used where they are, once the user trusts the project. */
  readonly usedInPlace?: true;
  /** The servers in the content of a file, by name. */
  readonly servers: (content: Entry) => Entry;
  /** The servers that a file of the user holds for this project alone. */
  readonly projectServers?: (content: Entry, place: ClientPlace) => Entry;
  /** Makes an entry of ours; a text says why that cannot be done. */
  readonly translate: (entry: Entry) => Entry | string;
  /** Its way to write a variable, as ours. */
  readonly variables: (text: string) => string;
}

/** Programs whose servers can be taken over. Sources: their documentation on MCP, read in November 2026. */
export const otherClients: Readonly<Record<string, Client>> = {
  'claude-code': {
    userFiles: ({ env, home }) => [join(env['CLAUDE_CONFIG_DIR'] ?? home, '.claude.json')],
    projectFiles: ({ root }) => [join(root, '.mcp.json')],
    usedInPlace: true,
    servers: (content) => record(content['mcpServers']),
    projectServers: (content, { root, cwd }) => {
      const projects = record(content['projects']);
      return { ...record(record(projects[root])['mcpServers']), ...record(record(projects[cwd])['mcpServers']) };
    },
    translate: plainEntry,
    variables: (text) => text,
  },
  'claude-desktop': {
    userFiles: ({ env, home }) => [
      join(home, 'Library', 'Application Support', 'Claude', 'claude_desktop_config.json'),
      join(configFolder(env, home), 'Claude', 'claude_desktop_config.json'),
    ],
    servers: (content) => record(content['mcpServers']),
    translate: plainEntry,
    variables: (text) => text,
  },
  codex: {
    userFiles: ({ env, home }) => [join(env['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml')],
    projectFiles: ({ root }) => [join(root, '.codex', 'config.toml')],
    servers: (content) => record(content['mcp_servers']),
    translate: codexEntry,
    variables: (text) => text,
  },
  cursor: {
    userFiles: ({ home }) => [join(home, '.cursor', 'mcp.json')],
    projectFiles: ({ root }) => [join(root, '.cursor', 'mcp.json')],
    servers: (content) => record(content['mcpServers']),
    translate: plainEntry,
    variables: editorVariables,
  },
  vscode: {
    userFiles: ({ env, home }) =>
      [configFolder(env, home), join(home, 'Library', 'Application Support')].flatMap((folder) =>
        vscodeFiles.map((name) => join(folder, 'Code', 'User', name)),
      ),
    projectFiles: ({ root }) => vscodeFiles.map((name) => join(root, '.vscode', name)),
    // Older versions have them among their settings.
    servers: (content) => ({ ...record(record(content['mcp'])['servers']), ...record(content['servers']) }),
    translate: plainEntry,
    variables: editorVariables,
  },
  gemini: {
    userFiles: ({ home }) => [join(home, '.gemini', 'settings.json')],
    projectFiles: ({ root }) => [join(root, '.gemini', 'settings.json')],
    servers: (content) => record(content['mcpServers']),
    translate: geminiEntry,
    variables: geminiVariables,
  },
  qwen: {
    userFiles: ({ home }) => [join(home, '.qwen', 'settings.json')],
    projectFiles: ({ root }) => ['settings.json', 'settings.local.json'].map((name) => join(root, '.qwen', name)),
    servers: (content) => record(content['mcpServers']),
    translate: geminiEntry,
    variables: geminiVariables,
  },
  zed: {
    userFiles: ({ env, home }) => [join(configFolder(env, home), 'zed', 'settings.json')],
    projectFiles: ({ root }) => [join(root, '.zed', 'settings.json')],
    servers: (content) => record(content['context_servers']),
    translate: zedEntry,
    variables: (text) => text,
  },
  // Servers of pi are those of its extension pi-mcp-adapter.
  pi: {
    userFiles: ({ env, home }) => [join(env['PI_CODING_AGENT_DIR'] ?? join(home, '.pi', 'agent'), 'mcp.json')],
    projectFiles: ({ root }) => [join(root, '.pi', 'mcp.json')],
    servers: (content) => record(content['mcpServers']),
    translate: piEntry,
    variables: (text) => text.replaceAll(/\$env:([A-Za-z_]\w*)/g, '${$1}'),
  },
  opencode: {
    userFiles: ({ env, home }) => opencodeFiles.map((name) => join(configFolder(env, home), 'opencode', name)),
    projectFiles: ({ root }) => opencodeFiles.map((name) => join(root, name)),
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

const vscodeFiles = ['settings.json', 'mcp.json'];
const opencodeFiles = ['opencode.json', 'opencode.jsonc'];

function configFolder(env: ClientPlace['env'], home: string): string {
  return env['XDG_CONFIG_HOME'] ?? join(home, '.config');
}

/** The form that most programs share. Keys that some of them lack do no harm. */
function plainEntry(entry: Entry): Entry | string {
  const { transport, type = transport, command, args, env, cwd, url, headers, headersHelper, oauth } = entry;
  if (type === 'sse' || type === 'ws') return `${type} is not supported`;
  return present({
    ...(command === undefined ? { url, headers, headersHelper, oauth } : { command, args, env, cwd, url }),
    timeout_ms: entry['timeout'],
    alwaysLoad: entry['alwaysLoad'],
    enabled: entry['disabled'] === true || entry['enabled'] === false ? false : undefined,
  });
}

/** `httpUrl` is the older name; a `url` without a type is tried over HTTP there as well. */
function geminiEntry(entry: Entry): Entry | string {
  const { type, command, args, env, cwd, url, httpUrl, headers, timeout, includeTools, excludeTools } = entry;
  if (command === undefined && httpUrl === undefined && (type ?? transportOf(url)) === 'sse')
    return 'sse is not supported; many servers offer http at /mcp instead of /sse';
  return present({
    ...(command === undefined ? { url: httpUrl ?? url, headers } : { command, args, env, cwd }),
    timeout_ms: timeout,
    include_tools: includeTools,
    exclude_tools: excludeTools,
  });
}

function geminiVariables(text: string): string {
  return text.replaceAll(/\$([A-Za-z_]\w*)/g, '${$1}');
}

/** An older entry has an object as its command. One of an extension has neither a command nor a url. */
function zedEntry(entry: Entry): Entry | string {
  const { command, url } = entry;
  if (isRecord(command)) {
    const { path, args, env } = command;
    return plainEntry({ ...entry, command: path, args, env });
  }
  if (command === undefined && url === undefined && (entry['source'] === 'extension' || isRecord(entry['settings'])))
    return 'an extension of Zed starts it';
  return plainEntry(entry);
}

function piEntry(entry: Entry): Entry | string {
  const { bearerToken, bearerTokenEnv, headers, excludeTools } = entry;
  const token = typeof bearerTokenEnv === 'string' ? `\${${bearerTokenEnv}}` : bearerToken;
  const authorization = typeof token === 'string' ? { Authorization: `Bearer ${token}` } : {};
  const plain = plainEntry({ ...entry, headers: unlessEmpty({ ...authorization, ...record(headers) }) });
  return typeof plain === 'string' ? plain : present({ ...plain, exclude_tools: excludeTools });
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

/** A file of servers, or why it cannot be read. */
export interface ClientSource extends Pick<SourcePlace, 'path' | 'scope'> {
  /** They are used where they are. */
  readonly inPlace: boolean;
  readonly found: readonly FoundEntry[] | Error;
}

/** Returns the files of a program in which servers may be. */
export function filesOfClient({ userFiles, projectFiles }: Client, place: ClientPlace): readonly string[] {
  return [...userFiles(place), ...(projectFiles?.(place) ?? [])];
}

/** Reads the servers of another program, file by file. Starts nothing and keeps nothing. */
export function sourcesOfClient(client: Client, place: ClientPlace): readonly ClientSource[] {
  const read = [
    ...client
      .userFiles(place)
      .flatMap((path) => [
        { path, scope: 'user', inPlace: false, servers: () => serversIn(path, client.servers) } as const,
        { path, scope: 'project', inPlace: false, servers: () => ofProject(client, path, place) } as const,
      ]),
    ...(client.projectFiles?.(place) ?? []).map(
      (path) =>
        ({
          path,
          scope: 'project',
          inPlace: client.usedInPlace === true,
          servers: () => serversIn(path, client.servers),
        }) as const,
    ),
  ].map(({ servers, ...source }) => ({ source, servers: attempt(servers) }));
  const given = read.flatMap(({ servers }) => (servers instanceof Error ? [] : Object.keys(servers)));
  const names = fittingNames([...new Set(given)]);
  return read.map(({ source, servers }) => ({
    ...source,
    found:
      servers instanceof Error
        ? servers
        : Object.entries(servers).map(([name, entry]) =>
            foundEntry(
              client,
              { given: name, name: names.get(name) ?? name },
              { entry: record(entry), file: source.path },
            ),
          ),
  }));
}

function serversIn(path: string, servers: (content: Entry) => Entry): Entry {
  const content = readForeignSettings(path);
  return content === null ? {} : servers(content);
}

/** A file that cannot be read is named as one of the user. */
function ofProject({ projectServers }: Client, path: string, place: ClientPlace): Entry {
  if (projectServers === undefined) return {};
  const servers = attempt(() => serversIn(path, (content) => projectServers(content, place)));
  return servers instanceof Error ? {} : servers;
}

function attempt(read: () => Entry): Entry | Error {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Reads the servers of another program; of two of the same name the one of the project counts, as it does there.
 * Throws a sentence where a file cannot be read. */
export function serversOfClient(client: Client, place: ClientPlace): readonly FoundEntry[] {
  const found = new Map<string, FoundEntry>();
  for (const source of sourcesOfClient(client, place)) {
    if (source.found instanceof Error) throw source.found;
    for (const entry of source.found) found.set(entry.given, entry);
  }
  return [...found.values()];
}

interface FoundIn {
  readonly entry: Entry;
  readonly file: string;
}

function foundEntry(
  client: Client,
  { given, name }: { readonly given: string; readonly name: string },
  { entry, file }: FoundIn,
): FoundEntry {
  const translated = client.translate(entry);
  if (typeof translated === 'string') return { name: given, given, file, problem: translated };
  if (translated['command'] === undefined && translated['url'] === undefined)
    return { name: given, given, file, problem: 'it has neither a command nor a url' };
  const notes = name === given ? [] : [`named ${name}: a name has at most 24 letters, digits, _ and -`];
  const ours = mapTexts(translated, client.variables);
  const left = withoutEqual.filter((key) => isMeant(entry[key]));
  if (left.length > 0) notes.push(`${left.join(', ')} is not taken over`);
  if (isUnencrypted(ours))
    notes.push('it needs "allow_insecure": true in your mcp.json, because http is not encrypted');
  const others = unknownVariables(ours);
  if (others.length > 0) notes.push(`${others.join(', ')} is not supported; write out the value`);
  return { name, given, file, entry: ours, notes };
}

/** Keys of other programs that change what a server may do or where its variables are from, and have no equal here. */
const withoutEqual = ['envFile', 'inheritEnv', 'trust', 'alwaysAllow', 'autoApprove', 'authProviderType', 'sandbox'];

function isMeant(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

function unknownVariables(entry: Entry): readonly string[] {
  return [...new Set(JSON.stringify(entry).match(/\$\{(?![A-Za-z_]\w*(?::-[^}]*)?\})[^}"]*\}|\{file:[^}"]*\}/g) ?? [])];
}

function mapTexts(value: Entry, change: (text: string) => string): Entry {
  const changed = (item: unknown): unknown => {
    if (typeof item === 'string') return change(item);
    if (Array.isArray(item)) return item.map(changed);
    return isRecord(item) ? mapTexts(item, change) : item;
  };
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, changed(item)]));
}

function present(entry: Entry): Entry {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined && value !== null));
}

function unlessEmpty(entry: Entry): Entry | undefined {
  return Object.keys(entry).length > 0 ? entry : undefined;
}

function inMs(seconds: unknown): number | undefined {
  return typeof seconds === 'number' ? Math.round(seconds * 1000) : undefined;
}
