import { Readable, Writable } from 'node:stream';
import { run } from '../../src/cli/run.js';
import type { Finished, Place } from '../e2e/program.js';

export { lines, place, script } from '../e2e/program.js';

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

let before: Promise<unknown> = Promise.resolve();

/** Runs a command line in this process, as `agent` of the end-to-end tests does in one of its own: its environment,
 * directory and streams are those given. One runs at a time. */
export function agent(at: Place, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const finished = before.then(() => runInside(at, args, options));
  before = finished.catch(() => undefined);
  return finished;
}

async function runInside(at: Place, args: readonly string[], options: RunOptions): Promise<Finished> {
  const { env } = process;
  const cwd = process.cwd();
  const streams = ['stdin', 'stdout', 'stderr'].map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  const stdout = collector();
  const stderr = collector();
  process.setMaxListeners(0);
  try {
    process.env = { ...at.env, ...options.env };
    process.chdir(at.work);
    exchange('stdin', Readable.from(options.stdin ? [Buffer.from(options.stdin)] : []));
    exchange('stdout', stdout.stream);
    exchange('stderr', stderr.stream);
    const code = await run(args, null);
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    for (const [name, descriptor] of streams) if (descriptor) Object.defineProperty(process, name, descriptor);
    process.chdir(cwd);
    process.env = env;
  }
}

function exchange(name: string, value: unknown): void {
  Object.defineProperty(process, name, { value, configurable: true, enumerable: true });
}

function collector(): { readonly stream: Writable; text(): string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}
