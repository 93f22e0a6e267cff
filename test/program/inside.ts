import { PassThrough, Readable, Writable } from 'node:stream';
import { run } from '../../src/cli/run.js';
import type { Finished, Place } from '../e2e/program.js';

export { lines, place, script } from '../e2e/program.js';

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Readable;
  /** Given all of standard output so far. */
  readonly onStdout?: (text: string) => void;
}

let before: Promise<unknown> = Promise.resolve();

/** Runs a command line in this process, as `agent` of the end-to-end tests does in one of its own: its environment,
 * directory and streams are those given. One runs at a time. */
export function agent(at: Place, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const given = options.stdin;
  const stdin = given instanceof Readable ? given : Readable.from(given ? [Buffer.from(given)] : []);
  return next(() => runInside(at, args, { ...at.env, ...options.env }, stdin, collector(options.onStdout)));
}

/** A line that is entered, and what stands on the screen when it is done. */
export type Step = readonly [line: string, shows: string | RegExp];

/** The keys to type once a text is on the screen; null is Ctrl-C. A function acts on the screen instead. */
export type Typed = readonly [shows: string | RegExp, types: string | null | ((shown: string) => void)];

/** Runs the REPL line by line on a terminal of 100 columns. Each line is entered once what the one before it shows
 * stands there; the REPL is left behind the last. Rejects with the output where a line does not show its text. */
export async function repl(
  at: Place,
  args: readonly string[],
  steps: readonly Step[],
  options: Pick<RunOptions, 'onStdout'> = {},
): Promise<Finished> {
  const shown = ['❯ ', ...steps.map(([, shows]) => shows)];
  const entered = [...steps.map(([line]) => line), '/exit'];
  const typed = entered.map((line, index): Typed => [shown[index] ?? '', `${line}\n`]);
  return await atTerminal(at, args, typed, { ...options, mustEnd: false });
}

/** Runs a command line on a terminal of 100 columns, and types each text once what stands before it is shown, on
 * either output. Rejects with the output where that is never shown, and, with `mustEnd`, where it had to be ended after
 * 20 s. */
export async function atTerminal(
  at: Place,
  args: readonly string[],
  typed: readonly Typed[],
  { env, onStdout, mustEnd = true }: Pick<RunOptions, 'env' | 'onStdout'> & { readonly mustEnd?: boolean } = {},
): Promise<Finished> {
  const stdin = new PassThrough();
  const left = [...typed];
  let seen = '';
  const look = (text: string): void => {
    seen += text;
    const [shows, types] = left[0] ?? [];
    if (shows === undefined || types === undefined) return;
    if (typeof shows === 'string' ? !seen.includes(shows) : !shows.test(seen)) return;
    left.shift();
    const shown = seen;
    seen = '';
    setImmediate(() => {
      if (typeof types === 'function') types(shown);
      else if (types === null) process.emit('SIGINT', 'SIGINT');
      else stdin.write(types);
    });
  };
  const stdout = collector((text, piece) => {
    onStdout?.(text);
    look(piece);
  });
  const stderr = collector((_text, piece) => {
    look(piece);
  });
  const terminal = { isTTY: true, columns: 100, rows: 30, setRawMode: () => stdin };
  for (const stream of [stdin, stdout.stream, stderr.stream]) Object.assign(stream, terminal);
  let isStuck = false;
  const stuck = setTimeout(() => {
    isStuck = true;
    stdin.write('\n/exit\n');
    process.emit('SIGINT', 'SIGINT');
  }, 20_000);
  const finished = await next(() => runInside(at, args, { ...at.env, TERM: 'dumb', ...env }, stdin, stdout, stderr));
  clearTimeout(stuck);
  if (left.length > 0) throw new Error(`${String(left[0]?.[0])} was not shown:\n${seen}`);
  if (isStuck && mustEnd) throw new Error(`it did not end:\n${seen}`);
  return finished;
}

function next(task: () => Promise<Finished>): Promise<Finished> {
  const finished = before.then(task);
  before = finished.catch(() => undefined);
  return finished;
}

async function runInside(
  at: Place,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  stdin: Readable,
  stdout: Collector,
  stderr = collector(),
): Promise<Finished> {
  const { env } = process;
  const { console } = globalThis;
  const cwd = process.cwd();
  const names = ['stdin', 'stdout', 'stderr'];
  const streams = names.map((name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const);
  process.setMaxListeners(0);
  try {
    process.env = { ...environment };
    process.chdir(at.work);
    exchange('stdin', stdin);
    exchange('stdout', stdout.stream);
    exchange('stderr', stderr.stream);
    const code = await run(args, null);
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    for (const [name, descriptor] of streams) if (descriptor) Object.defineProperty(process, name, descriptor);
    process.chdir(cwd);
    process.env = env;
    globalThis.console = console;
  }
}

function exchange(name: string, value: unknown): void {
  Object.defineProperty(process, name, { value, configurable: true, enumerable: true });
}

interface Collector {
  readonly stream: Writable;
  text(): string;
}

function collector(onText: (text: string, piece: string) => void = () => undefined): Collector {
  const chunks: Buffer[] = [];
  const text = (): string => Buffer.concat(chunks).toString();
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      onText(text(), chunk.toString());
      done();
    },
  });
  return { stream, text };
}
