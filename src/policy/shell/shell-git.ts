import { climbs } from './shell-builtins.js';
import { change, danger, writeTo } from './shell-findings.js';
import { disarming, gitDangerous, gitReaders, gitRunning, harmlessKeys } from './shell-git-tables.js';
import { changeFindings } from './shell-git-changes.js';
import { has, parseOptions, valuesOf, type Options } from './shell-options.js';
import type { Arg, Finding, Handler, Invocation } from './shell-types.js';

export const gitHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['git', git],
  ['git-lfs', (call) => change(call, 'changes the repository')],
  ['gitk', (call) => danger(call, 'opens a program')],
  ['tig', (call) => change(call, 'opens a pager')],
]);

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
