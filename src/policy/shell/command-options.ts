import type { Arg, Flag, Options } from './invocation.js';

/** `withValue` lists the options that take a value, parted by blanks: `-n --lines`. Letters after such an option in one
 * cluster are its value. */
export function parseOptions(args: readonly Arg[], withValue: string | ReadonlySet<string> = ''): Options {
  const takes = namesIn(withValue);
  const flags: Flag[] = [];
  const operands: Arg[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (!arg) break;
    const { text } = arg;
    if (text === '--') {
      operands.push(...args.slice(i + 1));
      break;
    }
    if (text.length < 2 || !text.startsWith('-')) operands.push(arg);
    else if (text.startsWith('--')) {
      flags.push(longFlag(arg, takes.has(text) || abbreviates(text, takes) ? args[i + 1] : undefined));
      if (takes.has(text)) i++;
    } else if (cluster(arg, takes, args[i + 1], flags)) i++;
  }
  return { flags, operands };
}

function namesIn(names: string | ReadonlySet<string>): ReadonlySet<string> {
  return typeof names === 'string' ? new Set(names.split(' ')) : names;
}

/** `--outp` may stand for `--output`: what follows it counts as its value and as an operand. */
function abbreviates(text: string, takes: ReadonlySet<string>): boolean {
  return text.length > 2 && [...takes].some((name) => name.startsWith(text));
}

function longFlag(arg: Arg, next: Arg | undefined): Flag {
  const equals = arg.text.indexOf('=');
  return equals < 0
    ? { name: arg.text, value: next ?? null }
    : { name: arg.text.slice(0, equals), value: tail(arg, equals + 1) };
}

/** True where the option at the end of the cluster took the next word. */
function cluster(arg: Arg, takes: ReadonlySet<string>, next: Arg | undefined, flags: Flag[]): boolean {
  const { text } = arg;
  if (takes.has(text)) {
    flags.push({ name: text, value: next ?? null });
    return true;
  }
  for (let at = 1; at < text.length; at++) {
    const name = `-${text[at]}`;
    if (!takes.has(name)) {
      flags.push({ name, value: null });
      continue;
    }
    const last = at === text.length - 1;
    flags.push({ name, value: last ? (next ?? null) : tail(arg, at + 1) });
    return last;
  }
  return false;
}

function tail(arg: Arg, from: number): Arg {
  return { ...arg, text: arg.text.slice(from), values: arg.values.map((value) => value.slice(from)) };
}

/** Whether one of `names` was given; a long option also by any beginning of it. */
export function has(options: Options, ...names: readonly string[]): boolean {
  return options.flags.some((flag) => names.some((name) => sameFlag(flag.name, name)));
}

/** The values given to any of `names`. */
export function valuesOf(options: Options, ...names: readonly string[]): readonly Arg[] {
  return options.flags.flatMap((flag) =>
    flag.value !== null && names.some((name) => sameFlag(flag.name, name)) ? [flag.value] : [],
  );
}

function sameFlag(given: string, name: string): boolean {
  return (
    given === name || (name.startsWith('--') && given.length > 2 && given.startsWith('--') && name.startsWith(given))
  );
}
