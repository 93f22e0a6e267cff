import { entriesOf } from '../../core/lists.js';
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { isInWorkspace } from '../guarded-paths.js';
import {
  type Code,
  danger,
  either,
  type Finding,
  type Invocation,
  type Options,
  pathsOf,
  type Program,
  secretIn,
  type Test,
  writeTo,
} from './invocation.js';
import { unknownFindings } from './simple-command.js';
import { sendsWords, wordsOf } from './questions.js';
import { literalArg, parseOptions, valuesOf } from './words.js';

export const serviceCodes: Readonly<Record<string, Code>> = { database };

function joinInputAndArgs(call: Invocation): string {
  return [call.place.input, ...call.args.map(({ text }) => text)].join(' ');
}

const { lists } = wordLists;

/** A file of statements that is named for what it destroys; what is in others is not looked at. */
const destroyingFile = new RegExp(`(?:^|[/_.-])(?:${either(lists.destroyingNames)})(?:[/_.-]|$)[^/]*$`, 'i');

const destructive = new RegExp(
  [
    `\\b(?:${either(lists.destroyingStatements)}`,
    'delete\\s+from|update\\s+\\S+\\s+set|vacuum\\s+into|copy\\b[^;]*\\b(?:program|to|from)\\b',
    'load\\s+data|do\\s+\\$\\$',
    'create\\s+(?:or\\s+replace\\s+)?(?:function|extension|user|role|trigger)|into\\s+(?:out|dump)file',
    '(?:replace|merge)\\s+into|set\\s+global|lo_(?:import|export)',
    'pg_(?:terminate|cancel)_backend|pg_(?:reload_conf|switch_wal|promote))\\b',
  ].join('|'),
  'i',
);
const redis = new RegExp(
  [
    `\\b(?:${either(lists.redisCommands)}`,
    'config\\s+(?:set|rewrite)|client\\s+(?:kill|no-evict)|latency\\s+reset|zrem\\w*|zpop\\w+)\\b',
  ].join('|'),
  'i',
);
const mongo = new RegExp(
  [
    'child_process|\\brequire\\s*\\(|\\bprocess\\.|\\brun(?:\\w*Program)?\\s*\\(|\\bcat\\s*\\(|\\bimport\\s*\\(',
    '(?:remove|copy|write)File|delete(?:One|Many)\\s*\\(|remove\\s*\\(|update\\w*\\s*\\(|insert\\w*\\s*\\(',
    'drop\\w*\\s*\\(|replaceOne|\\$where|eval\\s*\\(|load\\s*\\(',
    either(lists.mongoCalls),
  ].join('|'),
);
const dotCommands = new RegExp(
  [
    '\\\\!',
    '\\\\(?:copy|o|out|w|write|i|ir|include\\w*|e|ef|ev|edit|s|setenv|gexec|lo_\\w+)\\b',
    '\\\\gx?\\s*[|/]',
    '\\\\\\|',
    '\\\\set\\b.*`',
    '(?:^|\\s)pager\\s',
    '(?:^|\\s)--(?:pager|tee|init-command)\\b',
    ':!!',
  ].join('|'),
);

/** Commands of sqlite3 and duckdb that run a program or reach a file, each of which any beginning of its name calls. */
const reaching = entriesOf(lists.databaseDots);
const harmlessDots = new Set(entriesOf(lists.harmlessDots));
const readsFiles = /^(?:sqlite|duckdb|clickhouse|litecli)/;

function reachingDot(call: Invocation): boolean {
  const words = call.args.filter(({ text }) => !text.startsWith('-'));
  const lines = words.flatMap(({ values }) => values).flatMap((text) => text.split('\n'));
  const given = lines.flatMap((line) => /^\s*\.([a-z]+)(?=\s|$)/.exec(line)?.[1] ?? []);
  const fed = [...call.place.input.matchAll(/(?:^|[\s;'"])\.([a-z]+)(?=\s|$)/g)].map((match) => match[1] ?? '');
  return [...given, ...fed].some((word) => !harmlessDots.has(word) && reaching.some((name) => name.startsWith(word)));
}

/** Judges statements that reach beyond the database itself: any file in quotes, programs and modules, the
 * environment. */
function fileOfStatement(call: Invocation, text: string): readonly Finding[] {
  if (reachingDot(call)) return danger(call, 'runs a command or writes a file from the database program');
  const loads = call.name.startsWith('duckdb') && /\b(?:install|load|getenv|import|export)\b/i.test(text);
  if (loads || /\bexecutable\s*\(/.test(text)) return danger(call, 'loads or runs a program, or reads the environment');
  const strings = [...text.matchAll(/'([^'\n]+)'/g)];
  const named = strings.flatMap(([, name = '']) => secretIn(literalArg(name), call.scan) ?? []);
  return named[0] === undefined ? [] : danger(call, `names the secret file ${named[0]}`, named);
}

const languages: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:redis|valkey)/, redis],
  [/^mongo/, mongo],
  [/^etcdctl$/, /\b(?:del|put|txn|auth|user|role|defrag|compact\w*|move-leader|snapshot)\b/],
];

function database(call: Invocation): readonly Finding[] {
  const text = joinInputAndArgs(call);
  const language = languages.find(([names]) => names.test(call.name))?.[1] ?? destructive;
  if (language.test(text) || call.args.some(({ text: word }) => word === '--delete'))
    return danger(call, 'changes or destroys data');
  if (namesDestroyer(call)) return danger(call, 'runs statements of a file that is named for destroying');
  const reached = readsFiles.test(call.name) ? fileOfStatement(call, text) : [];
  if (reached.length > 0) return reached;
  if (dotCommands.test(text)) return danger(call, 'runs a command or writes a file from the database program');
  return statements(call);
}

function statements(call: Invocation): readonly Finding[] {
  const unknown = call.args.some((arg) => arg.dynamic || /^--?(?:cmd|init)$/.test(arg.text));
  if (unknown) return danger(call, 'takes words that are known only when it runs');
  const rare = /^(?:influx|etcdctl|turso|cockroach|neo4j-client)$/.test(call.name);
  return rare ? unknownFindings(call) : [];
}

function namesDestroyer(call: Invocation): boolean {
  return [...call.scan.files.reads].some(
    (path) => /\.(?:sql|js|cql|redis|txt)$/.test(path) && destroyingFile.test(path),
  );
}

/** The rules for clouds, containers and forges that the tables cannot express. */
export const cloudCodes: Readonly<Record<string, Code>> = { forgeQuestion, inspect, runImage };
export const cloudTests: Readonly<Record<string, Test>> = { asksOneField, isUnknown, mountsMachine };

/** `--query Runtime`: one field that is not a setting of the service. */
function asksOneField({ args }: Invocation): boolean {
  const given = args.map(({ text }, index) =>
    /^--query$/.test(args[index - 1]?.text ?? '') ? text : /^--query=(.*)$/s.exec(text)?.[1],
  );
  const harmless =
    /^[\w.[\]*]*(?:Name|Arn|Id|Runtime|Version|Status|State|Handler|MemorySize|Timeout|LastModified|CodeSize)\]?$/;
  return given.some((field) => field !== undefined && harmless.test(field));
}

/** An operand is known only when it runs. */
function isUnknown(_call: Invocation, { operands }: Options): boolean {
  return operands.some((arg) => arg.dynamic);
}

const hunts = /pass|secret|token|key|cred/i;

/** The settings of a container include its environment, which may hold passwords. */
function inspect(call: Invocation): readonly Finding[] {
  const text = wordsOf(call.args);
  if (hunts.test(wordsOf(call.place.next ?? [])))
    return danger(call, 'looks for secrets in the settings of a container');
  if (/(?:-f|--format)\b/.test(text))
    return /\.Env\b|json \.(?:Config)?\s*}}|\.Config\s*}}|range/.test(text)
      ? danger(call, 'prints the environment of a container')
      : sendsWords(call);
  return [];
}

const library = new Set(entriesOf(wordLists.lists.imageLibrary));

/** An image of the library (`node:20`) in a container that sees nothing of the machine but the workspace. */
function runImage(call: Invocation, program: Program): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => text === 'run') + 1;
  const options = parseOptions(call.args.slice(at), new Set(program.takes));
  const [image] = options.operands;
  const plain = image && !image.dynamic && library.has(image.text.replace(/:[\w.-]+$/, ''));
  const sources = valuesOf(options, '-v', '--volume')
    .map(({ text }) => text.split(':')[0] ?? '')
    .filter((source) => /[/.~\0]/.test(source));
  const outside = sources.some(
    (source) =>
      source.includes('\0') || !pathsOf(source, call.scan).every((path) => isInWorkspace(path, call.scan.context)),
  );
  if (
    !plain ||
    outside ||
    options.flags.some(({ name }) => /^--(?:mount|env-file|volumes-from|gpus|restart|userns|uts|ipc|cgroup)/.test(name))
  )
    return danger(call, 'runs, removes, enters or publishes containers');
  return mountsMachine(call) ? danger(call, 'gives a container access to the machine') : [];
}

/** The words give a container rights on the machine, or a folder of it outside the workspace. */
function mountsMachine(call: Invocation): boolean {
  const words = call.args.map(({ text }) => text);
  return words.some(
    (text, index) =>
      /^(?:--privileged|--cap-add|--device|--pid|--net(?:work)?=host|--security-opt|--ipc|--userns)/.test(text) ||
      (text === 'host' && /^--net(?:work)?$/.test(words[index - 1] ?? '')) ||
      (/^\/[^:]*:/.test(text) &&
        !pathsOf(text.split(':')[0] ?? '', call.scan).every((path) => isInWorkspace(path, call.scan.context))),
  );
}

/** A question to a forge; `--jq` may read the environment, `--web` opens a program. */
function forgeQuestion(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const isValue = (index: number): boolean => /^(?:-q|--jq)$/.test(words[index - 1] ?? '');
  const attached = (text: string): string | undefined => /^(?:-q|--jq=)(.+)$/s.exec(text)?.[1];
  const programs = words.flatMap((text, index) => (isValue(index) ? [text] : (attached(text) ?? [])));
  const environment = programs.some((text) => /\$ENV\b|(?<!\.)\benv\b/.test(text.replace(/"(?:[^"\\]|\\[^(])*"/g, '')));
  if (environment) return danger(call, 'reads the environment, which contains keys');
  return sendsWords(call);
}

export const systemCodes: Readonly<Record<string, Code>> = { getent, graphics, perf };

const graphicsQuestions = new RegExp(
  `^(?:${[
    '(?:(?:-[LqxuhB]|--(?:help|version|list-gpus|list-excluded-gpus|query|xml-format|dtd|unit|query-[\\w-]+=\\S+)' +
      '|(?:-[di]|--(?:id|display|format))[ =]\\w[\\w,:.-]*)(?: |$))*',
    'topo(?: -[a-z\\d]+| [\\w,:.]+)*',
    'nvlink (?:-[sce]|--(?:status|capabilities|errorcounters))(?: -i \\S+)?',
  ].join('|')})$`,
);

/** nvidia-smi: whatever is no known question sets something of the card. */
function graphics(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const files = valuesOf(parseOptions(call.args, '-f --filename'), '-f', '--filename');
  const noted = files.flatMap((arg) => writeTo(arg, call));
  if (noted.length > 0) return noted;
  if (words.some((text) => /^-l(?:ms)?$|^--loop/.test(text)) || /^[dp]mon$/.test(words[0] ?? '')) return [];
  const known = graphicsQuestions.test(words.join(' '));
  return known ? sendsWords(call) : danger(call, 'changes the settings of the graphics card');
}

/** `perf stat command`, `perf record command`. */
function perf(call: Invocation): readonly Finding[] {
  const verb = call.args[0]?.text ?? '';
  const at = call.args.findIndex(
    ({ text }, index) =>
      index > 0 && !text.startsWith('-') && !/^-(?:e|o|F|c|g|r|d|I)$/.test(call.args[index - 1]?.text ?? ''),
  );
  return [...(/^(?:stat|record|trace|mem|c2c|lock|kmem)$/.test(verb) && at > 0 ? call.argv(call.args.slice(at)) : [])];
}

function getent(call: Invocation): readonly Finding[] {
  const database = call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  if (/shadow/.test(database)) return danger(call, 'prints hashes of passwords');
  if (call.place.piped || call.args.some((arg) => arg.dynamic))
    return danger(call, 'carries the output of a command away in a name');
  return /^(?:passwd|group|services|protocols|networks|rpc|initgroups)$/.test(database) ||
    (/^a?hosts(?:v[46])?$/.test(database) && /^(?:localhost|[\w-]+)?$/.test(call.args[1]?.text ?? ''))
    ? []
    : [];
}

export const compilerCodes: Readonly<Record<string, Code>> = { cmake, compiled };

function compiled(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  return valuesOf(options, '-o').flatMap((arg) => writeTo(arg, call));
}

/** `cmake -E` is a set of tools: it deletes, copies and runs. */
function cmake(call: Invocation): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => text === '-E');
  if (at < 0)
    return call.args.some(({ text }) => /^(?:install|--install)$/.test(text)) ? danger(call, 'installs programs') : [];
  const [tool, ...rest] = call.args.slice(at + 1);
  const inner = tools[tool?.text ?? ''];
  if (inner && tool) return call.argv([{ ...tool, text: inner, values: [inner] }, ...rest]);
  return /^(?:remove_directory|rm|remove)$/.test(tool?.text ?? '') ? danger(call, 'deletes files') : [];
}

const tools: Readonly<Record<string, string>> = {
  env: 'env',
  cat: 'cat',
  echo: 'echo',
  rm: 'rm',
  copy: 'cp',
  copy_directory: 'cp',
  rename: 'mv',
  touch: 'touch',
  make_directory: 'mkdir',
  create_symlink: 'ln',
  tar: 'tar',
  time: 'time',
  sleep: 'sleep',
};
