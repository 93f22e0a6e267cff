import { isBenignVariable, setFindings } from './assignments.js';
import { listedBelow, secretFilter } from './finders.js';
import {
  type Arg,
  change,
  danger,
  type Finding,
  type Handler,
  type Invocation,
  parseOptions,
  secretIn,
  unanalysable,
  valuesOf,
  writeTo,
} from './invocation.js';
import { literalArg, unknownArg } from './words.js';

/** A program that starts the command among its words. */
interface Wrapper {
  /** Options of its own that take a value. */
  readonly takes?: string;
  /** Words of its own before the command. */
  readonly skip?: number;
  /** What it adds even around a reader. */
  readonly adds?: string;
  /** The words are joined and run by a shell. */
  readonly joins?: boolean;
  /** Options whose value is a text that a shell runs. */
  readonly code?: string;
  readonly output?: string;
  readonly deadly?: string;
}

const wrappers: Readonly<Record<string, Wrapper>> = {
  'command builtin': {},
  exec: { takes: '-a' },
  'nohup setsid': { adds: 'outlives the call' },
  nice: { takes: '-n --adjustment' },
  ionice: { takes: '-c -n -p --class --classdata' },
  'chrt taskset': { skip: 1, takes: '-T -P -D' },
  numactl: { takes: '-N -m -C -i -p' },
  'timeout gtimeout': { takes: '-s -k --signal --kill-after', skip: 1 },
  'time gtime': { takes: '-f -o --format --output', output: '-o --output' },
  stdbuf: { takes: '-i -o -e --input --output --error' },
  watch: { takes: '-n -q --interval --equexit', joins: true, adds: 'runs until it is stopped' },
  'strace ltrace': {
    takes: '-e -o -s -p -a -O -S -u -E -I -P -b',
    output: '-o',
    adds: 'traces a program',
    deadly: '-p',
  },
  flock: { takes: '-w -E --timeout', skip: 1, code: '-c --command' },
  script: { takes: '-c -E -I -O -B -m -T -t -o', code: '-c --command', adds: 'records a terminal', skip: 9 },
  caffeinate: { takes: '-t -w' },
  'unbuffer rlwrap xvfb-run systemd-inhibit fakeroot catchsegv dumb-init dbus-launch dbus-run-session ccache distcc sccache':
    { takes: '-n -s -w -t -c -C -f' },
  'tini catatonit': {},
  'valgrind perf-record heaptrack': { adds: 'runs it under observation' },
  'setarch linux32 linux64 i386 x86_64 arch prlimit choom': { takes: '-n -p' },
  cpulimit: { takes: '-l -p -e' },
  trickle: { takes: '-d -u -s' },
  'aa-exec': { takes: '-p -n' },
  logsave: { skip: 1, takes: '' },
  'grc multitime pexec nocache eatmydata timelimit faketime libfaketime with-contenv softlimit': {
    takes: '-c -t -T -m -d -s -f -n',
  },
  setlock: { skip: 1 },
  'busybox toybox': {},
  hyperfine: {
    takes: '-w -r -m -M -p -c -n --warmup --runs --prepare --cleanup',
    joins: true,
    code: '-p -c --prepare --cleanup',
    adds: 'runs it many times',
  },
  entr: { adds: 'runs it on changes' },
  'poetry-run pipenv-run': {},
  winpty: {},
  coproc: {},
  'chronic ifne ts sponge-run': {},
  'torsocks proxychains proxychains4 torify': { takes: '-f', adds: 'uses the network' },
  noti: {},
  'ssh-agent': { adds: 'holds keys' },
  retry: { adds: 'repeats it' },
  'dotenv dotenvx': { takes: '-e -f', adds: 'reads secrets' },
};

export const wrapperHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...Object.entries(wrappers).flatMap(([names, wrapper]) =>
    names.split(' ').map((name): [string, Handler] => [name, (call) => through(wrapper, call)]),
  ),
  ['env', env],
  ['xargs', xargs],
  ['parallel', parallel],
  ['sem', parallel],
  ['command', command],
  ['exec', exec],
]);

/** The words after the wrapper's own options and `skip` words. */
function inside(args: readonly Arg[], wrapper: Wrapper): readonly Arg[] {
  const takes = new Set((wrapper.takes ?? '').split(' '));
  let skip = wrapper.skip ?? 0;
  for (let i = 0; i < args.length; i++) {
    const text = args[i]?.text ?? '';
    if (text === '--') return args.slice(i + 1 + skip);
    if (text.startsWith('-') && text.length > 1) {
      if (takesNext(text, takes)) i++;
      continue;
    }
    if (skip === 0) return args.slice(i);
    skip--;
  }
  return [];
}

/** Whether an option is followed by its value: by its name, by a beginning of it, or as the last letter of a
 * cluster. */
function takesNext(text: string, takes: ReadonlySet<string>): boolean {
  if (takes.has(text)) return true;
  const begins = (name: string): boolean => name.startsWith(text);
  if (text.startsWith('--')) return text.length > 2 && !text.includes('=') && [...takes].some(begins);
  const at = [...text].findIndex((letter, index) => index > 0 && takes.has(`-${letter}`));
  return at > 0 && at === text.length - 1;
}

function through(wrapper: Wrapper, call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, wrapper.takes);
  const deadly = wrapper.deadly?.split(' ').find((name) => options.flags.some((flag) => flag.name === name));
  if (deadly !== undefined) return danger(call, 'reaches into another process');
  const code = wrapper.code ? valuesOf(options, ...wrapper.code.split(' ')) : [];
  const written = wrapper.output
    ? valuesOf(options, ...wrapper.output.split(' ')).flatMap((arg) => writeTo(arg, call))
    : [];
  const inner = inside(call.args, wrapper);
  const starts = inner.length > 0 || code.length > 0 || call.name === 'script';
  const adds = wrapper.adds && starts ? change(call, wrapper.adds) : [];
  return [...code.flatMap((arg) => shellText([arg], call)), ...started(inner, wrapper, call), ...adds, ...written];
}

/** `watch -x` takes words like any other program, `watch` alone a text. */
function started(inner: readonly Arg[], wrapper: Wrapper, call: Invocation): readonly Finding[] {
  const words = call.name === 'watch' && call.args.some(({ text }) => /^-\w*x|^--exec$/.test(text));
  if (wrapper.joins === true && !words) return shellText(inner, call);
  return inner.length > 0 ? call.argv(inner) : [];
}

/** Words that are joined with blanks and given to a shell. */
export function shellText(words: readonly Arg[], call: Invocation): readonly Finding[] {
  if (words.length === 0) return [];
  if (words.some((arg) => arg.dynamic || arg.substitution !== 'none' || arg.glob))
    return unanalysable(`${call.name} runs a text that is known only when it runs`);
  return call.script(words.map(({ text }) => text).join(' '));
}

function command(call: Invocation): readonly Finding[] {
  const first = call.args[0]?.text ?? '';
  if (/^-p?[vV]/.test(first)) return [];
  return through({}, call);
}

function exec(call: Invocation): readonly Finding[] {
  return through({ takes: '-a' }, call);
}

function env(call: Invocation): readonly Finding[] {
  const { args, place } = call;
  const findings: Finding[] = [];
  for (let i = 0; i < args.length; i++) {
    const text = args[i]?.text ?? '';
    if (/^[A-Za-z_]\w*=/.test(text)) findings.push(...settingFindings(text, call));
    else if (/^-[a-zA-Z0]*S|^--s/.test(text))
      return [...findings, ...unanalysable(`${call.name} ${text} splits a text into a command`)];
    else if (/^-[a-zA-Z0]*C|^--c/.test(text)) findings.push(...movedTo(args[i], args[i + 1], call));
    if (takesNext(text, envTakes)) i++;
    else if (/^-|^[A-Za-z_]\w*=/.test(text)) continue;
    else return [...findings, ...call.argv(args.slice(i))];
  }
  if (args.some(({ text }) => /^(?:-i|-|--ignore-environment)$/.test(text))) return findings;
  return printsNamesOnly(place.next) ? [] : danger(call, 'prints the environment, which holds keys');
}

const envTakes: ReadonlySet<string> = new Set(['-u', '-C', '-a', '--unset', '--chdir', '--argv0']);

/** `-C folder` of env: like `cd`. */
function movedTo(option: Arg | undefined, next: Arg | undefined, call: Invocation): readonly Finding[] {
  const attached = option?.text.replace(/^--\w+=?|^-\w*?C/, '') ?? '';
  const folder = attached === '' ? next : literalArg(attached);
  return folder ? call.argv([literalArg('cd'), option?.dynamic === true ? unknownArg : folder]) : [];
}

function settingFindings(text: string, call: Invocation): readonly Finding[] {
  const at = text.indexOf('=');
  const name = text.slice(0, at);
  return [
    ...setFindings(name, text.slice(at + 1), call.scan),
    ...(isBenignVariable(name) ? [] : change(call, `sets ${name}`)),
  ];
}

/** `| cut -d= -f1` and its like keep the names and drop the values. */
export function printsNamesOnly(next: readonly Arg[] | null): boolean {
  const words = next?.map(({ text }) => text).join(' ') ?? '';
  return (
    /^cut (?:-d ?['"]?= ?-f ?1|-f ?1 -d ?=)$/.test(words) ||
    /^sed s\/=\.\*\/\/$/.test(words) ||
    /^awk -F ?= \{ ?print \$1 ?;? ?\}$/.test(words) ||
    /^wc(?: -l)?$/.test(words) ||
    /^grep -[qc]+ \S+$/.test(words) ||
    /^(?:grep|rg) (?:-\S+ )?\^(?:NODE_ENV|PATH|LANG|LC_ALL|HOME|USER|SHELL|PWD|TERM|EDITOR|PAGER|TZ|CI|VIRTUAL_ENV|PYTHONPATH|JAVA_HOME|GOPATH|GOROOT|XDG_\w+)=$/.test(
      words,
    )
  );
}

const xargsTakes =
  '-a -d -E -I -L -n -P -s --arg-file --delimiter --max-lines --max-args --max-procs --max-chars --replace -J -R';

/** The command that xargs runs gets words that nobody knows yet. */
function xargs(call: Invocation): readonly Finding[] {
  const inner = inside(call.args, { takes: xargsTakes });
  const files = valuesOf(parseOptions(call.args, xargsTakes), '-a', '--arg-file');
  const replace =
    valuesOf(parseOptions(call.args, xargsTakes), '-I', '--replace', '-J').map(({ text }) => text)[0] ?? '{}';
  const name = lister(call)
    ? (listedBelow(
        call.place.input
          .trim()
          .split(/\s+/)
          .map((word) => literalArg(word)),
        call.scan,
      ) ?? '\0')
    : '\0';
  const filled = inner.map((arg) =>
    replace !== '' && arg.text.includes(replace)
      ? {
          ...arg,
          text: arg.text.replaceAll(replace, name),
          values: [arg.text.replaceAll(replace, name)],
          dynamic: true,
        }
      : arg,
  );
  const listed = secretNamed(call);
  const words = inner.length === 0 ? [literalArg('echo')] : filled;
  return [
    ...listed,
    ...call.argv(
      [...words, lister(call) ? { ...unknownArg, text: name, values: [name], substitution: 'names' } : unknownArg],
      { captured: true, piped: false },
    ),
    ...(files.length > 0 ? change(call, 'takes words from a file') : []),
  ];
}

/** The words that reach xargs are names printed by a lister. */
function lister(call: Invocation): boolean {
  const { input } = call.place;
  return (
    /^\s*(?:find|fd|ls|git ls-files|git diff --name-only|git grep\s(?:.*\s)?-\w*l|rg (?:-\S*l|--files)|grep -\S*[lL])\b/.test(
      input,
    ) && !/^\s*(?:ls\s+(?:-\S+\s+)*-\w*[aA]|(?:fd|rg)\s.*(?:-H\b|--hidden|-u|--no-ignore))/.test(input)
  );
}

function secretNamed(call: Invocation): readonly Finding[] {
  const [name = '', ...words] = call.place.input.trim().split(/\s+/);
  const filter = /^(?:g?find|fd|fdfind)$/.test(name) ? secretFilter(name, words, call.scan) : null;
  if (filter !== null) return danger(call, `takes the names of files with secrets, which ${filter} picks`);
  for (const word of call.place.input.split(/\s+/)) {
    const secret = word.length > 1 ? secretIn({ ...literalArg(word), glob: true }, call.scan) : null;
    if (secret !== null) return danger(call, `takes the name of the secret file ${secret}`, [secret]);
  }
  return [];
}

function parallel(call: Invocation): readonly Finding[] {
  const split = call.args.findIndex(({ text }) => text.startsWith(':::'));
  const inner = inside(split < 0 ? call.args : call.args.slice(0, split), {
    takes: '-j -n -N -a -S --jobs --sshlogin --arg-file --colsep --delay --timeout --joblog --results',
  });
  if (inner.length === 0) return unanalysable(`${call.name} runs its input as commands`);
  return [
    ...call.argv([...inner, unknownArg], { captured: true, piped: false }),
    ...change(call, 'runs many commands'),
  ];
}
