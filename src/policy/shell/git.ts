import { lastName } from '../guarded-paths.js';
import { climbs } from './builtins.js';
import {
  type Code,
  type Arg,
  change,
  danger,
  type Finding,
  has,
  type Invocation,
  keepFetchedFolder,
  type Options,
  parseOptions,
  unanalysable,
  valuesOf,
  writeTo,
} from './invocation.js';
import { shellText } from './wrappers.js';

export const gitCodes: Readonly<Record<string, Code>> = { git };

interface Split {
  readonly findings: readonly Finding[];
  readonly verb: string;
  readonly rest: readonly Arg[];
}

function git(call: Invocation): readonly Finding[] {
  const split = globalOptions(call);
  if (split.findings.some(({ risk }) => risk === 'dangerous')) return split.findings;
  return [...split.findings, ...subcommand(split.verb, split.rest, call)];
}

/** The options before the subcommand: `-c` may name programs, `--git-dir` another configuration. */
function globalOptions(call: Invocation): Split {
  const { args } = call;
  const findings: Finding[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (!arg || arg.dynamic)
      return {
        findings: [...findings, ...danger(call, 'is given a command that is known only when it runs')],
        verb: '',
        rest: [],
      };
    if (arg.text === '')
      return { findings: [...findings, ...change(call, 'is given an empty word')], verb: '', rest: [] };
    if (!arg.text.startsWith('-')) return { findings, verb: arg.text, rest: args.slice(i + 1) };
    findings.push(...globalOption(arg.text, args[i + 1], call));
    if (/^(?:-c|-C)$|^--(?:exec-path|git-dir|work-tree|namespace|super-prefix|config-env)$/.test(arg.text)) i++;
  }
  return { findings, verb: '', rest: [] };
}

function globalOption(text: string, value: Arg | undefined, call: Invocation): readonly Finding[] {
  if (text === '-c')
    return value && !value.dynamic && settingIsHarmless(value.text)
      ? []
      : danger(call, 'changes a setting that may name a program');
  if (/^--config-env|^-c./.test(text)) return danger(call, 'changes a setting that may name a program');
  if (text === '-C') return value ? folder(value, call) : [];
  if (/^--(?:exec-path=|git-dir|work-tree|namespace|super-prefix)/.test(text))
    return danger(call, 'uses the settings of another repository');
  return text === '-p' || text === '--paginate' ? change(call, 'starts a pager') : [];
}

function folder(value: Arg, call: Invocation): readonly Finding[] {
  call.argv([{ ...value, text: 'cd', values: ['cd'], dynamic: false, glob: false, substitution: 'none' }, value]);
  const known = (!value.dynamic || value.substitution === 'names') && !climbs.test(value.text);
  return known && !value.glob && /^[\w./~+@-]+$/.test(value.text) ? [] : change(call, 'works in another repository');
}

function settingIsHarmless(setting: string): boolean {
  if (/^diff\.submodule=diff$/i.test(setting)) return false;
  return disarming.test(setting) || harmlessKeys.test(setting.split('=')[0] ?? '');
}

function subcommand(verb: string, rest: readonly Arg[], call: Invocation): readonly Finding[] {
  if (verb === '') return [];
  const options = parseOptions(rest, takes);
  const why = verb.startsWith('credential')
    ? 'prints or keeps credentials'
    : showsReference(verb, options)
      ? undefined
      : gitDangerous[verb];
  if (why !== undefined) return danger(call, why);
  const running = runningOption(verb, rest, options);
  if (running !== undefined) return danger(call, `${running} runs another program`);
  if (verb === 'config') return config(rest, call);
  const reads = readsOnly(verb, rest, options);
  const outputs = packing.has(verb) ? ['--output', '-o'] : reads ? ['--output'] : [];
  const written = valuesOf(options, ...outputs).flatMap((arg) => writeTo(arg, call));
  if (written.length > 0) return written;
  return reads ? readingFindings(rest, call) : changeFindings(verb, rest, call);
}

/** An option that runs a program; that of `git grep` may stand in a cluster (`-nO./program`). */
function runningOption(verb: string, rest: readonly Arg[], options: Options): string | undefined {
  if (verb === 'grep' && rest.some(({ text }) => /^-[^-efABCm]*O/.test(text))) return '-O';
  return gitRunning.find((name) => has(options, name));
}

/** `git symbolic-ref HEAD` prints where it points; a second word moves it. */
function showsReference(verb: string, options: Options): boolean {
  return verb === 'symbolic-ref' && options.operands.length === 1 && !has(options, '-d', '--delete', '-m');
}

const packing = new Set(['archive', 'format-patch']);
const takes =
  '-o --output --format --pretty --since --until --author --grep -n -S -G -L -e -m --max-count --diff-filter --sort --points-at --contains --merged --no-merged -F --file -u';

function readingFindings(rest: readonly Arg[], call: Invocation): readonly Finding[] {
  if (rest.some((arg) => arg.dynamic && arg.substitution !== 'names'))
    return change(call, 'takes words that are known only when it runs');
  if (rest.some(({ text }) => /^--sub\w*=diff$/.test(text))) return change(call, 'runs git in each submodule');
  call.scan.relies.add('git');
  return call.scan.context.plainGit
    ? []
    : change(call, 'may run programs that the repository names in its configuration');
}

function writesObjects(verb: string, options: Options): boolean {
  return verb === 'fsck' && has(options, '--lost-found');
}

const listWords: Readonly<Record<string, RegExp>> = {
  stash: /^(?:list|show)\b/,
  branch:
    /^(?:$|(?:(?:-[arv]+|-l|--all|--remotes|--list|--verbose|--show-current|--no-color|--column|--(?:sort|format|color)\S*|--(?:contains|merged|no-merged|points-at|no-contains)(?: \S+| ?$)|--list \S+)(?: |$))+)/,
  tag: /^(?:$|-l\b|--list\b|-n\d*(?: |$)|--(?:contains|merged|points-at)\b|--sort=\S+$)/,
  remote: /^(?:$|-v$|--verbose$|get-url\b|show(?: -n)?(?: [\w.-]+)?$)/,
  worktree: /^list\b/,
  submodule: /^(?:status\b|summary\b|$)/,
  bisect: /^(?:log|view)\b/,
  notes: /^(?:$|list\b|show\b)/,
  reflog: /^(?:$|show\b|-\S*|HEAD|list\b|[\w/]+$)/,
  bundle: /^(?:verify|list-heads)\b/,
  'sparse-checkout': /^list\b/,
  'symbolic-ref': /^/,
  help: /^(?:-a|-g|[\w-]+)?$/,
  archive: /^(?:-l|--list)$/,
  lfs: /^(?:ls-files|status|env)\b/,
  'merge-tree': /^(?:--trivial-merge )?[^-\s]\S* [^-\s]\S* [^-\s]\S*$/,
};

function readsOnly(verb: string, rest: readonly Arg[], options: Options): boolean {
  const words = rest.map(({ text }) => text).join(' ');
  if (writesObjects(verb, options)) return false;
  if (gitReaders.has(verb)) return true;
  if (verb === 'ls-remote')
    return (
      !has(options, '--upload-pack', '--server-option', '-o') &&
      options.operands.slice(0, 1).every(({ text }) => /^[\w-]+$/.test(text))
    );
  if (verb === 'reflog' && /^(?:expire|delete|drop)\b/.test(words)) return false;
  if (verb === 'branch' && changesBranches(words, options)) return false;
  return listWords[verb]?.test(words) === true;
}

function changesBranches(words: string, options: Options): boolean {
  return (
    /^-[adrv]*[dDmMcCfu]/.test(words) ||
    (options.operands.length > 0 && !/--(?:list|contains|merged|no-merged|points-at)|(?:^| )-l /.test(words))
  );
}

function config(rest: readonly Arg[], call: Invocation): readonly Finding[] {
  const words = rest.map(({ text }) => text);
  const { operands } = parseOptions(rest, '-f --file --blob --type --default');
  const [first = '', second = ''] = operands.map(({ text }) => text);
  const named =
    operands.length === 1 &&
    first !== 'edit' &&
    words.every((word) => /^(?:[^-]|--(?:global|local|system|worktree|type=\S+|bool|int)$)/.test(word));
  if (named || readsConfig(words)) return printsConfig([...rest, ...(call.place.next ?? [])], call);
  if (words.some((word) => /^--(?:global|system|file)|^-f$/.test(word)))
    return danger(call, 'changes the settings of every repository');
  const key = /^(?:un)?set$/.test(first) ? second : first;
  return harmlessKeys.test(key) && !rest.some((arg) => arg.dynamic)
    ? change(call, 'changes a setting of the repository')
    : danger(call, 'changes a setting that decides what git runs or where it sends');
}

function printsConfig(words: readonly Arg[], call: Invocation): readonly Finding[] {
  return words.some(({ text }) => /credential|token|password|extraheader/i.test(text))
    ? danger(call, 'prints credentials')
    : [];
}

function readsConfig(words: readonly string[]): boolean {
  return (
    words.some((word) => /^(?:get|list|--get\S*|--list|-l|--show-origin|--show-scope|--name-only)$/.test(word)) &&
    !words.some((word) => /^--(?:add|unset|replace-all|edit|rename|remove)|^-e$/.test(word))
  );
}

const changeTakes =
  '-b -B -c -C -m -s -X -o -n --branch --depth --origin --config --template --message --onto --strategy --strategy-option -x --exec --upload-pack --receive-pack --reference --push-option -u --set-upstream-to';
type Rule = (options: Options, rest: readonly Arg[], call: Invocation) => readonly Finding[];

/** Where people keep what they share; another address may be anybody's. */
const forges =
  /^(?:https:\/\/|ssh:\/\/git@|git@)(?:[\w-]+\.)?(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|dev\.azure\.com|git\.sr\.ht|gitea\.com)[/:]/;

/** Anything git does that is not reading: what throws work away, rewrites what is shared, or runs and reaches something
 * else. */
function changeFindings(verb: string, rest: readonly Arg[], call: Invocation): readonly Finding[] {
  const options = parseOptions(rest, changeTakes);
  if (rest.some(({ text }) => /^(?:ext|fd)::|^\w+:\/\/-/.test(text) || /^--(?:upload-pack|receive-pack)/.test(text)))
    return danger(call, 'runs a program as its transport');
  const found = rules[verb]?.(options, rest, call) ?? [];
  return found.length > 0
    ? found
    : change(
        call,
        verb === 'fetch' || verb === 'pull' || verb === 'clone' || verb === 'push' || verb === 'ls-remote'
          ? 'uses the network'
          : 'changes the repository',
      );
}

const drops = 'drops work that cannot be got back';
const when = (condition: boolean, call: Invocation, what: string): readonly Finding[] =>
  condition ? danger(call, what) : [];
const first = (rest: readonly Arg[]): string => rest.find(({ text }) => !text.startsWith('-'))?.text ?? '';

const rules: Readonly<Record<string, Rule>> = {
  reset: (options, _rest, call) => when(has(options, '--hard', '--merge', '--keep'), call, drops),
  clean: (options, _rest, call) =>
    when(!has(options, '-n', '--dry-run') || has(options, '-i'), call, 'deletes untracked files'),
  checkout: (options, rest, call) =>
    when(
      has(options, '-f', '--force', '--ours', '--theirs', '-p', '--pathspec-from-file') ||
        rest.some(({ text }) => text === '--' || text === '.' || text === './' || text === ':/') ||
        options.operands.some((arg) => arg.glob || /^\.{1,2}\/|\*/.test(arg.text)) ||
        (options.operands.length > 1 && !has(options, '-b', '-B', '--orphan', '-t', '--track')) ||
        looksLikeFile(options.operands[0]),
      call,
      drops,
    ),
  restore: (options, _rest, call) =>
    when(!has(options, '--staged', '-S') || has(options, '--worktree', '-W'), call, drops),
  switch: (options, _rest, call) => when(has(options, '-f', '--force', '--discard-changes', '-C'), call, drops),
  stash: (_options, rest, call) => when(/^(?:drop|clear)$/.test(first(rest)), call, drops),
  branch: (options, _rest, call) =>
    when(has(options, '-D', '-M', '-C', '-f', '--force'), call, 'removes or moves a branch'),
  tag: (options, _rest, call) => when(has(options, '-d', '--delete', '-f', '--force'), call, 'removes or moves a tag'),
  push,
  clone,
  rebase: (options, rest, call) =>
    has(options, '-x', '--exec')
      ? [...execOf(options, call), ...danger(call, 'runs a command for each commit')]
      : when(has(options, '-i', '--interactive') && rest.length > 99, call, drops),
  reflog: (_options, _rest, call) => danger(call, drops),
  gc: (options, _rest, call) =>
    when(
      options.flags.some(({ name }) => name.startsWith('--prune')) || has(options, '--aggressive-prune'),
      call,
      drops,
    ),
  worktree: (options, rest, call) =>
    first(rest) === 'remove'
      ? when(has(options, '-f', '--force'), call, drops)
      : rest.flatMap((arg) =>
          first(rest) === 'add' && /^(?:\.\.\/\.\.|\/|~)/.test(arg.text) ? writeTo(arg, call) : [],
        ),
  remote: (options, rest, call) =>
    when(
      (first(rest) === 'add' &&
        (has(options, '--mirror') ||
          !options.operands.slice(2).every((arg) => !arg.dynamic && forges.test(arg.text)))) ||
        /^(?:set-url|remove|rm|prune|set-head)$/.test(first(rest)),
      call,
      'changes where the repository is sent to',
    ),
  submodule: (options, rest, call) =>
    first(rest) === 'foreach'
      ? foreachSubmodule(rest, call)
      : when(/^(?:deinit|add|set-url)$/.test(first(rest)) || has(options, '-f', '--force'), call, 'changes submodules'),
  rm: (options, _rest, call) =>
    when(has(options, '-f', '--force', '-r') || options.operands.some((arg) => arg.glob), call, 'deletes files'),
  bisect: (_options, rest, call) =>
    first(rest) === 'run' ? call.argv(rest.slice(rest.findIndex(({ text }) => text === 'run') + 1)) : [],
  init: (options, rest, call) => [
    ...when(has(options, '--template', '--separate-git-dir'), call, 'copies hooks from a template'),
    ...options.operands.flatMap((arg) => writeTo(arg, call)),
    ...rest.slice(99).flatMap((arg) => writeTo(arg, call)),
  ],
  hook: (_options, _rest, call) => change(call, 'runs a hook'),
  archive: (options, _rest, call) => when(has(options, '--remote', '--exec'), call, 'reaches another machine'),
  fetch: (options, rest, call) =>
    when(has(options, '--force', '-f') || rest.some(({ text }) => text.startsWith('+')), call, 'overwrites references'),
  pull: (options, _rest, call) =>
    when(
      has(options, '-f', '--force') || /^[^/]*:|^\w+:\/\//.test(options.operands[0]?.text ?? ''),
      call,
      'overwrites references or takes in what an address holds',
    ),
  am: (_options, _rest, call) => change(call, 'applies patches'),
  apply: (options, _rest, call) =>
    when(has(options, '--unsafe-paths', '--directory'), call, 'may write outside the workspace'),
  'sparse-checkout': (_options, _rest, call) => change(call, 'removes files from the working tree'),
  'checkout-index': (_options, _rest, call) => danger(call, drops),
  'read-tree': (_options, _rest, call) => danger(call, drops),
  bundle: (options, _rest, call) => (options.operands[1] ? writeTo(options.operands[1], call) : []),
  lfs: (_options, rest, call) => when(/^(?:prune|migrate|push)$/.test(first(rest)), call, 'rewrites or sends files'),
  notes: (_options, rest, call) => when(/^(?:remove|prune)$/.test(first(rest)), call, drops),
};

/** `git checkout src/a.ts` throws away changes to a file; a branch name has no extension and is not a folder of
 * sources. */
function looksLikeFile(operand: Arg | undefined): boolean {
  return (
    operand !== undefined &&
    (operand.dynamic ||
      /\/$|^(?:src|lib|test|docs)$|\.(?:[cm]?[jt]sx?|json|md|py|go|rs|c|h|cpp|java|rb|php|css|html|ya?ml|toml|sh|txt|lock)$/.test(
        operand.text,
      ))
  );
}

function push(_options: Options, rest: readonly Arg[], call: Invocation): readonly Finding[] {
  const options = parseOptions(rest, '-o --push-option --receive-pack --exec --repo');
  if (
    has(options, '-f', '--force', '--force-with-lease', '--force-if-includes', '--mirror', '--prune', '--delete', '-d')
  )
    return danger(call, 'overwrites or deletes what others share');
  if (options.operands.slice(1).some(({ text }) => /^[+:]/.test(text)))
    return danger(call, 'overwrites or deletes what others share');
  const added = call.scan.commands.some(
    ({ argv }) => argv[0] === 'git' && argv.includes('remote') && argv.includes('add'),
  );
  if (added) return danger(call, 'sends the repository to a place that the same line adds');
  const remote = options.operands[0]?.text ?? '';
  if (/[/:@~]|^\.|\0/.test(remote) || has(options, '--repo')) return danger(call, 'sends the repository to an address');
  return when(
    rest.some((arg) => arg.dynamic && arg.substitution === 'any'),
    call,
    'sends words that are known only when it runs',
  );
}

function clone(options: Options, rest: readonly Arg[], call: Invocation): readonly Finding[] {
  if (has(options, '-c', '--config', '--template', '--upload-pack', '-u'))
    return danger(call, 'chooses programs for the new repository');
  if (rest.some((arg) => arg.dynamic)) return danger(call, 'fetches from an address that is known only when it runs');
  const to = options.operands[1];
  keepFetchedFolder(to?.text ?? lastName(options.operands[0]?.text.replace(/\/+$|\.git$/g, '') ?? ''), call.scan);
  return to ? writeTo(to, call) : [];
}

function execOf(options: Options, call: Invocation): readonly Finding[] {
  return options.flags.flatMap((flag) =>
    flag.value && (flag.name === '-x' || flag.name === '--exec') ? shellText([flag.value], call) : [],
  );
}

function foreachSubmodule(rest: readonly Arg[], call: Invocation): readonly Finding[] {
  const words = rest
    .slice(rest.findIndex(({ text }) => text === 'foreach') + 1)
    .filter(({ text }) => text !== '--recursive');
  return words.length === 0
    ? unanalysable('git submodule foreach without a command')
    : [...shellText(words, call), ...change(call, 'runs a command in every submodule')];
}

/** Subcommands of git that read, and the operands and options with which they still only read. */
const gitReaders: ReadonlySet<string> = new Set([
  'status',
  'log',
  'diff',
  'show',
  'blame',
  'annotate',
  'shortlog',
  'rev-parse',
  'rev-list',
  'describe',
  'ls-files',
  'ls-tree',
  'name-rev',
  'merge-base',
  'show-ref',
  'for-each-ref',
  'count-objects',
  'diff-tree',
  'diff-index',
  'diff-files',
  'whatchanged',
  'cherry',
  'range-diff',
  'var',
  'version',
  'check-ignore',
  'check-attr',
  'check-ref-format',
  'check-mailmap',
  'cat-file',
  'grep',
  'show-branch',
  'verify-pack',
  'patch-id',
  'fsck',
  'stripspace',
  'column',
]);

/** Options that make a reading subcommand run a program. */
const gitRunning: readonly string[] = [
  '--ext-diff',
  '--open-files-in-pager',
  '--upload-pack',
  '--receive-pack',
  '--exec',
  '--textconv',
  '--filters',
  '--show-signature',
  '--receive-pack',
  '--contents',
];

/** Configuration keys that `git -c` and `git config` may set without choosing a program, a server or a file. */
export const harmlessKeys =
  /^(?:color\.|column\.|user\.(?:name|email)$|init\.defaultbranch$|core\.(?:quotepath|autocrlf|eol|safecrlf|ignorecase|filemode|abbrev|compression|precomposeunicode|whitespace|longpaths|commentchar|untrackedcache)$|advice\.|log\.(?:date|decorate|abbrevcommit|follow)|diff\.(?:renames|renamelimit|context|algorithm|mnemonicprefix|noprefix|colormoved\w*|wserrorhighlight|submodule|indentheuristic)$|status\.|commit\.(?:gpgsign|verbose|cleanup)$|tag\.(?:gpgsign|sort)$|pull\.(?:rebase|ff)$|push\.(?:default|autosetupremote|followtags)$|fetch\.prune\w*$|rebase\.(?:autostash|autosquash|updaterefs)$|merge\.(?:ff|conflictstyle|renamelimit)$|branch\.[^.]+\.(?:merge|rebase|description)$|branch\.(?:sort|autosetuprebase|autosetupmerge)$|gc\.auto$|rerere\.enabled$|blame\.|grep\.(?:linenumber|patterntype|extendedregexp|column|threads)$|safe\.dummy$|versionsort\.|help\.autocorrect$)/i;

/** `git -c` settings that switch a program off. */
const disarming =
  /^(?:core\.pager=(?:cat)?|pager\.\w+=(?:false|cat|0)|core\.fsmonitor=(?:false|0)|core\.hookspath=\/dev\/null|core\.editor=(?:true|:)|sequence\.editor=(?:true|:)|protocol\.ext\.allow=never|protocol\.allow=never|diff\.external=|core\.sshcommand=|credential\.helper=|commit\.gpgsign=(?:false|0)|core\.attributesfile=\/dev\/null)$/i;

/** Subcommands that send, rewrite or throw away what cannot be got back, whatever follows. */
const gitDangerous: Readonly<Record<string, string>> = {
  'filter-branch': 'rewrites history',
  'filter-repo': 'rewrites history',
  'send-email': 'sends mail',
  daemon: 'serves the repository',
  instaweb: 'serves the repository',
  'http-backend': 'serves the repository',
  shell: 'is a login shell',
  'upload-pack': 'serves the repository',
  'receive-pack': 'serves the repository',
  'upload-archive': 'serves the repository',
  'update-server-info': 'serves the repository',
  prune: 'drops objects',
  'update-ref': 'moves references',
  'symbolic-ref': 'moves references',
  replace: 'replaces objects',
  'http-push': 'pushes',
  'imap-send': 'sends mail',
  'request-pull': 'runs a pager',
  p4: 'talks to a server',
  svn: 'talks to a server',
  cvsserver: 'serves the repository',
  gui: 'opens a program',
  citool: 'opens a program',
  difftool: 'runs another program',
  mergetool: 'runs another program',
  'web--browse': 'opens a program',
  'remote-ext': 'runs a program',
  'remote-fd': 'runs a program',
  'sh-i18n': 'is part of a shell',
  maintenance: 'schedules work',
  cvsexportcommit: 'talks to a server',
  cvsimport: 'talks to a server',
  'fast-import': 'rewrites history',
  scalar: 'schedules work',
};
