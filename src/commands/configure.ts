import { features } from '../app/features.js';
import { addAll, largestOf } from '../kernel/core/lists.js';
import { ourName } from '../kernel/tools/claude-names.js';
import { type Origin, originRank, parseText, unknownKeyProblem, valueAt } from '../kernel/config/layers.js';
import { loadConfig, type LoadedConfig, type LoadOptions } from '../kernel/config/load.js';
import {
  agentPaths,
  type AgentPaths,
  type ConfigProblem,
  editConfigFile,
  issueProblem,
  textProblem,
} from '../kernel/config/settings-file.js';
import {
  type SettingKey,
  keyText,
  knownKeys,
  maskText,
  maskValue,
  resolveKey,
  variableOf,
} from '../kernel/config/settings-schema.js';
import type { Json } from '../kernel/core/json.js';
import { type CommandLine, exit, type CliCommand, type Tools, type CommandHandler } from '../kernel/console/command.js';
import { wrongBinding } from '../ui/editor/keybindings.js';
import { jsonText } from '../kernel/console/line-output.js';
import type { Rule } from '../kernel/core/policy.js';
import { unheededAllow } from '../kernel/permissions/rules.js';
import { loadTheme, ownThemes } from '../kernel/console/theme-files.js';

export const configPath: CommandHandler = { line: form('path', 'agent config path') };
export const configShow: CommandHandler = { line: form('show', 'agent config show --json') };
export const configGet: CommandHandler = { line: form('get', 'agent config get max_tool_turns') };
export const configSet: CommandHandler = { line: form('set', 'agent config set ui.theme light') };
export const configCheck: CommandHandler = { line: form('check', 'agent config check') };

function form(verb: string, example: string): CliCommand {
  return {
    example,
    options: (command) => command.option('--json', 'JSON output'),
    run: (line, args, options: { readonly json?: boolean }) =>
      runConfigCommand([verb, ...args], { ...ioOf(line, options.json === true), files: () => fileMistakes(line) }),
  };
}

/** Names the tools that do not exist and the fields without effect in files of agents, commands and skills. */
async function fileMistakes({ settings, tools }: CommandLine): Promise<readonly string[]> {
  const read = await settings();
  const said: string[] = [];
  for (const feature of features) {
    const { problems, tools: named = [] } = (await feature.checkFiles?.(read)) ?? { problems: [] };
    addAll(said, problems);
    for (const { path, name } of named)
      if ((await tools.strayLimit(ourName(name))) !== null)
        said.push(`${path}: there is no tool ${name}; agent tools lists them.`);
  }
  return said;
}

function ioOf({ out, request, tools }: CommandLine, asJson: boolean): ConfigCommandIo {
  return {
    stdout: {
      write: (text) => {
        out.data(text);
      },
    },
    stderr: {
      write: (text) => {
        out.error(text);
      },
    },
    json: asJson,
    tools,
    ...request,
  };
}

/** The dependencies of a `config` command. The options may be before or after it on the command line. */
export interface ConfigCommandIo extends LoadOptions {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly tools: Pick<Tools, 'strayLimit' | 'strayLimits'>;
  readonly json?: boolean;
  /** Returns sentences about mistakes in files of agents, commands and skills. */
  readonly files?: () => Promise<readonly string[]>;
}

/** `agent config path|show|get KEY|set KEY VALUE|check`. `args` starts with the verb and holds no options. Returns the
 * exit code; settings are read here and not before, so that a broken file can still be found, checked and corrected.
 * Values are shown with secrets masked. */
export async function runConfigCommand(args: readonly string[], io: ConfigCommandIo): Promise<number> {
  const [verb, ...rest] = args;
  switch (verb) {
    case 'path':
      return showPaths(io);
    case 'show':
      return showAll(io);
    case 'get':
      return getKey(rest, io);
    case 'set':
      return setKey(rest, io);
    case 'check':
      return check(io);
    default:
      return fail(
        io,
        `unknown command "config ${verb ?? ''}"`,
        'Use agent config path, show, get KEY, set KEY VALUE or check.',
      );
  }
}

function showPaths(io: ConfigCommandIo): number {
  const { config, database, log, history } = agentPaths(io.env, io.home);
  const files = [
    ['config', config],
    ['database', database],
    ['log', log],
    ['history', history],
  ] as const;
  return print(io, io.json ? jsonText(files.map(([name, path]) => ({ name, path }))) : config);
}

async function showAll(io: ConfigCommandIo): Promise<number> {
  const loaded = await load(io);
  const rows = configRows(loaded);
  const keyWidth = largestOf(rows.map((row) => row.key.length));
  const lines = rows.map(
    (row) =>
      `${row.key.padEnd(keyWidth)}  ${row.value === null ? '-' : JSON.stringify(row.value)}  (${originText(row)})`,
  );
  print(io, io.json ? jsonText(rows) : lines.join('\n'));
  return report(loaded, io);
}

async function getKey([name = '']: readonly string[], io: ConfigCommandIo): Promise<number> {
  const key = resolveKey(name);
  if (!key) return failWith(io, unknownKeyProblem(name, 'agent config get'));
  const loaded = await load(io);
  const asked = keyText(key.path);
  // The value of a key with a wrong setting is unknown, and not the default.
  if (
    loaded.problems.some(
      (problem) => problem.key === asked || problem.key.startsWith(`${asked}.`) || asked.startsWith(`${problem.key}.`),
    )
  )
    return report(loaded, io);
  const value = maskValue(valueAt(loaded.values, key.path) ?? null, key.path);
  print(io, io.json || typeof value !== 'string' ? (value === null && !io.json ? '' : jsonText(value)) : value);
  return report(loaded, io);
}

/** The value `null` removes the key. */
async function setKey([name, text]: readonly string[], io: ConfigCommandIo): Promise<number> {
  if (name === undefined || text === undefined)
    return fail(
      io,
      'config set needs a key and a value',
      'For example: agent config set max_tool_turns 10. The value null removes the key.',
    );
  const key = resolveKey(name);
  if (!key) return failWith(io, unknownKeyProblem(name, 'agent config set'));
  const parsed = text === 'null' ? { ok: true as const, value: undefined } : parseText(text, key);
  if (!parsed.ok) return failWith(io, textProblem(keyText(key.path), key.path, parsed.reason));
  const files = agentPaths(io.env, io.home);
  const { config: file } = files;
  const unusable =
    keyText(key.path) === 'ui.theme'
      ? await themeProblem(parsed.value, files)
      : text === 'null'
        ? null
        : await strayTool(key.path, io);
  if (unusable) return failWith(io, unusable);
  try {
    const edited = await editConfigFile(file, key.path, parsed.value);
    if (!edited.ok) return failWith(io, edited.problem);
  } catch (error) {
    return fail(
      io,
      `${file} could not be written: ${(error as Error).message}`,
      'Make its directory writable, or set AGENT_HOME to one that is.',
      exit.failed,
    );
  }
  const done = parsed.value === undefined ? 'removed' : `= ${JSON.stringify(maskValue(parsed.value, key.path))}`;
  print(io, `${file}: ${keyText(key.path)} ${done}`);
  return sayOverruled(key, io);
}

/** Returns the problem of a limit for a tool that does not exist. */
async function strayTool(
  [section, limits, name]: readonly string[],
  { tools }: ConfigCommandIo,
): Promise<ConfigProblem | null> {
  if (section !== 'tools' || limits !== 'limits' || name === undefined) return null;
  const issue = await tools.strayLimit(ourName(name));
  return issue && issueProblem('agent config set', issue);
}

/** Says that another source overrules the value that was set. */
async function sayOverruled(key: SettingKey, io: ConfigCommandIo): Promise<number> {
  const { origins } = await load(io);
  const origin = origins[keyText(key.path)];
  if (origin && originRank(origin) > originRank({ kind: 'user', file: '' })) {
    const winner = origin.kind === 'environment' ? variableOf(keyText(key.path)) : `the ${origin.kind}`;
    io.stderr.write(`agent: ${keyText(key.path)} is overruled at the moment by ${winner}\n`);
  }
  return exit.done;
}

function wrongRules(allow: readonly Rule[]): readonly ConfigProblem[] {
  return unheededAllow(allow).map((message) => ({
    message,
    hint: 'Name the command more exactly, for example {"argv":["git","status"]}, or remove the rule.',
    key: 'rules.allow',
    where: 'settings',
  }));
}

/** Returns everything that keeps a program with these settings from starting. */
export async function startProblems(
  loaded: LoadedConfig,
  tools: Pick<Tools, 'strayLimits'>,
): Promise<readonly ConfigProblem[]> {
  const { ui, files } = loaded.config;
  const theme = await themeProblem(ui.theme, files);
  const own = [theme ?? [], wrongBinding(ui.bindings, files.config) ?? []].flat();
  return [...loaded.problems, ...own, ...(await tools.strayLimits(loaded))];
}

async function check(io: ConfigCommandIo): Promise<number> {
  const loaded = await load(io);
  const problems = [...(await startProblems(loaded, io.tools)), ...wrongRules(loaded.config.policy.rules.allow)];
  if (io.json) {
    print(
      io,
      jsonText(
        problems.map(({ message, hint, key, where, line, column, nearest }) => ({
          message,
          hint,
          key,
          where,
          line: line ?? null,
          column: column ?? null,
          nearest: nearest ?? null,
        })),
      ),
    );
  } else if (problems.length === 0) {
    print(
      io,
      [
        `${loaded.config.files.config}: ok`,
        ...(loaded.project ? [`${loaded.project.file.path}: ${loaded.project.trusted ? 'ok' : 'not trusted'}`] : []),
      ].join('\n'),
    );
  }
  const mistakes = problems.length === 0 ? ((await io.files?.()) ?? []) : [];
  for (const mistake of mistakes) io.stderr.write(`agent: ${maskText(mistake)}\n`);
  return report({ ...loaded, problems }, io);
}

/** Returns the problem of a theme of the user, or null. */
async function themeProblem(name: unknown, files: Pick<AgentPaths, 'config'>): Promise<ConfigProblem | null> {
  if (typeof name !== 'string' || ownThemes.includes(name)) return null;
  const loaded = await loadTheme(name, files);
  return loaded.ok ? null : loaded.problem;
}

function load({
  env,
  cwd,
  home,
  set = [],
  flags = {},
  projectTrusted = false,
}: ConfigCommandIo): Promise<LoadedConfig> {
  return loadConfig({ env, cwd, home, set, flags, projectTrusted });
}

function report({ notices, problems }: LoadedConfig, io: ConfigCommandIo): number {
  for (const notice of notices) io.stderr.write(`agent: ${maskText(notice.message)}\n`);
  for (const problem of problems) failWith(io, problem);
  return problems.length === 0 ? exit.done : exit.usage;
}

function failWith(io: ConfigCommandIo, problem: ConfigProblem): number {
  return fail(io, problem.message, problem.hint);
}

function fail(io: ConfigCommandIo, message: string, hint: string, code: number = exit.usage): number {
  io.stderr.write(`agent: ${message}\n${hint}\n`);
  return code;
}

function print(io: ConfigCommandIo, text: string): number {
  io.stdout.write(`${text}\n`);
  return exit.done;
}

/** One row of `agent config show --json`. `source`: the file or variable, or null. A key without a value has null. */
export interface ConfigRow {
  readonly key: string;
  readonly value: Json;
  readonly origin: Origin['kind'];
  readonly source: string | null;
}

/** Returns every key with a fixed name, and every other one that has a value, in the order of the schema. Masks
 * secrets. */
export function configRows({ values, origins }: Pick<LoadedConfig, 'values' | 'origins'>): readonly ConfigRow[] {
  const known = knownKeys();
  const fixed = known.filter((key) => !key.includes('<') && !known.some((other) => other.startsWith(`${key}.`)));
  const added = Object.keys(origins).filter((key) => !fixed.includes(key));
  return [...fixed, ...added].map((key) => {
    const origin = origins[key] ?? { kind: 'default' };
    const path = resolveKey(key)?.path ?? [key];
    return {
      key,
      value: maskValue(valueAt(values, path) ?? null, path),
      origin: origin.kind,
      source: sourceOf(origin),
    };
  });
}

/** Says in words where a value came from. */
export function originText(row: ConfigRow): string {
  if (row.value === null) return 'not set';
  switch (row.origin) {
    case 'default':
      return 'default';
    case 'user':
    case 'project':
      return `${row.origin} file ${row.source ?? ''}`;
    case 'environment':
      return row.source ?? '';
    case 'set':
      return '--set';
    case 'flag':
      return 'option';
    default:
      return row.origin satisfies never;
  }
}

function sourceOf(origin: Origin): string | null {
  switch (origin.kind) {
    case 'user':
    case 'project':
      return origin.file;
    case 'environment':
      return origin.variable;
    case 'default':
    case 'set':
    case 'flag':
      return null;
    default:
      return origin satisfies never;
  }
}
