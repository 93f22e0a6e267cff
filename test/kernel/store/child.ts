import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** A program that holds a store and does what single lines of JSON tell it: a method and its arguments. `flood` appends
 * until it is killed and prints each sequence number once it is acknowledged; `lock` holds the database's write lock
 * until the next line; `index` completes the search index and prints each share that is done, `totals` does so for the totals; `adopt_until` stores a session from elsewhere and kills itself at an event. `tasks.claim` and the like are methods of its tasks. */
const program = `
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { openSqliteStore } from './src/kernel/store/sqlite-store.js';
import { taskTableSet } from './src/features/scheduled-tasks/task-tables.js';
const file = process.argv[2] ?? '';
const say = (value: unknown) => { process.stdout.write(JSON.stringify(value) + '\\n'); };
const options = JSON.parse(process.argv[3] ?? '{}');
const { store, records, notices, tables } = await openSqliteStore({ file, now: Date.now, maxBusyMs: 60_000, ...options });
const raw = new Database(file);
say({ notices });
for await (const line of createInterface({ input: process.stdin })) {
  const [method, ...args] = JSON.parse(line);
  try {
    if (method === 'flood') {
      const [session, content] = args;
      for (let seq = 1; ; seq++) {
        const event = { seq, kind: 'user', content: content + seq, data: { seq }, createdAt: Date.now() };
        await store.append(session, event);
        say(seq);
      }
    }
    else if (method === 'adopt_until') {
      const [row, last, content] = args;
      await store.adopt(row, (function* () {
        for (let seq = 1; seq < last; seq++) yield { seq, kind: 'user', content, data: null, createdAt: 1 };
        process.kill(process.pid, 'SIGKILL');
      })());
    }
    else if (method === 'index') { await records.completeIndex?.((share) => say(share)); say('indexed'); }
    else if (method === 'totals') { await records.totals({}, (share) => say(share)); say('totals'); }
    else if (method === 'lock') { raw.exec('BEGIN IMMEDIATE'); say('locked'); }
    else if (method === 'unlock') { raw.exec('COMMIT'); say('unlocked'); }
    else if (method.startsWith('tasks.')) say((await (await tables(taskTableSet) as any)[method.slice(6)](...args)) ?? null);
    else say((await (store as any)[method](...args)) ?? null);
  } catch (error) { say({ error: (error as any).code, message: (error as Error).message }); }
}
`;

export interface StoreProcess {
  readonly process: ChildProcess;
  /** The next line it prints, parsed. */
  next(): Promise<unknown>;
  /** Sends one command and gives its answer. */
  ask(method: string, ...args: readonly unknown[]): Promise<unknown>;
  tell(method: string, ...args: readonly unknown[]): void;
  /** Ends it and waits until it is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Called at the top of a test file: compiles the program before its tests, and after them kills what still runs and
 * removes it. The result starts the program on a database. */
export function storeProcesses(): (file: string, options?: object) => Promise<StoreProcess> {
  const cache = join(root, 'node_modules/.cache');
  const started: ChildProcess[] = [];
  let folder = '';
  let script = '';
  beforeAll(async () => {
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, 'store-test-'));
    script = join(folder, 'child.mjs');
    await build({
      stdin: { contents: program, resolveDir: root, loader: 'ts', sourcefile: 'child.ts' },
      absWorkingDir: root,
      outfile: script,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      external: ['better-sqlite3'],
      logLevel: 'error',
    });
  });
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  return async (file, options = {}) => {
    const child = spawn(process.execPath, [script, file, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    started.push(child);
    const gone = new Promise<void>((resolve) => {
      child.once('close', () => {
        resolve();
      });
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<unknown> => {
      const line = await lines.next();
      return line.done === true ? undefined : JSON.parse(line.value);
    };
    const tell = (method: string, ...args: readonly unknown[]): void => {
      child.stdin.write(`${JSON.stringify([method, ...args])}\n`);
    };
    await next();
    return {
      process: child,
      next,
      tell,
      ask: (method, ...args) => {
        tell(method, ...args);
        return next();
      },
      end: (signal) => {
        child.kill(signal);
        return gone;
      },
    };
  };
}
