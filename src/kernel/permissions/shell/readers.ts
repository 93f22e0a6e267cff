import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import {
  type Arg,
  type Code,
  danger,
  either,
  type Finding,
  type Invocation,
  type Options,
  type Program,
  writeTo,
} from './invocation.js';
import { sendsWords } from './questions.js';
import { has, parseOptions, valuesOf, valuesOfAny } from './words.js';

/** Matches programs that print no more of a file than its name, its size or its hash. */
export const printsNames =
  /^(?:echo|printf|basename|dirname|realpath|readlink|ls|stat|du|test|\[|true|md5sum|sha\d+sum)$/;

const gitNames = /^(?:check-ignore|ls-files|status|log|commit|branch|checkout|switch|tag|rm)$/;

export function namesOnly(call: Invocation): boolean {
  const { name, args, place } = call;
  if (name === 'openssl') return printsCertificate(args);
  if (name === 'git') return gitNamesOnly(args);
  if (call.scan.programs.get(name)?.entry.namesOnly !== true) return false;
  if (name === 'find' || name === 'fd')
    return (
      !place.captured &&
      !args.some(
        ({ text }, index) =>
          /^-(?:exec|ok|x|X|delete|-exec|fprint|fls)/.test(text) && !printsNames.test(args[index + 1]?.text ?? ''),
      )
    );
  if (name === 'echo' || name === 'printf' || name === 'command') return !place.piped || name !== 'command';
  return !place.captured;
}

const certificateWord = new RegExp(
  `^-(?:${either(wordLists.lists.certificateOptions)}|sha\\d+)$|^(?:der|pem|DER|PEM|\\d+|[\\w,]+)$`,
);

/** Of a file with a certificate and a key `openssl x509` prints the certificate alone. */
function printsCertificate(args: readonly Arg[]): boolean {
  return (
    /^(?:x509|crl|verify)$/.test(args[0]?.text ?? '') &&
    args.slice(1).every(({ text }) => /\.(?:pem|crt|cer|der|crl)$/.test(text) || certificateWord.test(text))
  );
}

function gitNamesOnly(args: readonly Arg[]): boolean {
  const verb = args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  return gitNames.test(verb) && !args.some(({ text }) => /^-(?:p|u|U\d|L|-patch|-full-diff)/.test(text));
}

/** The words of a search that are a pattern or a program, not a path. */
export function searchText(call: Invocation): ReadonlySet<Arg> {
  const { takes, pattern } = call.scan.programs.get(call.name)?.entry ?? {};
  if (!pattern) return new Set();
  const options = parseOptions(call.args, new Set(takes));
  const given = valuesOfAny(options, pattern);
  const first =
    given.length === 0 && !has(options, '-f', '--file', '--files', '--from-file') ? options.operands.slice(0, 1) : [];
  const filters = options.flags.flatMap(({ name, value }) => (value && filter.test(name) ? [value] : []));
  return new Set([...given, ...first, ...filters, ...call.args.filter(({ text }) => attachedFilter.test(text))]);
}

/** Options of searches whose value is a number, a type or a glob that narrows the search. */
const filter =
  /^-(?:g|A|B|C|m|t|T|r|-glob|-iglob|-include|-exclude|-exclude-dir|-type|-replace|-arg|-argjson|d|s|n|w|b|N|S|a)$/;
const attachedFilter = /^--(?:exclude|exclude-dir|include|regexp)=|^(?:--?(?:glob|iglob|replace)=|-g.).*!/;

/** The filter of a search that picks secret files, or null. */
export function secretFilter({ chooses }: Program, call: Invocation, options: Options): string | null {
  if (!chooses || has(options, '--files')) return null;
  const given = valuesOfAny(options, chooses.options).flatMap(({ values }) => values);
  const filters = given.filter((text) => !text.startsWith('!'));
  return filters.find((text) => call.scan.context.secrets.singlesOut(text, chooses.kind)) ?? null;
}

/** Judges a program that prints files by the files and folders among its words. */
export function judgeReading(entry: Program, call: Invocation, options: Options): readonly Finding[] {
  const recursive = entry.recursive === true || has(options, '-r', '-R', '--recursive');
  return entry.content === true ? wideFindings(call, options.operands, recursive) : [];
}

/** Reading a whole home or system folder reads its secrets too. */
function wideFindings(call: Invocation, operands: readonly Arg[], recursive: boolean): readonly Finding[] {
  const { home, workspace } = call.scan.context;
  const broad = operands.find(
    ({ text }) =>
      recursive &&
      (text === '/' ||
        text === '/etc' ||
        text === '/etc/' ||
        text === '/root' ||
        text === '/home' ||
        text === '/home/' ||
        /^\/(?:proc|var\/lib|var\/log|var\/backups)\/?$/.test(text) ||
        [`${home}/.config`, `${home}/.local`, `${home}/.local/share`, `${home}/Library`, `${home}/.cache`].includes(
          text.replace(/\/+$/, ''),
        ) ||
        (text.replace(/\/+$/, '') === home && home !== workspace)),
  );
  if (broad) return danger(call, `reads everything below ${broad.text}, secrets among it`, [broad.text]);
  const device = operands.find(({ text }) => /^\/dev\/(?!null$|stdin$|zero$|fd\/|urandom$|random$|tty$)/.test(text));
  if (device) return danger(call, `reads the device ${device.text}`, [device.text]);
  const endless =
    operands.some(({ text }) => /^\/dev\/(?:zero|u?random)$/.test(text)) &&
    !/^(?:head|od|xxd|hexdump)$/.test(call.name) &&
    call.place.next?.[0]?.text !== 'head';
  return endless ? danger(call, 'reads without end') : [];
}

function compress(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  const prints =
    has(options, '-l', '--list', '-t', '--test', '-c', '--stdout', '--to-stdout') && !has(options, '-r', '--recursive');
  return prints ? [] : options.operands.flatMap((arg) => writeTo(arg, call));
}

function cowFile(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  return valuesOf(options, '-f').some(({ text }) => /[/.]/.test(text)) ? danger(call, 'loads code') : [];
}

function huntsHiddenOrSteered(call: Invocation, program: Program, options: Options): readonly Finding[] {
  return [...huntsHidden(call, program, options), ...sendsWords(call)];
}

/** A filter of jq, yq and their like, which `-i` of yq applies to the files themselves. */
function envFilter(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  const program = call.args.map(({ text }) => text).join('\n');
  const reads = /\$ENV\b|\benv\b|\bstrenv\b|\benvsubst\b|\bload(?:_\w+)?\b|\binput_filename\b.*\bsystem\b/.test(
    program.replace(/\.env\b|"(?:[^"\\]|\\[^(])*"/g, ''),
  );
  if (reads) return danger(call, 'reads the environment, which contains keys');
  return has(options, '-i', '--inplace', '--in-place') && call.name !== 'jq'
    ? options.operands.flatMap((arg) => writeTo(arg, call))
    : [];
}

/** A search through hidden and ignored files for what secrets are called. */
function huntsHidden(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  const hidden =
    call.args.some(({ text }) => /^-\w*(?:uu|\.)|^--(?:hidden|no-ignore\S*|unrestricted)$|^-\w*H$/.test(text)) ||
    options.flags.filter(({ name }) => name === '-u').length > 1;
  return hidden && call.args.some(({ text }) => /secret|passw|api.?key|token|akia|private.key|credential/i.test(text))
    ? danger(call, 'looks for secrets in hidden files')
    : [];
}

function dateSets(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  if (call.args.some(({ text }) => /^-(?!I)[a-zA-Z]*s/.test(text)) || has(options, '--set'))
    return danger(call, 'sets the clock');
  return options.operands.some(({ text }) => !text.startsWith('+')) ? danger(call, 'sets the clock') : [];
}

/** `ps auxe` and `ps eww` print the environment of every process. */
function psEnvironment(call: Invocation): readonly Finding[] {
  const first = call.args[0]?.text ?? '';
  const shows =
    (/^[a-zA-Z]+$/.test(first) && first.includes('e')) ||
    call.args.some(({ text }) => text === '-E' || /^-?o?.*\benviron\b/.test(text));
  return shows ||
    call.args.slice(1).some(({ text }) => /^[a-z]*e[a-z]*$/.test(text) && /^(?:e|ww?e|eww?|auxe\w*)$/.test(text))
    ? danger(call, 'prints the environment of processes')
    : [];
}

/** The rules for options of readers that the tables cannot express. */
export const readerCodes: Readonly<Record<string, Code>> = {
  compress,
  cowFile,
  dateSets,
  envFilter,
  huntsHidden,
  huntsHiddenOrSteered,
  psEnvironment,
};
