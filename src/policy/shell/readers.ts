import {
  type Arg,
  change,
  danger,
  type Finding,
  has,
  type Invocation,
  type Options,
  parseOptions,
  valuesOf,
  writeTo,
} from './invocation.js';
import { type Reader, readerTable } from './reader-table.js';

export const readers: ReadonlyMap<string, Reader> = new Map(
  Object.entries(readerTable).flatMap(([names, reader]) => names.split(' ').map((name) => [name, reader] as const)),
);

/** Only prints names, words or sizes: a secret path among its words gives nothing away, unless its output goes on to
 * what acts on it. */
const namers = new Set([
  'tr',
  'seq',
  'expr',
  'ls',
  'eza',
  'exa',
  'lsd',
  'stat',
  'test',
  '[',
  'echo',
  'printf',
  'basename',
  'dirname',
  'realpath',
  'readlink',
  'du',
  'which',
  'find',
  'fd',
  'tree',
  'pwd',
  'cd',
  'pushd',
  'true',
  'false',
  ':',
  'mkdir',
  'export',
  'unset',
  'chmod',
  'type',
  'command',
  'namei',
  'locate',
]);

/** What tells no more of a file than its name or its size. */
export const printsNames =
  /^(?:echo|printf|basename|dirname|realpath|readlink|ls|stat|du|test|\[|true|md5sum|sha\d+sum)$/;

const gitNames = /^(?:check-ignore|ls-files|status|log|commit|branch|checkout|switch|tag|rm)$/;

export function namesOnly(call: Invocation): boolean {
  const { name, args, place } = call;
  if (name === 'openssl') return printsCertificate(args);
  if (name === 'git') return gitNamesOnly(args);
  if (!namers.has(name)) return false;
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

/** Of a file with a certificate and a key `openssl x509` prints the certificate alone. */
function printsCertificate(args: readonly Arg[]): boolean {
  return (
    /^(?:x509|crl|verify)$/.test(args[0]?.text ?? '') &&
    args
      .slice(1)
      .every(
        ({ text }) =>
          /\.(?:pem|crt|cer|der|crl)$/.test(text) ||
          /^-(?:in|noout|text|subject|issuer|dates|enddate|startdate|serial|fingerprint|sha\d+|hash|purpose|email|ext|inform|nameopt|modulus|pubkey|checkend|CAfile|untrusted|verbose|ocsp_uri|certopt)$|^(?:der|pem|DER|PEM|\d+|[\w,]+)$/.test(
            text,
          ),
      )
  );
}

function gitNamesOnly(args: readonly Arg[]): boolean {
  const verb = args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  return gitNames.test(verb) && !args.some(({ text }) => /^-(?:p|u|U\d|L|-patch|-full-diff)/.test(text));
}

/** The words of a search that are a pattern or a program, not a path. */
export function searchText(call: Invocation): ReadonlySet<Arg> {
  const reader = readers.get(call.name);
  if (!reader?.pattern || (call.name === 'find' && !call.place.captured)) return new Set();
  const options = parseOptions(call.args, reader.takes);
  const given = valuesOf(options, ...reader.pattern.split(' '));
  const first =
    given.length === 0 && !has(options, '-f', '--file', '--files', '--from-file') ? options.operands.slice(0, 1) : [];
  const filters = options.flags.flatMap(({ name, value }) => (value && filter.test(name) ? [value] : []));
  return new Set([...given, ...first, ...filters, ...call.args.filter(({ text }) => attachedFilter.test(text))]);
}

/** Options of searches whose value is a number, a type or a glob that narrows the search. */
const filter =
  /^-(?:g|A|B|C|m|t|T|r|-glob|-iglob|-include|-exclude|-exclude-dir|-type|-replace|-arg|-argjson|d|s|n|w|b|N|S|a)$/;
const attachedFilter = /^--(?:exclude|exclude-dir|include|regexp)=|^(?:--?(?:glob|iglob|replace)=|-g.).*!/;

/** Options of searches whose value chooses the files that are searched. */
const choosing: Readonly<Record<string, { readonly names: readonly string[]; readonly kind: 'glob' | 'regex' }>> = {
  rg: { names: ['-g', '--glob', '--iglob'], kind: 'glob' },
  ripgrep: { names: ['-g', '--glob', '--iglob'], kind: 'glob' },
  ag: { names: ['-G', '--file-search-regex'], kind: 'regex' },
  ...Object.fromEntries(
    ['grep', 'egrep', 'fgrep', 'zgrep'].map((name) => [name, { names: ['--include'], kind: 'glob' as const }]),
  ),
};

/** The filter of a search that picks secret files, or null. */
function secretFilter(call: Invocation, options: Options): string | null {
  const chooses = choosing[call.name];
  if (!chooses || has(options, '--files')) return null;
  const given = valuesOf(options, ...chooses.names).flatMap(({ values }) => values);
  const filters = given.filter((text) => !text.startsWith('!'));
  return filters.find((text) => call.scan.context.secrets.singlesOut(text, chooses.kind)) ?? null;
}

/** Judges a program that reads, by the table of what its options may do beside. */
export function judgeReader(reader: Reader, call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, [reader.takes, reader.output].filter(Boolean).join(' '));
  const deadly = given(reader.deadly, options, reader.takes);
  if (deadly !== undefined) return danger(call, `${deadly} runs or loads another program`);
  const filter = secretFilter(call, options);
  if (filter !== null) return danger(call, `picks files with secrets by ${filter}`);
  const output = reader.output ? valuesOf(options, ...reader.output.split(' ')) : [];
  const written = output.flatMap((arg) => writeTo(arg, call));
  if (written.length > 0) return written;
  const unsafe = given(reader.unsafe, options, reader.takes);
  if (unsafe !== undefined) return change(call, `${unsafe} does more than read`);
  const extra = reader.extra?.(call, options) ?? [];
  if (extra.length > 0) return extra;
  const wide =
    reader.content === true
      ? wideFindings(call, options.operands, reader.recursive === true || has(options, '-r', '-R', '--recursive'))
      : [];
  return wide.length > 0 ? wide : unknownWords(reader, call);
}

/** `takes` are options of their own: `--type` is no beginning of `--type-add`. */
function given(names: string | undefined, options: Options, takes = ''): string | undefined {
  const own = new Set(takes.split(' '));
  const flags = options.flags.filter((flag) => !own.has(flag.name));
  return names?.split(' ').find((name) => has({ ...options, flags }, name));
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

/** `packages/$p/package.json`: whatever stands in the middle, the name of the file is known, and it is no option. */
function endsPlainly(text: string): boolean {
  return (
    /^[\w.][^\0]*\/.*\/[\w-]+\.\w+$/s.test(text) ||
    /^[\w.][^\0]*\/[^/]*\0\.(?:[cm]?[jt]sx?|md|py|go|rs|java|rb|c|h|css|html)$/s.test(text)
  );
}

function unknownWords(reader: Reader, call: Invocation): readonly Finding[] {
  const unknown = call.args.find((arg) => (arg.dynamic && !endsPlainly(arg.text)) || arg.substitution === 'any');
  if (!unknown || reader.open === true) return [];
  if (unknown.dynamic && unknown.substitution === 'names' && reader.deadly === undefined && reader.output === undefined)
    return [];
  if (unknown.text.startsWith('/dev/fd/')) return [];
  return change(call, 'takes words that are known only when it runs');
}
