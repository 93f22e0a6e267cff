import { lastName } from '../paths.js';
import { keepFetchedFolder } from './shell-fetched.js';
import { change, danger, unanalysable, writeTo } from './shell-findings.js';
import { has, parseOptions, type Options } from './shell-options.js';
import { shellText } from './shell-wrappers.js';
import type { Arg, Finding, Invocation } from './shell-types.js';

const changeTakes =
  '-b -B -c -C -m -s -X -o -n --branch --depth --origin --config --template --message --onto --strategy --strategy-option -x --exec --upload-pack --receive-pack --reference --push-option -u --set-upstream-to';
type Rule = (options: Options, rest: readonly Arg[], call: Invocation) => readonly Finding[];

/** Where people keep what they share; another address may be anybody's. */
const forges =
  /^(?:https:\/\/|ssh:\/\/git@|git@)(?:[\w-]+\.)?(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|dev\.azure\.com|git\.sr\.ht|gitea\.com)[/:]/;

/** Anything git does that is not reading: what throws work away, rewrites what is shared, or runs and reaches something
 * else. */
export function changeFindings(verb: string, rest: readonly Arg[], call: Invocation): readonly Finding[] {
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
