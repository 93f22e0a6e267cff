import { addAll, entriesOf } from '../../core/lists.js';
import gitTables from '../../../../config/commands/git.json' with { type: 'json' };
import { lastName } from '../guarded-paths.js';
import { shellText } from './builtins-and-wrappers.js';
import {
  type Arg,
  type Code,
  danger,
  either,
  type Finding,
  type Invocation,
  keepFetchedFolder,
  type Options,
  type Program,
  type Test,
  unanalysable,
  writeTo,
} from './invocation.js';
import { has, parseOptions, valuesOf } from './words.js';

/** The rules for git that the tables cannot express. */
export const gitCodes: Readonly<Record<string, Code>> = {
  addTree,
  bisectRun,
  clone,
  eachSubmodule,
  execEach,
  git,
  initialise,
  push,
  writesBundle,
};
export const gitTests: Readonly<Record<string, Test>> = { addsStranger, listsBranches, namesFiles, namesPattern };

const { lists } = gitTables;
/** Settings that `git -c` and `git config` may change without choosing a program, a server or a file. */
export const harmlessSettings = new RegExp(`^(?:${either(lists.harmlessSettings)})$`, 'i');
/** Settings that switch a program off. */
const disarmingSettings = new RegExp(`^(?:${either(lists.disarmingSettings)})$`, 'i');

interface Split {
  readonly findings: readonly Finding[];
  readonly verb: string;
  readonly rest: readonly Arg[];
}

function git(call: Invocation): readonly Finding[] {
  const split = globalOptions(call);
  return split.findings.length > 0 ? split.findings : subcommand(split.verb, split.rest, call);
}

/** The options before the subcommand: `-c` may name programs, `--git-dir` another configuration. */
function globalOptions(call: Invocation): Split {
  const { args } = call;
  const findings: Finding[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (!arg || arg.dynamic)
      return {
        findings: [...findings, ...danger(call, 'takes a command that is known only when it runs')],
        verb: '',
        rest: [],
      };
    if (arg.text === '') return { findings, verb: '', rest: [] };
    if (!arg.text.startsWith('-')) return { findings, verb: arg.text, rest: args.slice(i + 1) };
    addAll(findings, globalOption(arg.text, args[i + 1], call));
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
  if (text === '-C' && value) enter(value, call);
  if (/^--(?:exec-path=|git-dir|work-tree|namespace|super-prefix)/.test(text))
    return danger(call, 'uses the settings of another repository');
  return [];
}

/** `-C folder`: like `cd`. */
function enter(value: Arg, call: Invocation): void {
  call.argv([{ ...value, text: 'cd', values: ['cd'], dynamic: false, glob: false, substitution: 'none' }, value]);
}

function settingIsHarmless(setting: string): boolean {
  if (/^diff\.submodule=diff$/i.test(setting)) return false;
  return disarmingSettings.test(setting) || harmlessSettings.test(setting.split('=')[0] ?? '');
}

/** Options that make a reading subcommand run a program. */
const runningOptions = [
  '--ext-diff',
  '--open-files-in-pager',
  '--upload-pack',
  '--receive-pack',
  '--exec',
  '--textconv',
  '--filters',
  '--show-signature',
  '--contents',
];
const readTakes = new Set(entriesOf(lists.readTakes));
const transport = /^(?:ext|fd)::|^\w+:\/\/-/;

/** Judges the words of a subcommand by the entry of that subcommand. */
function subcommand(verb: string, rest: readonly Arg[], call: Invocation): readonly Finding[] {
  if (verb === '') return [];
  if (verb.startsWith('credential')) return danger(call, 'prints or stores credentials');
  const known = call.scan.programs.get(`git ${verb}`);
  const always = known?.entry.danger !== undefined && known.entry.rules === undefined;
  const running = always ? undefined : runningOption(verb, rest, parseOptions(rest, readTakes));
  if (running !== undefined) return danger(call, `${running} runs another program`);
  if (verb === 'config') return config(rest, call);
  const before = call.args.slice(0, call.args.length - rest.length).map(({ text }) => text);
  const inner = { ...call, name: [call.name, ...before].join(' '), args: rest };
  if (rest.some(({ text }) => transport.test(text))) return danger(call, 'runs a program as its transport');
  return known?.judge(inner) ?? [];
}

/** An option that runs a program; that of `git grep` may stand in a cluster (`-nO./program`). */
function runningOption(verb: string, rest: readonly Arg[], options: Options): string | undefined {
  if (verb === 'grep' && rest.some(({ text }) => /^-[^-efABCm]*O/.test(text))) return '-O';
  return runningOptions.find((name) => has(options, name));
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
  return harmlessSettings.test(key) && !rest.some((arg) => arg.dynamic)
    ? []
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

/** Hosts where people share repositories. Any other address may belong to anybody. */
const forges = new RegExp(
  '^(?:https://|ssh://git@|git@)(?:[\\w-]+\\.)?' +
    '(?:github\\.com|gitlab\\.com|bitbucket\\.org|codeberg\\.org|dev\\.azure\\.com|git\\.sr\\.ht|gitea\\.com)[/:]',
);

const fileOrFolder = new RegExp(
  '/$|^(?:src|lib|test|docs)$' +
    '|\\.(?:[cm]?[jt]sx?|json|md|py|go|rs|c|h|cpp|java|rb|php|css|html|ya?ml|toml|sh|txt|lock)$',
);

/** `git checkout src/a.ts` throws away changes to a file; a branch name has no extension and is not a folder of
 * sources. */
function looksLikeFile(operand: Arg | undefined): boolean {
  return operand !== undefined && (operand.dynamic || fileOrFolder.test(operand.text));
}

function push(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  if (
    has(options, '-f', '--force', '--force-with-lease', '--force-if-includes', '--mirror', '--prune', '--delete', '-d')
  )
    return danger(call, 'overwrites or deletes shared work');
  if (options.operands.slice(1).some(({ text }) => /^[+:]/.test(text)))
    return danger(call, 'overwrites or deletes shared work');
  const added = call.scan.commands.some(
    ({ argv }) => argv[0] === 'git' && argv.includes('remote') && argv.includes('add'),
  );
  if (added) return danger(call, 'sends the repository to a place that the same line adds');
  const remote = options.operands[0]?.text ?? '';
  if (/[/:@~]|^\.|\0/.test(remote) || has(options, '--repo')) return danger(call, 'sends the repository to an address');
  return call.args.some((arg) => arg.dynamic && arg.substitution === 'any')
    ? danger(call, 'sends words that are known only when it runs')
    : [];
}

function clone(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  if (has(options, '-c', '--config', '--template', '--upload-pack', '-u'))
    return danger(call, 'chooses programs for the new repository');
  if (call.args.some((arg) => arg.dynamic))
    return danger(call, 'fetches from an address that is known only when it runs');
  const to = options.operands[1];
  keepFetchedFolder(to?.text ?? lastName(options.operands[0]?.text.replace(/\/+$|\.git$/g, '') ?? ''), call.scan);
  return to ? writeTo(to, call) : [];
}

/** `git branch` with options that only list. */
const listing = new RegExp(
  '^(?:-[arv]+|-l|--all|--remotes|--list|--verbose|--show-current|--no-color|--column' +
    '|--(?:sort|format|color)\\S*|--(?:contains|merged|no-merged|points-at|no-contains)(?: \\S+| ?$)' +
    '|--list \\S+)(?: |$)',
);

function listsBranches({ args }: Invocation): boolean {
  const words = args.map(({ text }) => text).join(' ');
  const { operands } = parseOptions(args, readTakes);
  if (/^-[adrv]*[dDmMcCfu]/.test(words)) return false;
  if (operands.length > 0 && !/--(?:list|contains|merged|no-merged|points-at)|(?:^| )-l /.test(words)) return false;
  return words === '' || listing.test(words);
}

function namesFiles(_call: Invocation, { operands }: Options): boolean {
  return operands.some((arg) => arg.glob || arg.text.includes('*')) || looksLikeFile(operands[0]);
}

function namesPattern(_call: Invocation, { operands }: Options): boolean {
  return operands.some((arg) => arg.glob);
}

/** `git remote add` with an address that is not of a place where people keep what they share. */
function addsStranger(_call: Invocation, options: Options): boolean {
  const known = options.operands.slice(2).every((arg) => !arg.dynamic && forges.test(arg.text));
  return has(options, '--mirror') || !known;
}

function addTree(call: Invocation): readonly Finding[] {
  return call.args.flatMap((arg) => (/^(?:\.\.\/\.\.|\/|~)/.test(arg.text) ? writeTo(arg, call) : []));
}

function writesBundle(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  return operands[1] ? writeTo(operands[1], call) : [];
}

function initialise(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  return operands.flatMap((arg) => writeTo(arg, call));
}

function bisectRun(call: Invocation): readonly Finding[] {
  return call.argv(call.args.slice(call.args.findIndex(({ text }) => text === 'run') + 1));
}

function execEach(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  return valuesOf(options, '-x', '--exec').flatMap((value) => shellText([value], call));
}

function eachSubmodule(call: Invocation): readonly Finding[] {
  const words = call.args
    .slice(call.args.findIndex(({ text }) => text === 'foreach') + 1)
    .filter(({ text }) => text !== '--recursive');
  return words.length === 0 ? unanalysable('git submodule foreach without a command') : shellText(words, call);
}
