import { addAll } from '../../core/lists.js';
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { filledFindings, setFindings } from './assignments.js';
import { letFindings } from './expansions.js';
import { climbs } from './listed-commands.js';
import { listedBelow, secretFilter } from './finders.js';
import {
  type Arg,
  type Code,
  danger,
  either,
  type Finding,
  type Invocation,
  isFetched,
  type Options,
  ownProcess,
  pathsOf,
  type Program,
  type OptionScan,
  secretIn,
  unanalysable,
} from './invocation.js';
import { obeyedFindings, writtenFindings } from './simple-command.js';
import { literalArg, namesSecret, parseOptions, unknownArg, valuesOf, valuesOfAny } from './words.js';

export const builtinCodes: Readonly<Record<string, Code>> = {
  arithmetic,
  bracket,
  changeFolder,
  compgen,
  declare,
  evaluate,
  getopts,
  hash,
  jobs,
  kill,
  mapfile,
  printenv,
  printf,
  read,
  set,
  shopt,
  source,
  trap,
  unset,
  wait,
  yes,
};

const maxFolders = 64;

function evaluate(call: Invocation): readonly Finding[] {
  const words = call.args[0]?.text === '--' ? call.args.slice(1) : call.args;
  return shellText(words, call);
}

function trap(call: Invocation): readonly Finding[] {
  const action = call.args.find(({ text }) => !/^-[lpP]?$|^--$/.test(text));
  if (
    !action ||
    action.text === '' ||
    call.args[0]?.text === '-' ||
    call.args[0]?.text === '-l' ||
    call.args[0]?.text === '-p'
  )
    return [];
  return shellText([action], call);
}

function source(call: Invocation): readonly Finding[] {
  const file = call.args.find(({ text }) => text !== '--');
  if (!file) return [];
  if (file.dynamic || file.substitution !== 'none' || /^\/dev\/|^\/proc\//.test(file.text))
    return unanalysable(`${call.name} runs a program that is known only when it runs`);
  if (isFetched(file.text, call.scan)) return danger(call, 'runs a file that was fetched from the network');
  return writtenFindings(file.text, call);
}

/** Relative paths after it may start in either folder: the command may fail, and may stand in a branch. */
function changeFolder(call: Invocation): readonly Finding[] {
  const { scan } = call;
  const target = call.args.find(({ text }) => !/^-[LPe@n]+$|^--$/.test(text));
  if (!target) {
    enter(scan.context.home, scan);
    return [];
  }
  if (target.dynamic || target.glob || /^(?:-|[+-]\d+)$/.test(target.text)) scan.folders.lost = true;
  // With -P a `..` behind a link leads to the folder of the link's target.
  if (climbs.test(target.text) && call.args.some(({ text }) => /^-[Le@]*P/.test(text))) scan.folders.wanders = true;
  for (const value of target.values) if (!value.includes('\0') && value !== '-') enter(value, scan);
  return [];
}

function enter(folder: string, scan: OptionScan): void {
  for (const path of pathsOf(folder, scan)) if (!scan.folders.cwds.includes(path)) scan.folders.cwds.push(path);
  if (scan.folders.cwds.length <= maxFolders) return;
  addAll(scan.findings, unanalysable('it may be in too many folders'));
  scan.folders.cwds.length = maxFolders;
}

function printenv(call: Invocation): readonly Finding[] {
  const names = call.args.map(({ text }) => text).filter((text) => !text.startsWith('-'));
  if (names.length === 0)
    return printsNamesOnly(call.place.next) ? [] : danger(call, 'prints the environment, which contains keys');
  const secret = names.find(namesSecret);
  if (secret !== undefined) return danger(call, `prints the secret variable ${secret}`);
  return call.args.some((arg) => arg.dynamic) ? danger(call, 'prints a variable that is known only when it runs') : [];
}

function declare(call: Invocation): readonly Finding[] {
  const flags = call.args
    .map(({ text }) => text)
    .filter((text) => /^[-+][A-Za-z]/.test(text))
    .join('');
  const words = call.args.filter(({ text }) => !/^[-+]/.test(text));
  if (/[in]/.test(flags) && call.name !== 'export')
    return unanalysable(`${call.name} ${flags} evaluates what it assigns`);
  if (words.length === 0 && !/[fF]/.test(flags) && call.name !== 'local') return dump(call);
  if (flags.includes('p')) return printed(words, call);
  const evaluated = words.some(({ text }) => /^\w+\[(?!\d+\])[^=]*(?:=|$)|^\w*\0/.test(text));
  if (evaluated) return unanalysable('an assignment whose name or index is evaluated');
  return words.flatMap((word) => assigned(word, call));
}

function printed(words: readonly Arg[], call: Invocation): readonly Finding[] {
  return words.some(({ text }) => namesSecret(text)) ? danger(call, 'prints a secret variable') : [];
}

function assigned({ text }: Arg, call: Invocation): readonly Finding[] {
  const at = text.indexOf('=');
  return at < 0 ? setFindings(text, '', call.scan) : setFindings(text.slice(0, at), text.slice(at + 1), call.scan);
}

function dump(call: Invocation): readonly Finding[] {
  return printsNamesOnly(call.place.next) ? [] : danger(call, 'prints every variable, keys among them');
}

function set(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => /^-[a-zA-Z]*P|^physical$/.test(text))) call.scan.folders.wanders = true;
  if (/(?:^| )(?:\+o history|-o nohistory|\+H)(?: |$)/.test(call.args.map(({ text }) => text).join(' ')))
    return danger(call, 'hides commands from the shell history');
  const keyword = call.args.some(({ text }) => /^-[a-zA-Z]*k|^keyword$/.test(text)) && call.args[0]?.text !== '--';
  if (keyword) return danger(call, 'makes words after a command change its variables');
  return call.args.length === 0 ? dump(call) : [];
}

function shopt(call: Invocation): readonly Finding[] {
  const names = call.args.filter(({ text }) => !text.startsWith('-'));
  if (names.some(({ text }) => text === 'history')) return danger(call, 'hides commands from the shell history');
  if (names.some(({ text }) => text === 'expand_aliases')) return danger(call, 'lets aliases change what commands run');
  return [];
}

function arithmetic(call: Invocation): readonly Finding[] {
  return call.args.flatMap((arg) => letFindings(arg.text, call.scan));
}

function unset(call: Invocation): readonly Finding[] {
  const history = call.args.find(({ text }) => /^HIST\w+$|^PROMPT_COMMAND$/.test(text));
  if (history) return danger(call, 'hides commands from the shell history');
  const unknown = call.args.some((arg) => arg.dynamic || (arg.text.includes('[') && !/^\w+\[\d+\]$/.test(arg.text)));
  if (unknown) return unanalysable('unset evaluates an index, or unsets a variable known only when it runs');
  const names = call.args[0]?.text === '-f' ? [] : call.args.flatMap(({ values }) => values);
  const decides = names.some((name) => /^(?:PATH|GIT_CONFIG_\w+)$/.test(name));
  return decides ? danger(call, 'unsets what decides where programs are found') : [];
}

function printf(call: Invocation): readonly Finding[] {
  const [first, second] = call.args;
  if (first?.text.startsWith('-v') !== true) return [];
  const values = first.values.map((value) => value.slice(2));
  const name = first.text === '-v' ? second : { ...first, text: first.text.slice(2), values };
  return name ? filledFindings(name, call.scan) : [];
}

function hash(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) => /^-\w*p/.test(text)) ? danger(call, 'changes which program a name runs') : [];
}

function read(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-a -d -i -n -N -p -t -u');
  return [...options.operands, ...valuesOf(options, '-a')].flatMap((arg) => filledFindings(arg, call.scan));
}

function mapfile(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-d -n -O -s -u -C -c');
  if (valuesOf(options, '-C').length > 0) return unanalysable(`${call.name} -C runs a command`);
  return options.operands.flatMap((arg) => filledFindings(arg, call.scan));
}

function getopts(call: Invocation): readonly Finding[] {
  const words = call.args[0]?.text === '--' ? call.args.slice(1) : call.args;
  return words.slice(1, 2).flatMap((arg) => filledFindings(arg, call.scan));
}

function wait(call: Invocation): readonly Finding[] {
  return valuesOf(parseOptions(call.args, '-p'), '-p').flatMap((arg) => filledFindings(arg, call.scan));
}

/** `jobs -x command` runs the command. */
function jobs(call: Invocation): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => /^-\w*x/.test(text));
  return at < 0 ? [] : call.argv(call.args.slice(at + 1));
}

/** `-v` and `-R` evaluate an index, wherever in the test they stand. */
function bracket(call: Invocation): readonly Finding[] {
  const evaluates = call.args.some((arg, index) => {
    const before = call.args[index - 1]?.text;
    return (before === '-v' || before === '-R') && !/^(?:\w+|[!=]?=|\])$/.test(arg.text);
  });
  return evaluates ? unanalysable(`${call.name} -v evaluates an index`) : [];
}

function compgen(call: Invocation): readonly Finding[] {
  const flags = call.args.map(({ text }) => text).join(' ');
  if (/(?:^| )-[A-Za-z]*[CFW]/.test(flags)) return unanalysable('compgen runs a command');
  return [];
}

function kill(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (words.some((text) => /^-[lL]$/.test(text))) return [];
  if (words[0] === '-0' && words.length === 2) return [];
  const whom = call.args.filter(
    (arg, at) => (!arg.text.startsWith('-') || /^-\d{2,}$/.test(arg.text)) && !/^-[sn]$/.test(words[at - 1] ?? ''),
  );
  const own =
    whom.length > 0 &&
    whom.every(
      (arg) =>
        !arg.dynamic && arg.values.every((text) => /^%[\w+%-]*$/.test(text) || text.replace(/^-/, '') === ownProcess),
    );
  return own && !words.includes('-1') ? [] : danger(call, 'kills processes');
}

function yes(call: Invocation): readonly Finding[] {
  return call.place.next === null ? danger(call, 'prints without end') : [];
}

export const wrapperCodes: Readonly<Record<string, Code>> = { command, env, parallel, started: through, xargs };

/** The words after the wrapper's own options and `skip` words. */
function inside(
  args: readonly Arg[],
  { takes: valued = [], starts }: Pick<Program, 'takes' | 'starts'>,
): readonly Arg[] {
  const takes = new Set(valued);
  let skip = starts?.skip ?? 0;
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

/** Returns true if an option is followed by its value: by its name, by a beginning of it, or as the last letter of a
 * cluster. */
function takesNext(text: string, takes: ReadonlySet<string>): boolean {
  if (takes.has(text)) return true;
  const begins = (name: string): boolean => name.startsWith(text);
  if (text.startsWith('--')) return text.length > 2 && !text.includes('=') && [...takes].some(begins);
  const at = [...text].findIndex((letter, index) => index > 0 && takes.has(`-${letter}`));
  return at > 0 && at === text.length - 1;
}

function through(call: Invocation, program: Program, options: Options): readonly Finding[] {
  const texts = valuesOfAny(options, program.starts?.text ?? []);
  const inner = inside(call.args, program);
  return [
    ...obeyedFindings(call, call.args.slice(0, call.args.length - inner.length)),
    ...texts.flatMap((arg) => shellText([arg], call)),
    ...started(inner, program, call),
  ];
}

/** `watch -x` takes words like any other program, `watch` alone a text. */
function started(inner: readonly Arg[], { starts }: Program, call: Invocation): readonly Finding[] {
  const words = call.name === 'watch' && call.args.some(({ text }) => /^-\w*x|^--exec$/.test(text));
  if (starts?.joins === true && !words) return shellText(inner, call);
  return inner.length > 0 ? call.argv(inner) : [];
}

/** Words that are joined with blanks and given to a shell. */
export function shellText(words: readonly Arg[], call: Invocation): readonly Finding[] {
  if (words.length === 0) return [];
  if (words.some((arg) => arg.dynamic || arg.substitution !== 'none' || arg.glob))
    return unanalysable(`${call.name} runs a text that is known only when it runs`);
  return call.script(words.map(({ text }) => text).join(' '));
}

function command(call: Invocation, program: Program, options: Options): readonly Finding[] {
  return /^-p?[vV]/.test(call.args[0]?.text ?? '') ? [] : through(call, program, options);
}

function env(call: Invocation): readonly Finding[] {
  const { args, place } = call;
  const findings: Finding[] = [];
  for (let i = 0; i < args.length; i++) {
    const text = args[i]?.text ?? '';
    if (/^[A-Za-z_]\w*=/.test(text)) addAll(findings, settingFindings(text, call));
    else if (/^-[a-zA-Z0]*S|^--s/.test(text))
      return [...findings, ...unanalysable(`${call.name} ${text} splits a text into a command`)];
    else if (/^-[a-zA-Z0]*C|^--c/.test(text)) addAll(findings, movedTo(args[i], args[i + 1], call));
    if (takesNext(text, envTakes)) i++;
    else if (/^-|^[A-Za-z_]\w*=/.test(text)) continue;
    else return [...findings, ...call.argv(args.slice(i))];
  }
  if (args.some(({ text }) => /^(?:-i|-|--ignore-environment)$/.test(text))) return findings;
  return printsNamesOnly(place.next) ? [] : danger(call, 'prints the environment, which contains keys');
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
  return setFindings(text.slice(0, at), text.slice(at + 1), call.scan);
}

const plainSearch = new RegExp(`^(?:grep|rg) (?:-\\S+ )?\\^(?:${either(wordLists.lists.plainVariables)})=$`);

/** `| cut -d= -f1` and its like keep the names and drop the values. */
function printsNamesOnly(next: readonly Arg[] | null): boolean {
  const words = next?.map(({ text }) => text).join(' ') ?? '';
  return (
    /^cut (?:-d ?['"]?= ?-f ?1|-f ?1 -d ?=)$/.test(words) ||
    /^sed s\/=\.\*\/\/$/.test(words) ||
    /^awk -F ?= \{ ?print \$1 ?;? ?\}$/.test(words) ||
    /^wc(?: -l)?$/.test(words) ||
    /^grep -[qc]+ \S+$/.test(words) ||
    plainSearch.test(words)
  );
}

/** Judges the command that xargs runs with words that are not known yet. */
function xargs(call: Invocation, program: Program, options: Options): readonly Finding[] {
  const inner = inside(call.args, program);
  const replace = valuesOf(options, '-I', '--replace', '-J').map(({ text }) => text)[0] ?? '{}';
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
  ];
}

const listing = new RegExp(
  '^\\s*(?:find|fd|ls|git ls-files|git diff --name-only|git grep\\s(?:.*\\s)?-\\w*l' +
    '|rg (?:-\\S*l|--files)|grep -\\S*[lL])\\b',
);

/** The words that reach xargs are names printed by a lister. */
function lister(call: Invocation): boolean {
  const { input } = call.place;
  return (
    listing.test(input) &&
    !/^\s*(?:ls\s+(?:-\S+\s+)*-\w*[aA]|(?:fd|rg)\s.*(?:-H\b|--hidden|-u|--no-ignore))/.test(input)
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

function parallel(call: Invocation, program: Program): readonly Finding[] {
  const split = call.args.findIndex(({ text }) => text.startsWith(':::'));
  const inner = inside(split < 0 ? call.args : call.args.slice(0, split), program);
  if (inner.length === 0) return unanalysable(`${call.name} runs its input as commands`);
  return [...call.argv([...inner, unknownArg], { captured: true, piped: false })];
}
