import {
  type Code,
  type Arg,
  change,
  danger,
  type Finding,
  type Invocation,
  pathsOf,
  writeTo,
  type Options,
} from './invocation.js';
import { parseOptions, valuesOf } from './command-options.js';
import { asks } from './steering-files.js';
import { either, type Program } from './programs.js';

export const systemCodes: Readonly<Record<string, Code>> = { getent, graphics, ldd, perf };

const graphicsQuestions = new RegExp(
  `^(?:${[
    '(?:(?:-[LqxuhB]|--(?:help|version|list-gpus|list-excluded-gpus|query|xml-format|dtd|unit|query-[\\w-]+=\\S+)' +
      '|(?:-[di]|--(?:id|display|format))[ =]\\w[\\w,:.-]*)(?: |$))*',
    'topo(?: -[a-z\\d]+| [\\w,:.]+)*',
    'nvlink (?:-[sce]|--(?:status|capabilities|errorcounters))(?: -i \\S+)?',
  ].join('|')})$`,
);

/** nvidia-smi: whatever is no known question sets something of the card. */
function graphics(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const files = valuesOf(parseOptions(call.args, '-f --filename'), '-f', '--filename');
  const noted = files.flatMap((arg) => writeTo(arg, call));
  if (noted.length > 0) return [...noted, ...change(call, 'writes a file')];
  if (words.some((text) => /^-l(?:ms)?$|^--loop/.test(text)) || /^[dp]mon$/.test(words[0] ?? ''))
    return change(call, 'runs until it is stopped');
  const known = graphicsQuestions.test(words.join(' '));
  return known ? asks(call) : danger(call, 'changes the settings of the graphics card');
}

/** `perf stat command`, `perf record command`. */
function perf(call: Invocation): readonly Finding[] {
  const verb = call.args[0]?.text ?? '';
  const at = call.args.findIndex(
    ({ text }, index) =>
      index > 0 && !text.startsWith('-') && !/^-(?:e|o|F|c|g|r|d|I)$/.test(call.args[index - 1]?.text ?? ''),
  );
  return [
    ...(/^(?:stat|record|trace|mem|c2c|lock|kmem)$/.test(verb) && at > 0 ? call.argv(call.args.slice(at)) : []),
    ...change(call, 'observes programs'),
  ];
}

function getent(call: Invocation): readonly Finding[] {
  const database = call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  if (/shadow/.test(database)) return danger(call, 'prints hashes of passwords');
  if (call.place.piped || call.args.some((arg) => arg.dynamic))
    return danger(call, 'carries the output of a command away in a name');
  return /^(?:passwd|group|services|protocols|networks|rpc|initgroups)$/.test(database) ||
    (/^a?hosts(?:v[46])?$/.test(database) && /^(?:localhost|[\w-]+)?$/.test(call.args[1]?.text ?? ''))
    ? []
    : change(call, 'uses the network');
}

export const mediaCodes: Readonly<Record<string, Code>> = { pdfText, shows };

const plainFile = /^[^:|@=%]+$/;

/** A program that shows what a file is, with options that only choose what is shown and operands that are plain
 * files. */
function shows(call: Invocation, { shows: harmless = [] }: Program): readonly Finding[] {
  const pattern = new RegExp(`^(?:${either(harmless)})$`);
  const plain = call.args.every((arg, index) =>
    arg.text.startsWith('-') ? pattern.test(arg.text) : plainFile.test(arg.text) || isFormat(call.args[index - 1]),
  );
  return plain ? asks(call) : change(call, 'is not known to only read');
}

function isFormat(before: Arg | undefined): boolean {
  return before !== undefined && /^-(?:format|show_entries|select_streams|of|print_format|d)$/.test(before.text);
}

function pdfText(call: Invocation): readonly Finding[] {
  return call.args.at(-1)?.text === '-' &&
    call.args.slice(0, -1).every(({ text }) => /^-(?:layout|raw|f|l|enc|nopgbrk|q)$/.test(text) || plainFile.test(text))
    ? asks(call)
    : change(call, 'writes a file of text');
}

export const compilerCodes: Readonly<Record<string, Code>> = { cmake, compiled };

function compiled(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  return valuesOf(options, '-o').flatMap((arg) => writeTo(arg, call));
}

/** `cmake -E` is a set of tools: it deletes, copies and runs. */
function cmake(call: Invocation): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => text === '-E');
  if (at < 0)
    return call.args.some(({ text }) => /^(?:install|--install)$/.test(text))
      ? danger(call, 'installs programs')
      : change(call, 'builds and runs project code');
  const [tool, ...rest] = call.args.slice(at + 1);
  const inner = tools[tool?.text ?? ''];
  if (inner && tool) return call.argv([{ ...tool, text: inner, values: [inner] }, ...rest]);
  return /^(?:remove_directory|rm|remove)$/.test(tool?.text ?? '')
    ? danger(call, 'deletes files')
    : change(call, 'works on files');
}

const tools: Readonly<Record<string, string>> = {
  env: 'env',
  cat: 'cat',
  echo: 'echo',
  rm: 'rm',
  copy: 'cp',
  copy_directory: 'cp',
  rename: 'mv',
  touch: 'touch',
  make_directory: 'mkdir',
  create_symlink: 'ln',
  tar: 'tar',
  time: 'time',
  sleep: 'sleep',
};

function ldd(call: Invocation): readonly Finding[] {
  const { args, scan } = call;
  const ofSystem = (arg: Arg): boolean =>
    !arg.dynamic && pathsOf(arg.text, scan).every((path) => /^\/(?:usr|bin|sbin|lib)/.test(path));
  return args.every((arg) => arg.text.startsWith('-') || ofSystem(arg)) ? [] : change(call, 'may run the program');
}
