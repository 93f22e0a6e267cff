import { entriesOf, type WordList } from '../../core/lists.js';
import clouds from '../../../../config/commands/clouds.json' with { type: 'json' };
import files from '../../../../config/commands/files.json' with { type: 'json' };
import git from '../../../../config/commands/git.json' with { type: 'json' };
import interpreters from '../../../../config/commands/interpreters.json' with { type: 'json' };
import media from '../../../../config/commands/media.json' with { type: 'json' };
import network from '../../../../config/commands/network.json' with { type: 'json' };
import packages from '../../../../config/commands/packages.json' with { type: 'json' };
import readers from '../../../../config/commands/readers.json' with { type: 'json' };
import services from '../../../../config/commands/services.json' with { type: 'json' };
import shell from '../../../../config/commands/shell.json' with { type: 'json' };
import starters from '../../../../config/commands/starters.json' with { type: 'json' };
import system from '../../../../config/commands/system.json' with { type: 'json' };
import text from '../../../../config/commands/text.json' with { type: 'json' };
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { builtinCodes, shellText, wrapperCodes } from './builtins-and-wrappers.js';
import { isRecord } from '../../core/json.js';
import { archiveCodes, fileCodes } from './file-programs.js';
import { findCodes } from './finders.js';
import { gitCodes, gitTests } from './git.js';
import { interpreterCodes } from './interpreters.js';
import {
  type Arg,
  type Code,
  type RuleCondition,
  danger,
  either,
  expanded,
  type Finding,
  type Invocation,
  type KnownProgram,
  type KnownPrograms,
  type NamedCode,
  type Options,
  type RuleOutcome,
  type Program,
  type CommandRule,
  type Test,
  unclear,
  writeTo,
} from './invocation.js';
import { networkCodes, networkTests } from './network-programs.js';
import { cloudCodes, cloudTests, compilerCodes, serviceCodes, systemCodes } from './other-programs.js';
import { judgeReading, readerCodes, secretFilter } from './readers.js';
import { awkCodes, sedCodes } from './sed-and-awk.js';
import { scriptFindings, taskFindings } from './simple-command.js';
import { sendsWords } from './questions.js';
import { has, parseOptions, valuesOfAny } from './words.js';

/** The rules for package managers that the tables cannot express. */
const packageCodes: Readonly<Record<string, Code>> = {
  behindVerb,
  installs: (call) => installs(call, []),
  installsFiles,
  installsNames,
  installsOperands: (call, _program, { operands }) => installs(call, operands.slice(1)),
  lerna,
  npmConfig,
  npmExec,
  projectScript,
  runner,
  uvPip,
};
const packageTests: Readonly<Record<string, Test>> = { queriesFile };

/** `rpm -q…E` and `-q…D` evaluate a text. */
function queriesFile(call: Invocation): boolean {
  return call.args.some(({ text }) => /^-q\w*[DE]/.test(text));
}

function after(call: Invocation, word: string): readonly Arg[] {
  return call.args.slice(call.args.findIndex(({ text }) => text === word) + 1);
}

function verbOf(call: Invocation): string {
  return call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
}

/** `bundle exec`, `poetry run`: the words behind are a command. */
function behindVerb(call: Invocation): readonly Finding[] {
  return call.argv(after(call, verbOf(call)));
}

/** `lerna exec` runs a command in each package. */
function lerna(call: Invocation): readonly Finding[] {
  const verb = verbOf(call);
  const rest = after(call, verb);
  const dashes = rest.findIndex(({ text }) => text === '--');
  const command = rest.slice(dashes < 0 ? rest.findIndex(({ text }) => !text.startsWith('-')) >>> 0 : dashes + 1);
  return verb === 'run' ? scriptFindings(command[0]?.text ?? '', call) : call.argv(command);
}

/** Packages by name, or files and addresses that list them. */
function installsFiles(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  const listed = call.args.filter((_arg, index) =>
    /^(?:-r|-c|-e|--requirement|--editable)$/.test(call.args[index - 1]?.text ?? ''),
  );
  if (listed.some(({ text }) => remoteSource.test(text) && !/^\.?\/?[\w./-]*$/.test(text)))
    return danger(call, 'installs from an address');
  return installs(
    call,
    operands.slice(1).filter(({ text }) => text !== '.' && !text.startsWith('./')),
  );
}

function installsNames(call: Invocation): readonly Finding[] {
  return installs(
    call,
    after(call, verbOf(call)).filter(({ text }) => !text.startsWith('-')),
  );
}

function uvPip(call: Invocation): readonly Finding[] {
  const inner = call.argv(call.args.slice(call.args.findIndex(({ text }) => text === 'pip')));
  return inner.length > 0 ? inner : sendsWords(call);
}

function npmExec(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  return runner({ ...call, args: after(call, operands[0]?.text ?? '') });
}

function projectScript(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  const verb = operands[0]?.text ?? '';
  const told = scriptFindings(/^(?:run|run-script|rum|urn)$/.test(verb) ? (operands[1]?.text ?? '') : verb, call);
  return told;
}

function npmConfig(call: Invocation, _program: Program, { operands }: Options): readonly Finding[] {
  const words = operands.map(({ text }) => text);
  const [first, second] = words;
  if (first === 'get' || (second === 'get' && words.length > 2))
    return words.some((word) => /auth|token|password/i.test(word)) ? danger(call, 'prints tokens') : sendsWords(call);
  if (/^(?:yarn|pnpm)$/.test(call.name) && /^(?:list|ls)$/.test(second ?? '')) return danger(call, 'prints tokens');
  return second === 'list' || second === 'ls' ? sendsWords(call) : danger(call, 'changes settings of npm');
}

/** Tools that projects install for themselves. Any other name may be fetched and run on the spot. */
const localTools = new Set(entriesOf(wordLists.lists.projectTools));

function runner(call: Invocation): readonly Finding[] {
  const { args } = call;
  const words = args.map(({ text }) => text);
  const at = words.findIndex((text) => !text.startsWith('-'));
  const own = words.slice(0, at < 0 ? words.length : at);
  const code = own.findIndex((text) => text === '-c' || text === '--call');
  if (code >= 0)
    return [...shellText(args.slice(code + 1, code + 2), call), ...danger(call, 'fetches packages and runs a text')];
  if (own.some((text) => /^(?:-p|--package|--from|--with|--index-url|--registry)(?:=|$)/.test(text)))
    return danger(call, 'fetches and runs a package');
  const tool = args[at];
  if (!tool) return [];
  if (tool.dynamic) return danger(call, 'fetches and runs a package');
  // Whether it is installed, a rehearsal without network shows.
  if (!localTools.has(tool.text)) return unclear(call, 'may fetch and run a package');
  const drops = /^(?:prisma db push .*--(?:force-reset|accept-data-loss)|drizzle-kit drop)/.test(
    words.slice(at).join(' '),
  );
  return drops ? danger(call, 'drops data') : taskFindings(call, words.slice(at + 1));
}

/** A package that is named by where it lies instead of by its name in a registry. */
const remoteSource = new RegExp(
  [
    '^(?:https?:|git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:|file:|svn\\+|hg\\+|bzr\\+)',
    '^[\\w.-]+/[\\w.-]+(?:#.*)?$|\\.(?:tgz|tar\\.gz|whl)$|^/|^\\.\\./|@(?:https?:|git[+:]|npm:|file:)',
  ].join('|'),
);

const otherRegistry = new RegExp(`^(?:${either(wordLists.lists.otherRegistry)})(?:=|$)`);

/** Letters that mean another registry or folder to one package manager, and something else to the others. */
function isOwnMeaning(text: string, name: string): boolean {
  return (
    (text === '-s' && name !== 'gem') ||
    (text === '-c' && !/^(?:conda|mamba)$/.test(name)) ||
    (text === '-i' && name === 'npm') ||
    (text === '-t' && name === 'cargo')
  );
}

/** Packages of a name come from the registry that the project chose; addresses, other registries and global installs do
 * not. */
function installs(call: Invocation, names: readonly Arg[]): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (call.args.some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return danger(call, 'installs packages that are known only when it runs');
  const address = names.find(({ text }) => remoteSource.test(text) && !/^@[\w.-]+\/[\w.-]+/.test(text));
  if (address) return danger(call, `installs from ${address.text}`);
  if (words.some((text) => otherRegistry.test(text) && !isOwnMeaning(text, call.name)))
    return danger(call, 'installs outside the project or from another registry');
  return [];
}

/** A file of `config/commands` as it is written. */
export interface CommandTableFile {
  readonly about: string;
  /** Lists that entries name as `@name`. */
  readonly lists?: Lists;
  readonly programs: readonly object[];
}

type Lists = Readonly<Record<string, WordList>>;

const listKeys = new Set(
  entriesOf(
    'names, takes, runs, writes, pattern, program, verb, alone, operands, start, whole, says, behind, every, options, inline, preload, text',
  ),
);

/** Returns an entry with its lists as arrays. */
function unpacked(value: unknown, key = ''): unknown {
  if (listKeys.has(key)) return entriesOf(value as WordList);
  if (Array.isArray(value)) return value.map((one) => unpacked(one));
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, unpacked(one, name)]))
    : value;
}

/** Makes the tables, by the name of the program. Rules are compiled when a program is first judged. Throws if two
 * entries name the same program. */
export function knownPrograms(files: readonly CommandTableFile[], code: NamedCode): KnownPrograms {
  const known = new Map<string, KnownProgram>();
  for (const { programs, lists = {} } of files)
    for (const written of programs) {
      const entry = unpacked(written) as Program;
      let judge: KnownProgram['judge'] | undefined;
      const program = { entry, judge: (call: Invocation) => (judge ??= judgement(entry, lists, code))(call) };
      for (const name of entry.names) {
        if (known.has(name)) throw new Error(`two entries describe the program ${name}`);
        known.set(name, program);
      }
    }
  return known;
}

interface Words {
  readonly call: Invocation;
  readonly options: Options;
  readonly text: string;
  readonly operands: string;
}

type Holds = (words: Words) => boolean;

function judgement(entry: Program, lists: Lists, code: NamedCode): KnownProgram['judge'] {
  const rules = (entry.rules ?? []).map((rule) => ({ rule, holds: ruleHolds(rule, lists, code) }));
  const takes = new Set([...expanded(entry.takes ?? [], lists), ...(entry.writes ?? [])]);
  return (call) => {
    const options = parseOptions(call.args, takes);
    const runs = given(entry.runs, options, entry.takes);
    if (runs !== undefined) return danger(call, `${runs} runs or loads another program`);
    const filter = secretFilter(entry, call, options);
    if (filter !== null) return danger(call, `picks files with secrets by ${filter}`);
    const words = wordsOf(call, options);
    const outcome = rules.find(({ holds }) => holds(words))?.rule ?? entry;
    if (outcome.danger !== undefined && outcome.code === undefined) return danger(call, outcome.danger);
    return decided(entry, outcome, call, options, code);
  };
}

function wordsOf(call: Invocation, options: Options): Words {
  return {
    call,
    options,
    text: call.args.map(({ text }) => text).join(' '),
    operands: options.operands.map(({ text }) => text).join(' '),
  };
}

/** Judges a call that no rule alone calls dangerous. The files that it writes come first. */
function decided(
  entry: Program,
  outcome: RuleOutcome,
  call: Invocation,
  options: Options,
  { codes }: NamedCode,
): readonly Finding[] {
  const files = valuesOfAny(options, entry.writes ?? []);
  const behind = entry.inputs === undefined ? [] : options.operands.slice(entry.inputs);
  const found = [
    ...[...files, ...behind].flatMap((arg) => writeTo(arg, call)),
    ...likeAnother(outcome, call, options),
    ...(codes[outcome.code ?? '']?.(call, entry, options) ?? []),
    ...(outcome.danger === undefined ? [] : danger(call, outcome.danger)),
  ];
  if (found.length > 0) return found;
  return outcome.sends === true ? sendsWords(call) : judgeReading(entry, call, options);
}

function likeAnother({ like }: RuleOutcome, call: Invocation, { operands }: Options): readonly Finding[] {
  if (like === undefined) return [];
  const verb = operands[0];
  const rest = verb === undefined ? [] : call.args.slice(call.args.indexOf(verb) + 1);
  return call.scan.programs.get(like)?.judge({ ...call, args: rest }) ?? [];
}

/** Returns the first of `names` that was given. `takes` are separate options: `--type` is not a beginning of
 * `--type-add`. */
function given(
  names: readonly string[] | undefined,
  options: Options,
  takes: readonly string[] = [],
): string | undefined {
  if (names === undefined) return undefined;
  const flags = options.flags.filter((flag) => !takes.includes(flag.name));
  return names.find((name) => has({ ...options, flags }, name));
}

function ruleHolds(rule: CommandRule, lists: Lists, code: NamedCode): Holds {
  const own = conditionHolds(rule, lists, code);
  const also = rule.also ? conditionHolds(rule.also, lists, code) : () => true;
  const unless = (rule.unless ?? []).map((condition) => conditionHolds(condition, lists, code));
  return (words) => own(words) && also(words) && !unless.some((holds) => holds(words));
}

/** The position at which the phrases of a list must be in the text, and the text to search. */
const forms = {
  verb: { from: '^(?:', to: ')(?=\\s|$)', of: ({ operands }: Words) => operands },
  alone: { from: '^(?:', to: ')$', of: ({ operands }: Words) => operands },
  operands: { from: '(?:^|\\s)(?:', to: ')(?=\\s|$)', of: ({ operands }: Words) => operands },
  start: { from: '^(?:', to: ')(?=\\s|$)', of: ({ text }: Words) => text },
  whole: { from: '^(?:', to: ')$', of: ({ text }: Words) => text },
  says: { from: '(?:^|\\s)(?:', to: ')(?=\\s|$)', of: ({ text }: Words) => text },
  behind: {
    from: '(?:^|\\s)(?:',
    to: ')(?=\\s|$)',
    of: ({ text }: Words) => text.replace(/^(?:(?:alpha|beta|-\S*)\s+)*\S+\s*/, ''),
  },
} as const;
const formNames = Object.keys(forms) as readonly (keyof typeof forms)[];

function conditionHolds(condition: RuleCondition, lists: Lists, { tests }: NamedCode): Holds {
  const { program, options: names, every, filled, test } = condition;
  const flags = condition.anyCase === true ? 'i' : '';
  const checks: Holds[] = formNames.flatMap((form): Holds[] => {
    const phrases = condition[form];
    if (phrases === undefined) return [];
    const { from, to, of } = forms[form];
    const pattern = new RegExp(from + either(phrases, lists) + to, flags);
    return [(words) => pattern.test(of(words))];
  });
  if (program) checks.push(({ call }) => program.includes(call.name));
  if (names) checks.push(({ options }) => names.some((name) => has(options, name)));
  if (filled) checks.push(({ call }) => call.args.some(({ substitution }) => substitution === 'any'));
  if (test !== undefined) checks.push(({ call, options }) => tests[test]?.(call, options) === true);
  if (every) {
    const pattern = new RegExp(`^(?:${either(every, lists)})$`, flags);
    checks.push(({ call }) => call.args.length > 0 && call.args.every(({ text }) => pattern.test(text)));
  }
  return (words) => checks.every((check) => check(words));
}

/** Code that the tables name. */
export const namedCode: NamedCode = {
  codes: {
    ...archiveCodes,
    ...awkCodes,
    ...builtinCodes,
    ...cloudCodes,
    ...compilerCodes,
    ...fileCodes,
    ...findCodes,
    ...gitCodes,
    ...interpreterCodes,
    ...networkCodes,
    ...packageCodes,
    ...readerCodes,
    ...sedCodes,
    ...serviceCodes,
    ...systemCodes,
    ...wrapperCodes,
  },
  tests: { ...cloudTests, ...gitTests, ...networkTests, ...packageTests },
};

/** The tables of `config/commands`: every program that is known, each in one entry. */
export const commandFiles = [
  readers,
  text,
  files,
  shell,
  starters,
  interpreters,
  git,
  packages,
  network,
  services,
  clouds,
  media,
  system,
  wordLists,
] as readonly CommandTableFile[];

export const commandTables = knownPrograms(commandFiles, namedCode);
