import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { change, danger, type Finding, type Invocation, secretIn, type Code } from './invocation.js';
import { parseOptions } from './command-options.js';
import { unknownFindings } from './project-scripts.js';
import { literalArg } from './words.js';
import { either } from './programs.js';

export const serviceCodes: Readonly<Record<string, Code>> = { database };

function textOf(call: Invocation): string {
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
const reaching = lists.databaseDots;
const harmlessDots = new Set(lists.harmlessDots);
const readsFiles = /^(?:sqlite|duckdb|clickhouse|litecli)/;

function reachingDot(call: Invocation): boolean {
  const words = call.args.filter(({ text }) => !text.startsWith('-'));
  const lines = words.flatMap(({ values }) => values).flatMap((text) => text.split('\n'));
  const given = lines.flatMap((line) => /^\s*\.([a-z]+)(?=\s|$)/.exec(line)?.[1] ?? []);
  const fed = [...call.place.input.matchAll(/(?:^|[\s;'"])\.([a-z]+)(?=\s|$)/g)].map((match) => match[1] ?? '');
  return [...given, ...fed].some((word) => !harmlessDots.has(word) && reaching.some((name) => name.startsWith(word)));
}

/** What reaches beyond the database itself: any file in quotes, programs and modules, the environment. */
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
  const text = textOf(call);
  const language = languages.find(([names]) => names.test(call.name))?.[1] ?? destructive;
  if (language.test(text) || call.args.some(({ text: word }) => word === '--delete'))
    return danger(call, 'changes or destroys data');
  if (namesDestroyer(call)) return danger(call, 'runs statements of a file that is named for destroying');
  if (call.name.startsWith('sqlite') && onlyReads(call, text)) return [];
  const reached = readsFiles.test(call.name) ? fileOfStatement(call, text) : [];
  if (reached.length > 0) return reached;
  if (dotCommands.test(text)) return danger(call, 'runs a command or writes a file from the database program');
  return statements(call);
}

function statements(call: Invocation): readonly Finding[] {
  const unknown = call.args.some((arg) => arg.dynamic || /^--?(?:cmd|init)$/.test(arg.text));
  if (unknown) return danger(call, 'is given words that are known only when it runs');
  const rare = /^(?:influx|etcdctl|turso|cockroach|neo4j-client)$/.test(call.name);
  return [...(rare ? unknownFindings(call) : []), ...change(call, 'talks to a database')];
}

function namesDestroyer(call: Invocation): boolean {
  return [...call.scan.reads].some((path) => /\.(?:sql|js|cql|redis|txt)$/.test(path) && destroyingFile.test(path));
}

const readingPragma = 'table_info|table_list|index_list|user_version|integrity_check|foreign_key_list';
const readingStatement = new RegExp(`^\\s*(?:select|with|explain|pragma\\s+(?:${readingPragma})\\b)`, 'i');

/** `sqlite3 -readonly db 'select …'`: opened so that nothing can be written, and no command of the program itself but
 * those that list. */
function onlyReads(call: Invocation, text: string): boolean {
  const { flags, operands } = parseOptions(
    call.args.map((arg) => (/^-[a-z]{2,}$/.test(arg.text) ? { ...arg, text: `-${arg.text}` } : arg)),
    '--separator --cmd --init --nullvalue --vfs',
  );
  const statements = operands.slice(1).map((arg) => arg.text);
  return (
    flags.some(({ name }) => name === '--readonly') &&
    !flags.some(({ name }) => /^--(?:cmd|init|vfs|zip|append)$/.test(name)) &&
    !call.place.piped &&
    call.place.input.trim() === '' &&
    statements.length > 0 &&
    !call.args.some((arg) => arg.dynamic) &&
    statements.every(
      (statement) =>
        readingStatement.test(statement) ||
        /^\.(?:tables|schema|indexes|databases|fullschema|stats|dbinfo)(?: \w+)?$/.test(statement),
    ) &&
    !/;\s*\.|\n\s*\./.test(text)
  );
}
