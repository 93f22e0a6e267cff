import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { isBenignVariable, setFindings } from './assignments.js';
import { listedBelow, secretFilter } from './finders.js';
import {
  type Code,
  type Arg,
  change,
  danger,
  type Finding,
  type Invocation,
  type Options,
  secretIn,
  unanalysable,
} from './invocation.js';
import { valuesOf } from './command-options.js';
import { literalArg, unknownArg } from './words.js';
import { either, type Program } from './programs.js';

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

/** Whether an option is followed by its value: by its name, by a beginning of it, or as the last letter of a
 * cluster. */
function takesNext(text: string, takes: ReadonlySet<string>): boolean {
  if (takes.has(text)) return true;
  const begins = (name: string): boolean => name.startsWith(text);
  if (text.startsWith('--')) return text.length > 2 && !text.includes('=') && [...takes].some(begins);
  const at = [...text].findIndex((letter, index) => index > 0 && takes.has(`-${letter}`));
  return at > 0 && at === text.length - 1;
}

function through(call: Invocation, program: Program, options: Options): readonly Finding[] {
  const { text = [], adds } = program.starts ?? {};
  const texts = valuesOf(options, ...text);
  const inner = inside(call.args, program);
  const starts = inner.length > 0 || texts.length > 0 || call.name === 'script';
  return [
    ...texts.flatMap((arg) => shellText([arg], call)),
    ...started(inner, program, call),
    ...(adds !== undefined && starts ? change(call, adds) : []),
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

const plainSearch = new RegExp(`^(?:grep|rg) (?:-\\S+ )?\\^(?:${either(wordLists.lists.plainVariables)})=$`);

/** `| cut -d= -f1` and its like keep the names and drop the values. */
export function printsNamesOnly(next: readonly Arg[] | null): boolean {
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

/** The command that xargs runs gets words that nobody knows yet. */
function xargs(call: Invocation, program: Program, options: Options): readonly Finding[] {
  const inner = inside(call.args, program);
  const files = valuesOf(options, '-a', '--arg-file');
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
    ...(files.length > 0 ? change(call, 'takes words from a file') : []),
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
  return [
    ...call.argv([...inner, unknownArg], { captured: true, piped: false }),
    ...change(call, 'runs many commands'),
  ];
}
