import { entriesOf } from '../../core/lists.js';
import type { Command } from 'unbash';
import versions from '../../../../config/commands/versions.json' with { type: 'json' };
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { isInWorkspace } from '../guarded-paths.js';
import {
  type Arg,
  candidates,
  danger,
  either,
  type Finding,
  type Invocation,
  isFetched,
  type KnownProgram,
  isScratch,
  pathsOf,
  type CommandPlace,
  quoted,
  type OptionScan,
  secretIn,
  quoteCommand,
  unanalysable,
} from './invocation.js';
import { isListed } from './listed-commands.js';
import { namesOnly, searchText } from './readers.js';
import { resolveWord } from './words.js';

const systemFolder = /^\/(?:usr\/(?:local\/)?)?s?bin\/|^\/opt\/homebrew\/bin\//;
const plainName = /^[\w./+:@%=,~[\]-]+$/;
const systemPath = /^\/(?:etc|usr|bin|sbin|lib\w*|opt|proc|sys|dev|run|var|boot|System|Library|Applications)(?:\/|$)/;

/** Judges one simple command: its words, then what its program does with them. `prefixed` says that assignments stand
 * before it which may change what it does. */
export function judge(
  argv: readonly Arg[],
  place: CommandPlace,
  scan: OptionScan,
  prefixed = false,
): readonly Finding[] {
  const head = argv[0];
  if (!head) return [];
  const findings = judgeNamed(head, argv.slice(1), place, scan);
  const isKnown = argv.every((arg) => !arg.dynamic && arg.values.length === 1);
  const isPlain = isKnown && !prefixed && !scan.functions.has(head.text);
  scan.commands.push({
    argv: argv.map(({ text }) => text),
    words: argv.map(({ values }) => values),
    findings,
    exact: isPlain && place.started !== true && !argv.some(({ glob }) => glob),
    listed: isPlain && isListed(argv.map(({ text, glob }) => ({ text, wildcard: glob }))),
  });
  return findings;
}

function judgeNamed(head: Arg, args: readonly Arg[], place: CommandPlace, scan: OptionScan): readonly Finding[] {
  const unclear = nameProblem(head);
  if (unclear !== null) return unanalysable(unclear);
  const inSystem = systemFolder.test(head.text);
  const name = inSystem ? head.text.replace(/^.*\//, '') : head.text;
  const call = invocation(name, args, place, scan);
  return [...generalFindings(call), ...plantedFindings(call), ...specialFindings(call)];
}

function nameProblem(head: Arg): string | null {
  if (head.dynamic || head.glob || head.values.length > 1 || head.substitution !== 'none')
    return `the command name ${quoted(head.text)} is known only when it runs`;
  if (head.text === '') return 'a command without a name';
  return plainName.test(head.text) ? null : `the command name ${quoted(head.text)}`;
}

function invocation(name: string, args: readonly Arg[], place: CommandPlace, scan: OptionScan): Invocation {
  const deeper = (change: Partial<CommandPlace> = {}): CommandPlace => ({
    ...place,
    ...change,
    started: true,
    depth: place.depth + 1,
  });
  return {
    name,
    args,
    place,
    scan,
    argv: (inner, changed) =>
      place.depth > 60 ? unanalysable('it is nested too deeply') : judge(inner, deeper(changed), scan),
    script: (text, changed) => {
      if (place.depth > 60) return unanalysable('it is nested too deeply');
      scan.script(text, deeper(changed));
      return [];
    },
  };
}

const inspectors = new Set(['[', 'test', '[[', 'unset', 'export']);

function generalFindings(call: Invocation): readonly Finding[] {
  const { name, args, scan } = call;
  const leaking = inspectors.has(name) ? undefined : args.find((arg) => arg.secretVariable !== null);
  if (leaking)
    return [{ reason: `${quoteCommand(call)} uses the secret variable $${leaking.secretVariable}`, fixed: true }];
  if (namesOnly(call)) return [];
  const text = searchText(call);
  for (const arg of args) {
    if (text.has(arg)) continue;
    if (!arg.dynamic)
      for (const path of arg.values.flatMap((value) => pathsOf(value, scan)))
        if (path.length < 4096) scan.files.reads.add(path);
    const secret = secretIn(arg, scan);
    if (secret !== null)
      return [
        {
          reason: `${quoteCommand(call)} names the secret file ${secret.replaceAll('\0', '…')}`,
          fixed: true,
          targets: [secret],
        },
      ];
  }
  return [];
}

function specialFindings(call: Invocation): readonly Finding[] {
  const { name, scan } = call;
  const known = knownAs(call);
  if (scan.functions.has(name) && !known) return [];
  if (isVersionQuestion(call)) return [];
  if (known) return known.judge(call);
  return name.includes('/') ? program(call) : unknownFindings(call);
}

function knownAs({ name, scan }: Invocation): KnownProgram | undefined {
  return scan.programs.get(name) ?? scan.programs.get(familyOf(name));
}

/** Returns the name of the table entry for a family of programs, such as `mkfs.*` or `python`. */
function familyOf(name: string): string {
  if (/^(?:lv|vg|pv)(?!s$|display$|scan$)[a-z]+$/.test(name)) return 'mkfs.*';
  if (/^(?:mkfs|fsck|mount|umount)\.|^(?:ip6?|eb|arp)tables-|^grub2?-/.test(name)) return 'mkfs.*';
  return /^(?:python|pypy|ruby|perl|lua|php)\d[\d.]*$/.test(name) ? name.replace(/[\d.]+$/, '') : name;
}

/** `node --version` and its like; each program takes the words that it knows. */
function isVersionQuestion({ name, args }: Invocation): boolean {
  const word = args.length === 1 ? args[0]?.text : undefined;
  return word !== undefined && (versionWords.get(word)?.has(name) ?? false);
}

const versionWords: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(versions.questions).map(([word, names]) => [word, new Set(entriesOf(names))]),
);

/** A program named by its path: of the workspace, or fetched by this very script. */
function program(call: Invocation): readonly Finding[] {
  if (/^ld-(?:linux|musl)|^ld\.so/.test(call.name.replace(/^.*\//, '')))
    return danger(call, 'starts a program through the loader');
  if (isFetched(call.name, call.scan)) return danger(call, 'runs a file that was fetched from the network');
  const isForeign = (path: string): boolean => isScratch(path) && !isInWorkspace(path, call.scan.context);
  if (pathsOf(call.name, call.scan).some(isForeign)) return danger(call, 'runs a program from a temporary folder');
  if (/^\/etc\/(?:init|rc\d?)\.d\//.test(call.name)) return danger(call, 'controls services');
  const base = call.name.replace(/^.*\//, '');
  if (/^(?:sudo|su|rm|dd|sh|bash|curl|wget|nc)$/.test(base))
    return danger(call, `runs a program called ${base} from an unusual place`);
  return [...writtenFindings(call.name, call), ...taskFindings(call)];
}

/** Anything but a reader that names a file which some program obeys. Git's own entries say what it changes. */
function plantedFindings(call: Invocation): readonly Finding[] {
  const isReader = knownAs(call)?.entry.reads === true || call.name.startsWith('git') || isVersionQuestion(call);
  return isReader ? [] : obeyedFindings(call, call.args);
}

/** Finds a file that some program obeys among words. */
export function obeyedFindings(call: Invocation, args: readonly Arg[]): readonly Finding[] {
  const { scan } = call;
  for (const arg of args) {
    for (const text of arg.values.flatMap(candidates)) {
      const found = pathsOf(text, scan).find(
        (path) => path.length < 4096 && !systemPath.test(path) && scan.context.isProtected(path),
      );
      if (found !== undefined)
        return [
          {
            reason: `${quoteCommand(call)} may change the protected file ${found}`,
            fixed: true,
            targets: [found],
          },
        ];
    }
  }
  return [];
}

const { lists } = wordLists;
const destroying = either(lists.destroyingVerbs);

/** Names that frameworks give to tasks which throw a database away or wind it back. */
const databaseTask = new RegExp(
  `(?:^|[\\s:./])(?:${either(lists.databaseAreas)}|doctrine:\\w+)[:.\\s-]` +
    `(?:\\S+[:.])?(?:${either(lists.databaseTasks)})(?:[\\s:]|$)`,
  'i',
);
const loneTask = new RegExp(
  `(?:^|\\s)(?:${either(lists.destroyingTasks)}|migrate \\S+ zero|db:migrate VERSION=0|tinker --execute\\S*)(?:\\s|$)`,
  'i',
);
/** Matches code among the words of a program: calls that start programs, and calls with which objects delete
 * themselves. */
const runningText = new RegExp(
  [
    `\\b(?:${either(lists.startingCalls)}|exec[lv]?p?e?)\\s*[({]`,
    '\\bsubprocess\\b|\\bchild_process\\b|\\bgetRuntime\\b|\\bpty\\.spawn\\b|\\brmtree\\b',
    '\\bos\\.(?:system|remove|unlink|rmdir|popen)|\\\\(?:immediate)?\\\\?write18',
    '\\b(?:delete|destroy|drop|truncate|remove)_?(?:all|many|all!)\\b',
    '(?:\\.|::|->)(?:delete|destroy|drop|truncate|flush)(?:_all|All|Many|Database)?!?\\(',
    '[`|]\\s*(?:ba|z|da)?sh\\b|(?:^|\\s)rm\\s+-[rf]|\\|\\s*(?:nc|curl)\\b',
  ].join('|'),
);
/** Options by which programs are given something to run. */
const runningOption = new RegExp(
  `^--?(?:${either(lists.runningOptions)})(?:=.*)?$` +
    '|^--?(?:output|out|target|dest\\w*|to|upload\\S*|push|sink|remote)=[a-z]\\w+://(?!localhost|127\\.)',
  'i',
);
/** A shell or a tool that destroys, handed over as the thing to run. */
const handedProgram = new RegExp(
  '^(?:/(?:usr/)?s?bin/)?(?:(?:ba|z|da|k|c|tc|fi)?sh|busybox|rm|shred|dd|mkfs(?:\\.\\w+)?|su|sudo|doas|nc|ncat|socat)$',
);
/** The same inside a word: `--filter=*:sh -c x`. */
const handedText = /(?:^|[=:\s])(?:\/\S*\/)?(?:ba|da|z|k)?sh\s+-\w*c\b/;
/** Matches verbs with which an unknown program destroys or publishes. */
const destroyingVerb = new RegExp(
  [
    `^(?:(?:${destroying})(?:[-_:]\\S+)?`,
    `\\S+[-_:](?:${destroying})`,
    `(?:${either(lists.publishingVerbs)})`,
    `--(?:${destroying}|delete-all|force-delete|rm|upload|publish|push)(?:-\\S+|=\\S+)?)$`,
  ].join('|'),
  'i',
);
/** Names of programs that are made to destroy, to send data away, to listen in or to break in. */
const tellingName = new RegExp(
  [
    `(?:${either(lists.tellingEnds)})$`,
    either(lists.tellingParts),
    `(?:^|[-_])(?:${either(lists.tellingWords)})$`,
  ].join('|'),
  'i',
);
/** Another machine among the words: an account there, an address in numbers, a protocol that is not the web's. */
const otherMachine = new RegExp(
  '^(?!npm:|workspace:|file:|https?:|git@|git:)(?:' +
    [
      '[\\w.-]+@(?:[\\w-]+\\.)+[a-z]{2,}(?::.*)?',
      '(?:[a-z][\\w+]*://)(?!localhost|127\\.|\\[::1\\]|db|postgres|redis|mysql|mongo).+',
      '(?!127\\.|0\\.0\\.0\\.0)(?:\\d{1,3}\\.){3}\\d{1,3}(?::\\d+)?(?:/\\S*)?',
    ].join('|') +
    ')$',
  'i',
);
const scripts = /^(?:\S+:)?(?:deploy|release|publish|unpublish|destroy|nuke|wipe|purge|teardown)(?::\S+)?$/i;
/** System folders that decide who may do what and what runs by itself. */
const guardedPlace = new RegExp(
  `(?:^|=)/(?:(?:${either(lists.guardedFolders)})(?:/|$)|dev/(?:sd|nvme|hd|vd|disk|mapper))`,
);

/** Matches the commands of frameworks that read statements or code. */
const consoles = /(?:^|\s)(?:dbshell|dbconsole|db|db:shell|console|c|tinker|shell|repl|psysh|runner)(?:\s|$)/;

/** Tools that bring a database from one state to the next, and back. */
const migrators = new Set(entriesOf(lists.migrators));

/** Judges a framework or a script of the project that throws data away, or is given code to run. */
export function taskFindings(
  call: Invocation,
  words: readonly string[] = call.args.map(({ text }) => text),
): readonly Finding[] {
  const text = words.filter((word) => !word.includes('\0')).join(' ');
  if (
    migrators.has(call.name.replace(/^.*\//, '')) &&
    words.some((word) => /^(?:clean|drop\S*|rollback\S*|down\S*|revert|reset|undo\S*|downgrade)$/i.test(word))
  )
    return danger(call, 'deletes data or rolls it back');
  if (databaseTask.test(text) || loneTask.test(text)) return danger(call, 'deletes data or rolls it back');
  if (
    consoles.test(text) &&
    (call.place.piped ||
      call.place.input.trim() !== '' ||
      [...call.scan.files.reads].some((path) => path.endsWith('.sql')))
  )
    return danger(call, 'sends its input to a console of the project');
  return words.some((word) => runningText.test(word)) ? danger(call, 'runs code that starts programs or deletes') : [];
}

/** Judges a program without an entry by its name and its words. */
export function unknownFindings(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (tellingName.test(call.name)) return danger(call, 'is a known harmful program');
  const verbs = [
    ...words.filter((word) => !word.startsWith('-')).slice(0, 3),
    ...words.filter((word) => word.startsWith('--')),
  ];
  if (verbs.some((word) => destroyingVerb.test(word))) return danger(call, 'destroys or publishes');
  if (
    words.some((word) => runningOption.test(word)) ||
    words.some(
      (word) =>
        handedProgram.test(word) ||
        handedText.test(word) ||
        /\/bin\/(?:ba|z|da)?sh\b|^(?:ba|da|z)?sh\s*[;&|]|@exec\b/.test(word),
    )
  )
    return danger(call, 'runs another program');
  if (words.some((word) => otherMachine.test(word))) return danger(call, 'reaches another machine');
  if (words.some((word) => guardedPlace.test(word))) return danger(call, 'uses a system path that decides what runs');
  return runningText.test(call.place.input) || /\/bin\/(?:ba)?sh\b/.test(call.place.input)
    ? danger(call, 'runs code that starts programs or deletes')
    : taskFindings(call, words);
}

/** A script of the project by its name (`npm run deploy`). */
export function scriptFindings(name: string, call: Invocation): readonly Finding[] {
  return scripts.test(name) || databaseTask.test(name) || loneTask.test(name)
    ? danger(call, 'publishes or deletes data')
    : [];
}

const shellFile = /(?:^|\/)[^/.]+$|\.(?:sh|bash|zsh|ksh|command|bashrc)$/;

/** Remembers what a redirect writes into a file, so that running the file later in the same line is running that text.
 * `argv` is the command whose output it is, `input` the text it is given. */
export function keepWritten(node: Command, argv: readonly Arg[], input: string, scan: OptionScan): void {
  for (const redirect of node.redirects) {
    if (
      redirect.type !== 'Redirect' ||
      !redirect.operator.includes('>') ||
      !redirect.target ||
      /^\d+$/.test(redirect.target.text)
    )
      continue;
    for (const arg of resolveWord(redirect.target, scan))
      for (const path of pathsOf(arg.text, scan))
        keep(path, printedText(argv, input), redirect.operator === '>>', scan);
  }
}

function keep(path: string, text: string | null, appends: boolean, scan: OptionScan): void {
  const before = scan.files.written.get(path);
  scan.files.written.set(
    path,
    text === null || before === null ? null : appends && before !== undefined ? `${before}\n${text}` : text,
  );
}

/** The text that a command prints, where it is known. */
function printedText(argv: readonly Arg[], input: string): string | null {
  const [name, ...words] = argv;
  if (words.some((arg) => arg.dynamic || arg.glob || arg.substitution !== 'none')) return null;
  if (name?.text === 'cat' && words.length === 0) return input;
  if (name?.text === 'echo')
    return words
      .filter(({ text }, index) => index > 0 || !/^-[neE]+$/.test(text))
      .map(({ text }) => text)
      .join(' ')
      .replaceAll('\\n', '\n');
  if (name?.text === 'printf' && words.length > 0)
    return words.map(({ text }) => text.replace(/%s|\\n/g, '\n')).join('\n');
  return null;
}

/** Judges the run of a file that the same line wrote. The text of a shell script is judged if it is known; any other
 * file is dangerous. */
export function writtenFindings(file: string, call: Invocation): readonly Finding[] {
  const path = pathsOf(file, call.scan).find((one) => call.scan.files.written.has(one));
  if (path === undefined) return [];
  const text = call.scan.files.written.get(path);
  const forShell = /^(?:sh|bash|source|\.)$/.test(call.name) || (call.name === file && shellFile.test(file));
  const other = /^#!(?!.*\b(?:ba)?sh\b)/.test(text ?? '');
  return typeof text === 'string' && forShell && !other
    ? call.script(text, { posix: call.name === 'sh' })
    : danger(call, 'runs a file that this line has just written');
}
