import { entriesOf } from '../../core/lists.js';
import fileTables from '../../../../config/commands/files.json' with { type: 'json' };
import { containsWorkspace } from '../guarded-paths.js';
import {
  type Arg,
  comesFromNetwork,
  danger,
  type Finding,
  type Invocation,
  isFetched,
  mayWrite,
  keepFetchedFolder,
  type Options,
  pathsOf,
  writeTo,
  type Code,
} from './invocation.js';
import { has, parseOptions, valuesOf } from './words.js';
import { sendsWords } from './questions.js';

export const fileCodes: Readonly<Record<string, Code>> = {
  chmod,
  chown,
  copy,
  dd,
  destroys,
  each,
  editor,
  editorWindow,
  gio,
  lastWritten,
  link,
  move,
  patch,
  remove,
  removeFolder,
  tee,
};

function destroys(call: Invocation): readonly Finding[] {
  return danger(
    call,
    'destroys its arguments',
    targets(parseOptions(call.args, '-s -n -l -o --size --iterations --length --offset').operands, call),
  );
}

function targets(operands: readonly Arg[], call: Invocation): readonly string[] {
  const { cwd, home } = { cwd: call.scan.folders.cwds.at(-1) ?? '/', home: call.scan.context.home };
  const last =
    call.scan.folders.cwds.length > 1
      ? operands.flatMap((arg) => arg.values.flatMap((value) => pathsOf(value, call.scan)))
      : operands.flatMap((arg) =>
          arg.values.map(
            (value) =>
              pathsOf(value, {
                ...call.scan,
                folders: { ...call.scan.folders, cwds: [cwd] },
                context: { ...call.scan.context, home },
              })[0] ?? value,
          ),
        );
  return [...new Set(last)].map((path) => path.replaceAll('\0', '…')).slice(0, 20);
}

function remove(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args);
  const found = targets(options.operands, call);
  if (has(options, '-r', '-R', '--recursive')) return danger(call, 'deletes recursively', found);
  if (has(options, '--no-preserve-root')) return danger(call, 'disables a safeguard', found);
  if (options.operands.some((arg) => arg.dynamic))
    return danger(call, 'deletes files that are known only when it runs', found);
  if (options.operands.some((arg) => arg.glob)) return danger(call, 'deletes by a pattern', found);
  return lost(options.operands, call, found);
}

/** Judges the deletion or removal of files: outside the workspace, or of a protected file, it is dangerous. */
function lost(operands: readonly Arg[], call: Invocation, found: readonly string[]): readonly Finding[] {
  const { scan } = call;
  if (scan.folders.lost) return danger(call, 'deletes in a folder that is known only when it runs', found);
  for (const path of operands.flatMap((arg) => arg.values.flatMap((value) => pathsOf(value, scan)))) {
    scan.files.writes.add(path);
    if (/\/\.git\//.test(path)) return danger(call, `removes a part of the repository: ${path}`, [path]);
    if (scan.context.isProtected(path)) return danger(call, `removes the protected file ${path}`, [path]);
    if (containsWorkspace(path, scan.context))
      return danger(call, `removes ${path}, which contains the workspace`, [path]);
    if (!mayWrite(path, scan.context)) return danger(call, `removes ${path}, outside the workspace`, [path]);
  }
  return [];
}

function removeFolder(call: Invocation): readonly Finding[] {
  const { operands } = parseOptions(call.args);
  return lost(operands, call, targets(operands, call));
}

function gio(call: Invocation): readonly Finding[] {
  return call.args[0]?.text === 'trash' ? [] : danger(call, 'accesses files through the desktop');
}

function destination(options: Options): { readonly to: Arg | undefined; readonly from: readonly Arg[] } {
  const named = valuesOf(options, '-t', '--target-directory')[0];
  return named
    ? { to: named, from: options.operands }
    : { to: options.operands.at(-1), from: options.operands.slice(0, -1) };
}

const copyTakes = '-t -S --target-directory --suffix -m -o -g --mode --owner --group';

function copy(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, copyTakes);
  if (call.name === 'install' && valuesOf(options, '-m', '--mode').some(({ text }) => setsId(text)))
    return danger(call, 'sets the user id bit');
  const { to, from } = destination(options);
  if (!to) return [];
  const wide = from.find(
    (arg) => isHomeOrRoot(arg, call) && has(options, '-r', '-R', '-a', '--recursive', '--archive'),
  );
  if (wide) return danger(call, `copies everything below ${wide.text}, secrets among it`);
  const device = from.find(({ text }) => /^\/dev\/(?!null$)/.test(text));
  if (device) return danger(call, `copies the device ${device.text}`);
  return into(to, from, call);
}

/** Judges a write to a name, or below a folder of that name. */
function into(to: Arg, from: readonly Arg[], call: Invocation): readonly Finding[] {
  const below = from.slice(0, 8).map((arg) => {
    const text = `${to.text.replace(/\/+$/, '')}/${arg.text.replace(/\/+$/, '').replace(/^.*\//, '')}`;
    return { ...to, text, values: [text], substitution: arg.substitution };
  });
  return [to, ...below].flatMap((arg) => writeTo(arg, call)).slice(0, 2);
}

function isHomeOrRoot(arg: Arg, call: Invocation): boolean {
  const { home, workspace } = call.scan.context;
  return arg.values.some(
    (value) =>
      value === '/' ||
      value === '/etc' ||
      value === '/root' ||
      value === '/home' ||
      (value.replace(/[/.*]+$/, '') === home && home !== workspace),
  );
}

function move(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, copyTakes);
  const { to, from } = destination(options);
  if (!to) return [];
  if (to.text === '/dev/null') return danger(call, 'moves files to /dev/null', targets(from, call));
  const away = from.length > 0 ? lost(from, call, targets(from, call)) : [];
  return [...away, ...into(to, from, call)];
}

function link(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-t -S --target-directory --suffix');
  const named = valuesOf(options, '-t', '--target-directory')[0];
  const [source, ...rest] = options.operands;
  const to = named ?? rest.at(-1);
  if (source && isHomeOrRoot(source, call))
    return danger(call, `makes ${source.text} look like a part of the workspace`);
  const hard =
    !has(options, '-s', '--symbolic') &&
    source &&
    pathsOf(source.text, call.scan).some((path) => !mayWrite(path, call.scan.context));
  if (hard) return danger(call, 'makes a hard link to a file outside the workspace');
  return to ? into(to, options.operands.slice(0, -1), call) : [];
}

function each(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-m -d -r -t --mode --date --reference');
  if (call.name === 'mkdir' && valuesOf(options, '-m', '--mode').some(({ text }) => setsId(text)))
    return danger(call, 'sets the user id bit');
  return options.operands.flatMap((arg) => writeTo(arg, call));
}

function tee(call: Invocation): readonly Finding[] {
  const { operands } = parseOptions(call.args);
  if (comesFromNetwork(call.place.input))
    for (const arg of operands) for (const path of pathsOf(arg.text, call.scan)) call.scan.files.fetched.add(path);
  for (const arg of operands) for (const path of pathsOf(arg.text, call.scan)) call.scan.files.written.set(path, null);
  return operands.filter((arg) => !arg.text.startsWith('/dev/fd/')).flatMap((arg) => writeTo(arg, call));
}

function lastWritten(call: Invocation): readonly Finding[] {
  const options = parseOptions(
    call.args,
    '-a -b -C -l -n -t --filter --bytes --lines --number --suffix-length --additional-suffix',
  );
  if (has(options, '--filter')) return danger(call, '--filter runs a shell command');
  const prefix = options.operands[1];
  return prefix ? writeTo(prefix, call) : [];
}

function dd(call: Invocation): readonly Finding[] {
  const output = call.args.find(({ text }) => text.startsWith('of='));
  const input = call.args.find(({ text }) => text.startsWith('if='))?.text.slice(3) ?? '';
  if (output || /^\/dev\/(?!zero|null|urandom|random)/.test(input))
    return danger(
      call,
      'copies raw data',
      output
        ? targets(
            [{ ...output, text: output.text.slice(3), values: output.values.map((value) => value.slice(3)) }],
            call,
          )
        : [],
    );
  return input.startsWith('/dev/') && !call.args.some(({ text }) => text.startsWith('count='))
    ? danger(call, 'copies without end')
    : [];
}

function setsId(mode: string): boolean {
  return /^0?[2467][0-7]{3}$/.test(mode) || /[ug,+=a]*[+=][rwxXt]*s/.test(mode);
}

function chmod(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => text.startsWith('--ref'))) return danger(call, 'copies the mode of another file');
  const { operands, flags } = parseOptions(
    call.args.map((arg) => (/^-[rwxst]+$/.test(arg.text) ? { ...arg, text: `a${arg.text}` } : arg)),
  );
  const [mode, ...files] = operands;
  const wrong = mode ? modeProblem(mode) : null;
  if (wrong !== null) return danger(call, wrong);
  const paths = files.flatMap((arg) => pathsOf(arg.text, call.scan));
  if (files.some((arg) => isFetched(arg.text, call.scan))) return danger(call, 'makes a downloaded file executable');
  const recursive = flags.some(({ name }) => name === '-R' || name === '--recursive');
  if (recursive && (files.some((arg) => arg.glob) || paths.some((path) => containsWorkspace(path, call.scan.context))))
    return danger(call, 'changes the mode of everything below');
  return files.flatMap((arg) => writeTo(arg, call));
}

/** `777`, `666`, `o+w`, `a=rw`, `+rw` and their like. */
const worldWritable = /^0?[0-7]*[2367]$|(?:^|,)[ug]*[oa][ugoa]*[+=][rxX]*w|^[+=](?:[rx]+w[rx]*|=?w[rx]+|=w)$|^=w$/;

function modeProblem(mode: Arg): string | null {
  if (mode.dynamic || setsId(mode.text)) return 'sets the user or group id bit';
  if (worldWritable.test(mode.text)) return 'lets everybody write';
  return /^0*$/.test(mode.text) || /^a?-[rwx]*r[rwx]*$/.test(mode.text) ? 'takes away access' : null;
}

function chown(call: Invocation): readonly Finding[] {
  return danger(call, 'changes the owner of files', targets(parseOptions(call.args).operands.slice(1), call));
}

function patch(call: Invocation): readonly Finding[] {
  const options = parseOptions(
    call.args,
    '-p -i -o -d -r -F -B -z -D -V -g --strip --input --output --directory --reject-file',
  );
  const where = valuesOf(options, '-o', '-d', '-r', '--output', '--directory', '--reject-file');
  return [
    ...where.flatMap((arg) => writeTo(arg, call)),
    ...options.operands.slice(0, 1).flatMap((arg) => writeTo(arg, call)),
  ];
}

/** Editors wait for a terminal, and their commands reach a shell. */
function editor(call: Invocation): readonly Finding[] {
  const commands = call.args.some(
    ({ text }) =>
      /^-[a-zA-Z]*[cS]$/.test(text) ||
      /^(?:\+.|-c$|--cmd$|-S$|-s$|-u$|-es?$|--eval|-eval|-f$|-l$|--load|--script|--batch|-batch)/.test(text),
  );
  const input = call.place.piped || call.place.input.trim() !== '';
  return commands || input
    ? danger(call, 'runs commands of the editor')
    : parseOptions(call.args).operands.flatMap((arg) => writeTo(arg, call));
}

function editorWindow(call: Invocation): readonly Finding[] {
  return call.args.length === 1 && /^--(?:list-extensions|status)$/.test(call.args[0]?.text ?? '')
    ? []
    : danger(call, 'opens another program');
}

export const archiveCodes: Readonly<Record<string, Code>> = { ar, cpio, sevenZip, tar, unzip, zip };

const tarTakes = new Set(entriesOf(fileTables.lists.tarTakes));

/** The first word of tar may be a cluster without a dash. */
function undashed(args: readonly Arg[]): readonly Arg[] {
  const [first, ...rest] = args;
  if (!first || first.text.startsWith('-') || !/^[a-zA-Z]+$/.test(first.text)) return args;
  const letters = first.text;
  const taking = [...letters].filter((letter) => tarTakes.has(`-${letter}`));
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
  const deadly = entriesOf(fileTables.lists.tarDangers).find((name) => has(options, name));
  if (deadly !== undefined) return danger(call, `${deadly} runs another program or writes outside the folder`);
  if (valuesOf(options, '-f', '--file').some(({ text }) => text.includes(':') && !has(options, '--force-local')))
    return danger(call, 'reaches another machine');
  if (call.args.some((arg) => arg.dynamic || (arg.glob && /^\*$/.test(arg.text)))) return [];
  const notes = [...valuesOf(options, '-g', '--index-file', '--volno-file'), ...snapshots(call)];
  const noted = notes.flatMap((arg) => writeTo(arg, call));
  if (noted.length > 0) return noted;
  if (has(options, '-t', '--list') && !has(options, '-x', '-c', '-r', '-u', '--extract', '--create', '--delete'))
    return [];
  const { home } = call.scan.context;
  const wide = options.operands.find(
    ({ text }) => text.replace(/\/+$/, '') === home || text === '/' || text === '/etc',
  );
  if (wide && !has(options, '-x', '--extract'))
    return danger(call, `packs everything below ${wide.text}, secrets among it`);
  if (has(options, '-O', '--to-stdout') && has(options, '-x', '--extract')) return sendsWords(call);
  keepUnpacked(options, call);
  const where = has(options, '-x', '--extract', '--get')
    ? valuesOf(options, '-C', '--directory', '--one-top-level')
    : valuesOf(options, '-f', '--file').filter(({ text }) => text !== '-');
  return where.flatMap((arg) => writeTo(arg, call));
}

/** `--listed-incremental`, of which `--list` is not a beginning. */
function snapshots({ args }: Invocation): readonly Arg[] {
  return args.flatMap((arg, index) => {
    if (!/^--list(?:ed|e)/.test(arg.text)) return [];
    const value = /=(.*)$/s.exec(arg.text)?.[1];
    return value === undefined ? args.slice(index + 1, index + 2) : [{ ...arg, text: value, values: [value] }];
  });
}

/** Remembers the folder of an archive from the network as fetched. */
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
  return valuesOf(options, '-d').flatMap((arg) => writeTo(arg, call));
}

function zip(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, '-b -n -P -t -TT -i -x');
  if (
    call.args.some(
      ({ text }) => /^-(?:T|TT|m)$|^--(?:test|unzip-command|move)/.test(text) || /^-[a-zA-Z]*[Tm]/.test(text),
    )
  )
    return danger(call, 'runs a test command or removes the files that it packed');
  const archive = options.operands[0];
  return archive ? writeTo(archive, call) : [];
}

function sevenZip(call: Invocation): readonly Finding[] {
  const verb = call.args[0]?.text ?? '';
  if (verb === 'l' || verb === 't') return [];
  const where = call.args
    .filter(({ text }) => text.startsWith('-o'))
    .map((arg): Arg => ({ ...arg, text: arg.text.slice(2), values: arg.values.map((value) => value.slice(2)) }));
  return [
    ...where.flatMap((arg) => writeTo(arg, call)),
    ...(verb === 'd' || call.args.some(({ text }) => text === '-sdel') ? danger(call, 'deletes') : []),
  ];
}

function cpio(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) => /rsh-command|absolute-filenames|^-[a-z]*[FIO]/.test(text))
    ? danger(call, 'runs a program or writes outside the folder')
    : [];
}

function ar(call: Invocation): readonly Finding[] {
  return /^-?[tp]/.test(call.args[0]?.text ?? '') && !call.args.some(({ text }) => /^--|^@/.test(text)) ? [] : [];
}
