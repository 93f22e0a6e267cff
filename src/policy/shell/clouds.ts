import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { isInside } from '../guarded-paths.js';
import {
  change,
  danger,
  pathsOf,
  type Code,
  type Finding,
  type Invocation,
  type Test,
  type Options,
} from './invocation.js';
import { parseOptions, valuesOf } from './command-options.js';
import type { Program } from './programs.js';
import { asks, wordsOf } from './steering-files.js';

/** What the tables of clouds, containers and forges cannot say. */
export const cloudCodes: Readonly<Record<string, Code>> = { forgeQuestion, inspect, runImage };
export const cloudTests: Readonly<Record<string, Test>> = { asksOneField, isUnknown, mountsMachine };

/** `--query Runtime`: one field that is no setting of the service. */
function asksOneField({ args }: Invocation): boolean {
  const given = args.map(({ text }, index) =>
    /^--query$/.test(args[index - 1]?.text ?? '') ? text : /^--query=(.*)$/s.exec(text)?.[1],
  );
  const harmless =
    /^[\w.[\]*]*(?:Name|Arn|Id|Runtime|Version|Status|State|Handler|MemorySize|Timeout|LastModified|CodeSize)\]?$/;
  return given.some((field) => field !== undefined && harmless.test(field));
}

/** An operand is known only when it runs. */
function isUnknown(_call: Invocation, { operands }: Options): boolean {
  return operands.some((arg) => arg.dynamic);
}

const hunts = /pass|secret|token|key|cred/i;

/** All of a container's settings hold its environment, and that its passwords. */
function inspect(call: Invocation): readonly Finding[] {
  const text = wordsOf(call.args);
  if (hunts.test(wordsOf(call.place.next ?? [])))
    return danger(call, 'looks for secrets in the settings of a container');
  if (/(?:-f|--format)\b/.test(text))
    return /\.Env\b|json \.(?:Config)?\s*}}|\.Config\s*}}|range/.test(text)
      ? danger(call, 'prints the environment of a container')
      : asks(call);
  return call.args.some(({ text: word }) => word.startsWith('--type='))
    ? asks(call)
    : change(call, 'prints the settings of a container, its environment among them');
}

const library = new Set(wordLists.lists.imageLibrary);

/** An image of the library (`node:20`) in a container that sees nothing of the machine but the workspace. */
function runImage(call: Invocation, program: Program): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => text === 'run') + 1;
  const options = parseOptions(call.args.slice(at), new Set(program.takes));
  const [image] = options.operands;
  const plain = image && !image.dynamic && library.has(image.text.replace(/:[\w.-]+$/, ''));
  const sources = valuesOf(options, '-v', '--volume')
    .map(({ text }) => text.split(':')[0] ?? '')
    .filter((source) => /[/.~\0]/.test(source));
  const outside = sources.some(
    (source) =>
      source.includes('\0') || !pathsOf(source, call.scan).every((path) => isInside(path, call.scan.context.workspace)),
  );
  if (
    !plain ||
    outside ||
    options.flags.some(({ name }) => /^--(?:mount|env-file|volumes-from|gpus|restart|userns|uts|ipc|cgroup)/.test(name))
  )
    return danger(call, 'runs, removes, enters or publishes containers');
  return mountsMachine(call)
    ? danger(call, 'gives a container the machine')
    : change(call, 'runs an image of the library');
}

/** The words give a container rights on the machine, or a folder of it outside the workspace. */
function mountsMachine(call: Invocation): boolean {
  const words = call.args.map(({ text }) => text);
  return words.some(
    (text, index) =>
      /^(?:--privileged|--cap-add|--device|--pid|--net(?:work)?=host|--security-opt|--ipc|--userns)/.test(text) ||
      (text === 'host' && /^--net(?:work)?$/.test(words[index - 1] ?? '')) ||
      (/^\/[^:]*:/.test(text) &&
        !pathsOf(text.split(':')[0] ?? '', call.scan).every((path) => isInside(path, call.scan.context.workspace))),
  );
}

/** A question to a forge; `--jq` may read the environment, `--web` opens a program. */
function forgeQuestion(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const isValue = (index: number): boolean => /^(?:-q|--jq)$/.test(words[index - 1] ?? '');
  const attached = (text: string): string | undefined => /^(?:-q|--jq=)(.+)$/s.exec(text)?.[1];
  const programs = words.flatMap((text, index) => (isValue(index) ? [text] : (attached(text) ?? [])));
  const environment = programs.some((text) => /\$ENV\b|(?<!\.)\benv\b/.test(text.replace(/"(?:[^"\\]|\\[^(])*"/g, '')));
  if (environment) return danger(call, 'reads the environment, which holds keys');
  if (
    words.some((text) => /^--(?:web|watch)$/.test(text) || (text === '-w' && words[0] !== 'run')) ||
    words[1] === 'watch'
  )
    return change(call, 'opens a program or runs until it is stopped');
  return asks(call);
}
