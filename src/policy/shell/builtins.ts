import { filledFindings, setFindings } from './assignments.js';
import { letFindings } from './expansions.js';
import {
  type Code,
  type Arg,
  change,
  danger,
  type Finding,
  type Invocation,
  isFetched,
  ownProcess,
  pathsOf,
  quoted,
  type Scan,
  unanalysable,
} from './invocation.js';
import { parseOptions, valuesOf } from './command-options.js';
import { writtenFindings } from './project-scripts.js';
import { namesSecret } from './words.js';
import { printsNamesOnly, shellText } from './wrappers.js';

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
  return words.length === 0 ? [] : [...shellText(words, call), ...change(call, 'runs a text')];
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
  return [...shellText([action], call), ...change(call, 'runs a text later')];
}

function source(call: Invocation): readonly Finding[] {
  const file = call.args.find(({ text }) => text !== '--');
  if (!file) return [];
  if (file.dynamic || file.substitution !== 'none' || /^\/dev\/|^\/proc\//.test(file.text))
    return unanalysable(`${call.name} runs what is known only when it runs`);
  if (isFetched(file.text, call.scan)) return danger(call, 'runs what was fetched from the network');
  return [...writtenFindings(file.text, call), ...change(call, 'runs a script')];
}

/** `link/..` is beside the target of the link, wherever that lies. */
export const climbs = /[^./][^/]*\/\.\.(?:\/|$)/;

/** Relative paths after it may start in either folder: the command may fail, and may stand in a branch. */
function changeFolder(call: Invocation): readonly Finding[] {
  const { scan } = call;
  const target = call.args.find(({ text }) => !/^-[LPe@n]+$|^--$/.test(text));
  if (!target) {
    enter(scan.context.home, scan);
    return [];
  }
  if (target.dynamic || target.glob || /^(?:-|[+-]\d+)$/.test(target.text)) scan.lostCwd = true;
  // With -P a `..` behind a link leads to the folder of the link's target.
  if (climbs.test(target.text) && call.args.some(({ text }) => /^-[Le@]*P/.test(text))) scan.wanders = true;
  for (const value of target.values) if (!value.includes('\0') && value !== '-') enter(value, scan);
  return target.dynamic && target.substitution !== 'names'
    ? change(call, 'goes to a folder that is known only when it runs')
    : [];
}

function enter(folder: string, scan: Scan): void {
  for (const path of pathsOf(folder, scan)) if (!scan.cwds.includes(path)) scan.cwds.push(path);
  if (scan.cwds.length <= maxFolders) return;
  scan.findings.push(...unanalysable('it may stand in too many folders'));
  scan.cwds.length = maxFolders;
}

function printenv(call: Invocation): readonly Finding[] {
  const names = call.args.map(({ text }) => text).filter((text) => !text.startsWith('-'));
  if (names.length === 0)
    return printsNamesOnly(call.place.next) ? [] : danger(call, 'prints the environment, which holds keys');
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
  const exports = call.name === 'export' || flags.includes('x');
  if (/[in]/.test(flags) && call.name !== 'export')
    return unanalysable(`${call.name} ${flags} evaluates what it assigns`);
  if (words.length === 0 && !/[fF]/.test(flags) && call.name !== 'local') return dump(call);
  if (flags.includes('p')) return printed(words, call);
  const evaluated = words.some(({ text }) => /^\w+\[(?!\d+\])[^=]*(?:=|$)|^\w*\0/.test(text));
  if (evaluated) return unanalysable('an assignment whose name or index is evaluated');
  const steering = words.flatMap((word) => assigned(word, call));
  return steering.length === 0 && words.length > 0 && exports
    ? change(call, 'changes the environment of later commands')
    : steering;
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
  if (call.args.some(({ text }) => /^-[a-zA-Z]*P|^physical$/.test(text))) call.scan.wanders = true;
  if (/(?:^| )(?:\+o history|-o nohistory|\+H)(?: |$)/.test(call.args.map(({ text }) => text).join(' ')))
    return danger(call, 'keeps what is done out of the history');
  const keyword = call.args.some(({ text }) => /^-[a-zA-Z]*k|^keyword$/.test(text)) && call.args[0]?.text !== '--';
  if (keyword) return danger(call, 'makes words behind a command change its variables');
  return call.args.length === 0 ? dump(call) : [];
}

function shopt(call: Invocation): readonly Finding[] {
  const names = call.args.filter(({ text }) => !text.startsWith('-'));
  if (names.some(({ text }) => text === 'history')) return danger(call, 'keeps what is done out of the history');
  if (names.some(({ text }) => text === 'expand_aliases')) return danger(call, 'lets aliases change what commands run');
  return names.length > 0 && call.args[0]?.text.startsWith('-s') === true
    ? change(call, 'changes how the shell reads')
    : [];
}

function arithmetic(call: Invocation): readonly Finding[] {
  return call.args.flatMap((arg) => letFindings(arg.text, call.scan));
}

function unset(call: Invocation): readonly Finding[] {
  const history = call.args.find(({ text }) => /^HIST\w+$|^PROMPT_COMMAND$/.test(text));
  if (history) return danger(call, 'keeps what is done out of the history');
  const unknown = call.args.some((arg) => arg.dynamic || (arg.text.includes('[') && !/^\w+\[\d+\]$/.test(arg.text)));
  if (unknown) return unanalysable('unset evaluates an index, or drops what is known only when it runs');
  const names = call.args[0]?.text === '-f' ? [] : call.args.flatMap(({ values }) => values);
  const decides = names.some((name) => /^(?:PATH|GIT_CONFIG_\w+)$/.test(name));
  return decides ? danger(call, 'drops what decides where programs are found') : [];
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
  return at < 0 ? [] : [...call.argv(call.args.slice(at + 1)), ...change(call, 'runs a command')];
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
  if (words[0] === '-0' && words.length === 2) return change(call, 'asks whether a process lives');
  const whom = call.args.filter(
    (arg, at) => (!arg.text.startsWith('-') || /^-\d{2,}$/.test(arg.text)) && !/^-[sn]$/.test(words[at - 1] ?? ''),
  );
  const own =
    whom.length > 0 &&
    whom.every(
      (arg) =>
        !arg.dynamic && arg.values.every((text) => /^%[\w+%-]*$/.test(text) || text.replace(/^-/, '') === ownProcess),
    );
  return own && !words.includes('-1')
    ? change(call, 'ends what this command itself has started')
    : danger(call, 'ends processes');
}

function yes(call: Invocation): readonly Finding[] {
  const head = call.place.next?.[0]?.text;
  if (head === 'head') return [];
  return call.place.next === null
    ? danger(call, 'prints without end')
    : change(call, `answers every question of ${quoted(head ?? '')} with yes`);
}
