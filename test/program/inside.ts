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

/** Runs the REPL line by line on a terminal of 100 columns. Each line is entered once what the one before it shows
 * stands there; the REPL is left behind the last. Rejects with the output where a line does not show its text. */
export async function repl(
  at: Place,
  args: readonly string[],
  steps: readonly Step[],
  { onStdout }: Pick<RunOptions, 'onStdout'> = {},
): Promise<Finished> {
  const stdin = new PassThrough();
  const left: Step[] = [['', '❯ '], ...steps];
  let from = 0;
  const stdout = collector((text) => {
    onStdout?.(text);
    if (!left[0]) return;
    const [, shows] = left[0];
    const since = text.slice(from);
    if (typeof shows === 'string' ? !since.includes(shows) : !shows.test(since)) return;
    left.shift();
    from = text.length;
    const line = left[0]?.[0] ?? '/exit';
    setImmediate(() => stdin.write(`${line}\n`));
  });
  const terminal = { isTTY: true, columns: 100, rows: 30, setRawMode: () => stdin };
  Object.assign(stdin, terminal);
  Object.assign(stdout.stream, terminal);
  const stuck = setTimeout(() => stdin.write('\n/exit\n'), 20_000);
  const finished = await next(() => runInside(at, args, { ...at.env, TERM: 'dumb' }, stdin, stdout));
  clearTimeout(stuck);
  if (left.length > 0) throw new Error(`${left[0]?.[0]} did not show ${left[0]?.[1]}:\n${finished.stdout.slice(from)}`);
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
): Promise<Finished> {
  const { env } = process;
  const { console } = globalThis;
  const cwd = process.cwd();
  const names = ['stdin', 'stdout', 'stderr'];
  const streams = names.map((name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const);
  const stderr = collector();
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

function collector(onText: (text: string) => void = () => undefined): Collector {
  const chunks: Buffer[] = [];
  const text = (): string => Buffer.concat(chunks).toString();
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      onText(text());
      done();
    },
  });
  return { stream, text };
}
