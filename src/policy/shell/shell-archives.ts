import { change, danger, writeTo } from './shell-findings.js';
import { comesFromNetwork, isFetched, keepFetchedFolder } from './shell-fetched.js';
import { has, parseOptions, valuesOf, type Options } from './shell-options.js';
import { asks } from './shell-queries.js';
import type { Arg, Finding, Handler, Invocation } from './shell-types.js';

export const archiveHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['tar', tar],
  ['bsdtar', tar],
  ['gtar', tar],
  ['unzip', unzip],
  ['zip', zip],
  ['7z', sevenZip],
  ['7za', sevenZip],
  ['unrar', sevenZip],
  ['cpio', cpio],
  ['pax', cpio],
  ['ar', ar],
]);

const tarTakes =
  '-f -C -T -X -I -F -b -g -H -K -L -N -V -W --file --directory --files-from --exclude --exclude-from --strip-components --transform --xform --wildcards-match --index-file --volno-file --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command --owner --group --mode --mtime --one-top-level';
const tarDeadly = [
  '-I',
  '-F',
  '--use-compress-program',
  '--to-command',
  '--checkpoint-action',
  '--info-script',
  '--new-volume-script',
  '--rsh-command',
  '--rmt-command',
  '-P',
  '--absolute-names',
  '--absolute-paths',
  '--recursive-unlink',
  '--unlink-first',
  '--remove-files',
];

/** The first word of tar may be a cluster without a dash. */
function undashed(args: readonly Arg[]): readonly Arg[] {
  const [first, ...rest] = args;
  if (!first || first.text.startsWith('-') || !/^[a-zA-Z]+$/.test(first.text)) return args;
  const letters = first.text;
  const taking = [...letters].filter((letter) => tarTakes.split(' ').includes(`-${letter}`));
  const values = rest.slice(0, taking.length);
  const flags = [...letters].map((letter): Arg => ({ ...first, text: `-${letter}`, values: [`-${letter}`] }));
  const ordered = flags.flatMap((flag) => {
    const at = taking.indexOf(flag.text.slice(1));
    const value = values[at];
    return value ? [flag, value] : [flag];
  });
  return [...ordered, ...rest.slice(taking.length)];
}

function tar(call: Invocation): readonly Finding[] {
  const options = parseOptions(undashed(call.args), tarTakes);
  const deadly = tarDeadly.find((name) => has(options, name));
  if (deadly !== undefined) return danger(call, `${deadly} runs another program or leaves the folder`);
  if (valuesOf(options, '-f', '--file').some(({ text }) => text.includes(':') && !has(options, '--force-local')))
    return danger(call, 'reaches another machine');
  if (call.args.some((arg) => arg.dynamic || (arg.glob && /^\*$/.test(arg.text))))
    return [...change(call, 'takes words that are known only when it runs')];
  const notes = [...valuesOf(options, '-g', '--index-file', '--volno-file'), ...snapshots(call)];
  const noted = notes.flatMap((arg) => writeTo(arg, call));
  if (noted.length > 0) return [...noted, ...change(call, 'writes down what it sees')];
  if (has(options, '-t', '--list') && !has(options, '-x', '-c', '-r', '-u', '--extract', '--create', '--delete'))
    return [];
  const { home } = call.scan.context;
  const wide = options.operands.find(
    ({ text }) => text.replace(/\/+$/, '') === home || text === '/' || text === '/etc',
  );
  if (wide && !has(options, '-x', '--extract'))
    return danger(call, `packs everything below ${wide.text}, secrets among it`);
  if (has(options, '-O', '--to-stdout') && has(options, '-x', '--extract')) return asks(call);
  keepUnpacked(options, call);
  const where = has(options, '-x', '--extract', '--get')
    ? valuesOf(options, '-C', '--directory', '--one-top-level')
    : valuesOf(options, '-f', '--file').filter(({ text }) => text !== '-');
  return [...where.flatMap((arg) => writeTo(arg, call)), ...change(call, 'packs or unpacks files')];
}

/** `--listed-incremental`, of which `--list` is no beginning. */
function snapshots({ args }: Invocation): readonly Arg[] {
  return args.flatMap((arg, index) => {
    if (!/^--list(?:ed|e)/.test(arg.text)) return [];
    const value = /=(.*)$/s.exec(arg.text)?.[1];
    return value === undefined ? args.slice(index + 1, index + 2) : [{ ...arg, text: value, values: [value] }];
  });
}

/** What is unpacked from the network is fetched as a whole. */
function keepUnpacked(options: Options, call: Invocation): void {
  if (!has(options, '-x', '--extract', '--get')) return;
  const fetched =
    comesFromNetwork(call.place.input) ||
    valuesOf(options, '-f', '--file').some(({ text }) => isFetched(text, call.scan));
  if (fetched) keepFetchedFolder(valuesOf(options, '-C', '--directory')[0]?.text ?? '.', call.scan);
}

function unzip(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-d -x -P');
  if (has(options, '-:')) return danger(call, 'may write outside the folder');
  if (has(options, '-l', '-v', '-Z', '-t', '-p', '-z') && !has(options, '-d')) return [];
  if (options.operands.some(({ text }) => isFetched(text, call.scan)))
    keepFetchedFolder(valuesOf(options, '-d')[0]?.text ?? '.', call.scan);
  return [...valuesOf(options, '-d').flatMap((arg) => writeTo(arg, call)), ...change(call, 'unpacks files')];
}

function zip(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-b -n -P -t -TT -i -x');
  if (
    call.args.some(
      ({ text }) => /^-(?:T|TT|m)$|^--(?:test|unzip-command|move)/.test(text) || /^-[a-zA-Z]*[Tm]/.test(text),
    )
  )
    return danger(call, 'runs a test command or removes what it packed');
  const archive = options.operands[0];
  return [...(archive ? writeTo(archive, call) : []), ...change(call, 'packs files')];
}

function sevenZip(call: Invocation): readonly Finding[] {
  const verb = call.args[0]?.text ?? '';
  if (verb === 'l' || verb === 't') return [];
  const where = call.args
    .filter(({ text }) => text.startsWith('-o'))
    .map((arg): Arg => ({ ...arg, text: arg.text.slice(2), values: arg.values.map((value) => value.slice(2)) }));
  return [
    ...where.flatMap((arg) => writeTo(arg, call)),
    ...(verb === 'd' || call.args.some(({ text }) => text === '-sdel')
      ? danger(call, 'deletes')
      : change(call, 'packs or unpacks files')),
  ];
}

function cpio(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) => /rsh-command|absolute-filenames|^-[a-z]*[FIO]/.test(text))
    ? danger(call, 'runs a program or leaves the folder')
    : change(call, 'packs or unpacks files');
}

function ar(call: Invocation): readonly Finding[] {
  return /^-?[tp]/.test(call.args[0]?.text ?? '') && !call.args.some(({ text }) => /^--|^@/.test(text))
    ? []
    : change(call, 'changes an archive');
}
