import { dirname, join } from 'node:path';
import type { AddedSource } from '../../kernel/config/project.js';
import { isRecord } from '../../kernel/core/json.js';
import { isSecretVariable } from '../../kernel/core/secrets/scanner.js';
import type { ProjectPart } from '../../kernel/config/project.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import {
  type ConfiguredServer,
  configuredServer,
  helperVariables,
  isUnencrypted,
  type EntryPlace,
  readServerFile,
  type ServerFile,
  variablesIn,
} from './configured-servers.js';
import { executedFiles, isTooLarge, trustHash } from './executed-files.js';
import { replaceFile } from './remembered-tools.js';
import { fittingNames, nameNotices } from './server-names.js';

/** The files and entries that name servers. */
export interface ServerFiles extends EntryPlace {
  /** `mcp.json` of the user. Null: it does not count. */
  readonly own: string | null;
  /** Entries that the program got when it was started, from an editor or an option. They count before all others. */
  readonly given?: Readonly<Record<string, unknown>> | undefined;
  /** Plugins that the user has trusted as they are. Their servers count after all others. */
  readonly plugins?: readonly AddedSource[];
  /** Variables that no file of others gets: keys of providers. */
  readonly withheld?: readonly string[];
  /** `.mcp.json` of the project, with the folder that its servers start in. Null: there is none. */
  readonly project: {
    readonly file: string;
    readonly folder: string;
    /** Variables that no project's file gets: keys of providers. */
    readonly withheld: readonly string[];
    /** Returns true if the user trusts the file with exactly these bytes. */
    readonly isTrusted: (sha256: string) => boolean;
  } | null;
}

export interface ListedServers {
  /** The servers that count. One of a trusted project that can be used replaces the user's own server of that name. */
  readonly servers: readonly ConfiguredServer[];
  /** The servers of a project that is not trusted: none of them starts. */
  readonly aside: readonly ConfiguredServer[];
  /** Sentences about files that cannot be read, and about names that are shortened. */
  readonly problems: readonly string[];
}

/** Reads both files. Starts nothing. */
export function listServers(files: ServerFiles): ListedServers {
  const { own, project, given = {}, plugins = [], withheld: keys = [], ...place } = files;
  const users: ServerFile = own === null ? { kind: 'missing' } : readServerFile(own);
  const ofPlugins = plugins.flatMap((plugin) => serversOfPlugin(plugin, { ...place, withheld: keys }));
  const ofUser = together(ofPlugins, serversIn(users, own ?? '', place));
  const handed = Object.entries(given).map(([name, entry]) => configuredServer(name, entry, 'this run', place));
  const ownProblems = problemsOf(users, own ?? '');
  if (project === null) return { servers: together(ofUser, handed), aside: [], problems: ownProblems };
  const { file, folder, withheld } = project;
  const found = readServerFile(file);
  const ofProject = serversIn(found, file, { ...place, cwd: folder, withheld });
  const problems = [...ownProblems, ...problemsOf(found, file)];
  if (found.kind !== 'read' || !project.isTrusted(trustHash(found.sha256, found.entries, folder)))
    return { servers: together(ofUser, handed), aside: ofProject, problems };
  // A server of the project that cannot be used leaves the user's own one, which may allow what a project must not.
  const usable = ofUser.filter(({ way }) => way.kind !== 'unusable').map(({ name }) => name);
  const counting = ofProject.filter(({ name, way }) => way.kind !== 'unusable' || !usable.includes(name));
  return { servers: together(together(ofUser, counting), handed), aside: [], problems };
}

/** Reads the servers of a plugin. They start in the directory of the session, and get the variables of the plugin. */
function serversOfPlugin({ servers, variables }: AddedSource, place: EntryPlace): readonly ConfiguredServer[] {
  const named = Object.fromEntries(Object.entries(variables).map(([key, value]) => [key.replaceAll(/\W/g, ''), value]));
  const inside = { ...place, env: { ...place.env, ...named } };
  const names = fittingNames(servers.flatMap(({ value }) => Object.keys(value)));
  return servers.flatMap(({ path, value }) =>
    Object.entries(value).map(([name, entry]) => {
      const server = configuredServer(names.get(name) ?? name, entry, path, inside);
      const { way } = server;
      return way.kind === 'stdio' ? { ...server, way: { ...way, env: { ...named, ...way.env } } } : server;
    }),
  );
}

/** All of both; of two with one name, the second. */
function together(one: readonly ConfiguredServer[], other: readonly ConfiguredServer[]): readonly ConfiguredServer[] {
  const taken = new Set(other.map(({ name }) => name));
  return [...one.filter(({ name }) => !taken.has(name)), ...other];
}

function serversIn(found: ServerFile, file: string, place: EntryPlace): readonly ConfiguredServer[] {
  if (found.kind !== 'read') return [];
  const names = fittingNames(Object.keys(found.entries));
  return Object.entries(found.entries).map(([name, entry]) =>
    configuredServer(names.get(name) ?? name, entry, file, place),
  );
}

function problemsOf(found: ServerFile, file: string): readonly string[] {
  if (found.kind === 'read') return nameNotices(Object.keys(found.entries), file);
  return found.kind === 'broken' ? [`${file} is left out: ${found.problem}.`] : [];
}

/** Saves the entries of the user. Keeps whatever else the file holds. */
export function saveEntries(file: string, entries: Readonly<Record<string, unknown>>): void {
  const found = readServerFile(file);
  const others = found.kind === 'read' ? found.others : {};
  replaceFile(file, `${JSON.stringify({ ...others, mcpServers: entries }, null, 2)}\n`);
}

/** Returns the facts that the user must know of a project's file before its servers may start. `own`: the file of the
 * user. Null if the file names no server. */
export function serverPart(file: string, own: string): ProjectPart | null {
  const found = readServerFile(file);
  if (found.kind !== 'read') return null;
  const users = readServerFile(own);
  const owned = users.kind === 'read' ? [...fittingNames(Object.keys(users.entries)).values()] : [];
  const names = fittingNames(Object.keys(found.entries));
  const shown = (name: string): string => {
    const short = names.get(name) ?? name;
    const whose = owned.includes(short) ? 'instead of your server' : 'the server';
    return `${whose} ${JSON.stringify(name)}${short === name ? '' : ` (here ${short})`}`;
  };
  const lines = Object.entries(found.entries).flatMap(([name, entry]) => [
    `${shown(name)} ${wayLine(entry)}`,
    ...detailLines(entry),
    ...executedFiles(entry, dirname(file)).map((path) =>
      isTooLarge(join(dirname(file), path))
        ? `  runs ${quoted(path)} of the project, which is too large to check, so the file cannot be trusted`
        : `  runs ${quoted(path)} of the project; asks again when it changes`,
    ),
  ]);
  const sha256 = trustHash(found.sha256, found.entries, dirname(file));
  return lines.length === 0 ? null : { kind: 'servers', path: file, sha256, bytes: statsAt(file)?.size ?? 0, lines };
}

function wayLine(entry: unknown): string {
  const { command, args, url } = isRecord(entry) ? entry : {};
  const words = [command, ...(Array.isArray(args) ? (args as readonly unknown[]) : [])].map(quoted);
  const starts = command === undefined ? [] : [`starts ${words.join(' ')}`];
  const reaches = url === undefined ? [] : [`connects to ${quoted(url)}`];
  return [...starts, ...reaches].join(' and ') || 'has neither a command nor a url';
}

function detailLines(entry: unknown): readonly string[] {
  if (!isRecord(entry)) return [];
  const isInsecure = isUnencrypted(entry);
  const names = (value: unknown): string => (isRecord(value) ? Object.keys(value).join(', ') : '');
  const shown: readonly (readonly [string, string])[] = [
    ['in the folder', entry['cwd'] === undefined ? '' : quoted(entry['cwd'])],
    ['sets the variables', settingsText(entry['env'])],
    ['sends the headers', names(entry['headers'])],
    ['runs this program for headers', entry['headersHelper'] === undefined ? '' : quoted(entry['headersHelper'])],
    ['gets these variables of yours', [...new Set([...variablesIn(entry), ...helperVariables(entry)])].join(', ')],
  ];
  return [
    ...(isInsecure ? ['  without encryption: others on the way can read and change what is sent'] : []),
    ...(entry['allow_insecure'] === true ? ['  asks for allow_insecure, which has no effect in a project'] : []),
    ...shown.flatMap(([what, text]) => (text === '' ? [] : [`  ${what} ${text}`])),
  ];
}

const maxValue = 200;

/** Variables with their values; those that hold a secret by their name, and long ones, without. */
function settingsText(value: unknown): string {
  if (!isRecord(value)) return '';
  return Object.entries(value)
    .map(([name, text]) =>
      typeof text === 'string' && text.length <= maxValue && !isSecretVariable(name, text)
        ? `${name}=${quoted(text)}`
        : name,
    )
    .join(', ');
}

function quoted(value: unknown): string {
  return typeof value === 'string' && /^[\w./:=@+-]+$/.test(value) ? value : (JSON.stringify(value) ?? '');
}
