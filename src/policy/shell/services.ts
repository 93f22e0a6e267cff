import { change, danger, type Finding, type Invocation, parseOptions, secretIn, type Code } from './invocation.js';
import { unknownFindings } from './project-scripts.js';
import { literalArg } from './words.js';

export const serviceCodes: Readonly<Record<string, Code>> = { database };

function textOf(call: Invocation): string {
  return [call.place.input, ...call.args.map(({ text }) => text)].join(' ');
}

/** A file of statements that is named for what it destroys; what is in others is not looked at. */
const destroyingFile =
  /(?:^|[/_.-])(?:drop|truncate|delete|wipe|purge|reset|destroy|teardown|nuke|clear|clean|rollback|down)(?:[/_.-]|$)[^/]*$/i;

const destructive =
  /\b(?:drop|truncate|delete\s+from|alter|update\s+\S+\s+set|revoke|grant|vacuum\s+into|attach|create\s+(?:or\s+replace\s+)?(?:function|extension|user|role|trigger)|copy\b[^;]*\b(?:program|to|from)\b|load_extension|load_file|into\s+(?:out|dump)file|load\s+data|writefile|readfile|edit|fts3_tokenizer|replace\s+into|merge\s+into|detach|optimize|system|kill|set\s+global|do\s+\$\$|dblink|pg_read_file|pg_ls_dir|lo_(?:import|export)|xp_cmdshell|shutdown|pg_(?:terminate|cancel)_backend|pg_(?:reload_conf|switch_wal|promote))\b/i;
const redis =
  /\b(?:flushall|flushdb|del|unlink|shutdown|config\s+(?:set|rewrite)|eval|evalsha|fcall|script|function|debug|module|slaveof|replicaof|save|bgsave|bgrewriteaof|rename|restore|migrate|swapdb|acl|failover|cluster|client\s+kill|monitor|hdel|expire|getdel|xtrim|xdel|ltrim|lrem|lpop|rpop|spop|srem|zrem\w*|zpop\w+|bitop|geodel|pexpire|expireat|persist|copy|move|smove|psync|replconf|client\s+no-evict|latency\s+reset)\b/i;
const mongo =
  /child_process|\brequire\s*\(|\bprocess\.|\brun(?:\w*Program)?\s*\(|\bcat\s*\(|(?:remove|copy|write)File|\bimport\s*\(|createUser|createRole|grantRoles|updateUser|changeUserPassword|drop\w*\s*\(|delete(?:One|Many)\s*\(|remove\s*\(|update\w*\s*\(|replaceOne|insert\w*\s*\(|\$where|mapReduce|shutdown|runCommand|adminCommand|eval\s*\(|load\s*\(|renameCollection|bulkWrite|findOneAnd/;
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
const reaching = (
  'shell system import output once load save backup restore read open excel log clone cd archive dump recover www trace iotrace ' +
  'testcase session imposter'
).split(' ');
const harmlessDots = new Set(
  'tables schema indexes indices databases fullschema stats dbinfo headers mode show timer width version help sep'.split(
    ' ',
  ),
);
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
        /^\s*(?:select|with|explain|pragma\s+(?:table_info|table_list|index_list|user_version|integrity_check|foreign_key_list)\b)/i.test(
          statement,
        ) || /^\.(?:tables|schema|indexes|databases|fullschema|stats|dbinfo)(?: \w+)?$/.test(statement),
    ) &&
    !/;\s*\.|\n\s*\./.test(text)
  );
}
