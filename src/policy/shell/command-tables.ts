import clouds from '../../../config/commands/clouds.json' with { type: 'json' };
import files from '../../../config/commands/files.json' with { type: 'json' };
import git from '../../../config/commands/git.json' with { type: 'json' };
import interpreters from '../../../config/commands/interpreters.json' with { type: 'json' };
import media from '../../../config/commands/media.json' with { type: 'json' };
import network from '../../../config/commands/network.json' with { type: 'json' };
import packages from '../../../config/commands/packages.json' with { type: 'json' };
import readers from '../../../config/commands/readers.json' with { type: 'json' };
import services from '../../../config/commands/services.json' with { type: 'json' };
import shell from '../../../config/commands/shell.json' with { type: 'json' };
import starters from '../../../config/commands/starters.json' with { type: 'json' };
import system from '../../../config/commands/system.json' with { type: 'json' };
import text from '../../../config/commands/text.json' with { type: 'json' };
import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { builtinCodes, wrapperCodes } from './builtins-and-wrappers.js';
import { archiveCodes, fileCodes } from './file-programs.js';
import { findCodes } from './finders.js';
import { gitCodes, gitTests } from './git.js';
import { interpreterCodes } from './interpreters.js';
import {
  change,
  type CommandFile,
  type Condition,
  danger,
  either,
  expanded,
  type Finding,
  type Invocation,
  type KnownProgram,
  type KnownPrograms,
  type NamedCode,
  type Options,
  type Outcome,
  type Program,
  type Rule,
  writeTo,
} from './invocation.js';
import { networkCodes, networkTests } from './network-programs.js';
import { cloudCodes, cloudTests, compilerCodes, mediaCodes, serviceCodes, systemCodes } from './other-programs.js';
import { packageCodes, packageTests } from './packages.js';
import { judgeReading, readerCodes, secretFilter } from './readers.js';
import { awkCodes, sedCodes } from './sed-and-awk.js';
import { asks, asksRepository, asksTool } from './steering-files.js';
import { has, parseOptions, valuesOf } from './words.js';

/** Makes the tables, by the name of the program. Rules are compiled when a program is first judged. Throws if two
 * entries name the same program. */
export function knownPrograms(files: readonly CommandFile[], code: NamedCode): KnownPrograms {
  const known = new Map<string, KnownProgram>();
  for (const { programs, lists = {} } of files)
    for (const entry of programs) {
      let judge: KnownProgram['judge'] | undefined;
      const program = { entry, judge: (call: Invocation) => (judge ??= judgement(entry, lists, code))(call) };
      for (const name of entry.names) {
        if (known.has(name)) throw new Error(`two entries hold the program ${name}`);
        known.set(name, program);
      }
    }
  return known;
}

type Lists = NonNullable<CommandFile['lists']>;

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
    if (outcome.risk === 'dangerous' && outcome.code === undefined) return danger(call, outcome.reason ?? '');
    return milder(entry, outcome, call, options, code);
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

/** Judges a call that no rule calls dangerous. The files that it writes come first. */
function milder(
  entry: Program,
  outcome: Outcome,
  call: Invocation,
  options: Options,
  code: NamedCode,
): readonly Finding[] {
  const files = valuesOf(options, ...(entry.writes ?? []));
  const behind = entry.inputs === undefined ? [] : options.operands.slice(entry.inputs);
  const written = [...files, ...behind].flatMap((arg) => writeTo(arg, call));
  if (written.length > 0)
    return outcome.risk === 'read-only' ? written : [...written, ...decided(entry, outcome, call, options, code)];
  const changes = given(entry.changes, options, entry.takes);
  if (changes !== undefined) return change(call, `${changes} does more than read`);
  return decided(entry, outcome, call, options, code);
}

function decided(
  entry: Program,
  outcome: Outcome,
  call: Invocation,
  options: Options,
  { codes }: NamedCode,
): readonly Finding[] {
  const found = [...likeAnother(outcome, call, options), ...(codes[outcome.code ?? '']?.(call, entry, options) ?? [])];
  switch (outcome.risk) {
    case undefined:
      return outcome.code === undefined && outcome.like === undefined
        ? change(call, 'is not known to only read')
        : found;
    case 'dangerous':
      return [...found, ...danger(call, outcome.reason ?? '')];
    case 'mutating':
      return found.some(({ risk }) => risk === 'dangerous') ? found : [...found, ...change(call, outcome.reason ?? '')];
    case 'read-only':
      return found.length > 0 ? found : answer(entry, outcome, call, options);
    default:
      outcome.risk satisfies never;
      return found;
  }
}

function likeAnother({ like }: Outcome, call: Invocation, { operands }: Options): readonly Finding[] {
  if (like === undefined) return [];
  const verb = operands[0];
  const rest = verb === undefined ? [] : call.args.slice(call.args.indexOf(verb) + 1);
  return call.scan.programs.get(like)?.judge({ ...call, args: rest }) ?? [];
}

function answer(entry: Program, { asks: place }: Outcome, call: Invocation, options: Options): readonly Finding[] {
  switch (place) {
    case undefined:
      return judgeReading(entry, call, options);
    case 'machine':
      return [];
    case 'service':
      return asks(call);
    case 'tool':
      return asksTool(call);
    case 'repository':
      return asksRepository(call);
    default:
      place satisfies never;
      return [];
  }
}

/** `takes` are options of their own: `--type` is no beginning of `--type-add`. */
function given(
  names: readonly string[] | undefined,
  options: Options,
  takes: readonly string[] = [],
): string | undefined {
  if (names === undefined) return undefined;
  const flags = options.flags.filter((flag) => !takes.includes(flag.name));
  return names.find((name) => has({ ...options, flags }, name));
}

function ruleHolds(rule: Rule, lists: Lists, code: NamedCode): Holds {
  const own = conditionHolds(rule, lists, code);
  const also = rule.also ? conditionHolds(rule.also, lists, code) : () => true;
  const unless = (rule.unless ?? []).map((condition) => conditionHolds(condition, lists, code));
  return (words) => own(words) && also(words) && !unless.some((holds) => holds(words));
}

/** How a list of phrases stands in the text that it is held against. */
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

function conditionHolds(condition: Condition, lists: Lists, { tests }: NamedCode): Holds {
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
  if (names) checks.push(({ options }) => has(options, ...names));
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
    ...mediaCodes,
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
] as readonly CommandFile[];

export const commandTables = knownPrograms(commandFiles, namedCode);
