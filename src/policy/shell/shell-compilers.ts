import { change, danger, writeTo } from './shell-findings.js';
import { parseOptions, valuesOf } from './shell-options.js';
import { asks, asksTool } from './shell-queries.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

const compilers = [
  'gcc',
  'g++',
  'cc',
  'c++',
  'clang',
  'clang++',
  'cpp',
  'gfortran',
  'tcc',
  'ld',
  'ld.lld',
  'ld.gold',
  'lld',
  'nvcc',
  'icc',
];

export const compilerHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...compilers.map((name): [string, Handler] => [name, compiler]),
  ['cmake', cmake],
  ['rustc', rustc],
]);

/** Options by which a compiler starts or loads a program of choice. */
const loads =
  /^(?:-wrapper|-B.*|-specs(?:=.*)?|--specs(?:=.*)?|-f(?:pass-)?plugin\b.*|-?-plugin(?:=.*)?|-load|-fuse-ld=.*\/.*|--ld-path.*|-ccbin.*|-I-)$/;
const questions =
  /^(?:--version|-v|-dumpversion|-dumpfullversion|-dumpmachine|-dumpspecs|--help|-print-\S+|--print-\S+|-Q|-###)$/;

function compiler(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => loads.test(text))) return danger(call, 'starts or loads a program of choice');
  if (call.args.length > 0 && call.args.every(({ text }) => questions.test(text))) return asks(call);
  return [
    ...valuesOf(parseOptions(call.args, '-o -I -L -D -l -x -include -isystem -std'), '-o').flatMap((arg) =>
      writeTo(arg, call),
    ),
    ...change(call, 'builds programs'),
  ];
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

function rustc(call: Invocation): readonly Finding[] {
  if (call.args.some(({ text }) => /linker=|^-Z|load-plugins/.test(text)))
    return danger(call, 'starts or loads a program of choice');
  return call.args.length > 0 &&
    call.args.every(({ text }) =>
      /^(?:--version|-V|-vV|--verbose|-v|--print(?:=\S+)?|sysroot|cfg|target-list|host-tuple|--explain|E\d+)$/.test(
        text,
      ),
    )
    ? asksTool(call)
    : change(call, 'builds programs');
}
