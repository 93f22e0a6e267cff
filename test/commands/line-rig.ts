import { Command } from 'commander';
import { exportGuard, guardedNotes, plainGuard } from '../../src/cli/secrets.js';
import { CliError, type CommandLine, type Settings } from '../../src/commands/command.js';
import { addVerbs } from '../../src/commands/registration.js';
import { table } from '../../src/commands/table.js';
import { loadConfig } from '../../src/config/load.js';
import type { Notes } from '../../src/core/notes.js';
import type { Records, Store } from '../../src/core/store.js';
import type { Tasks } from '../../src/core/tasks.js';
import { openMemoryStore } from '../../src/store/memory-store.js';
import { storedKeys } from './connect/stored.js';
import { createMemoryNotes } from '../../src/store/sets/memory-notes.js';
import { openMemoryTasks } from '../../src/store/sets/memory-tasks.js';

export interface Ran {
  /** Of a `CliError`, its exit code. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface LineRig {
  readonly store: Store & { readonly records: Records };
  readonly tasks: Tasks;
  readonly notes: Notes;
  run(...argv: readonly string[]): Promise<Ran>;
}

/** Runs verbs of the table as the command line does, over a store in memory, in the directory /work/project. */
export async function lineRig(answers: readonly string[] = []): Promise<LineRig> {
  const store = openMemoryStore({ now: Date.now });
  const tasks = openMemoryTasks();
  const notes = guardedNotes({ ...createMemoryNotes(Date.now), passing: false }, { env: {}, secrets: [] });
  const loaded = await loadConfig({ env: { AGENT_HOME: '/nowhere' }, cwd: '/nowhere', home: '/nowhere' });
  const settings: Settings = {
    cwd: '/work/project',
    env: {},
    home: '/nowhere',
    loaded,
    config: loaded.config,
    log: () => undefined,
    guard: plainGuard({}, []),
    ephemeral: false,
    secrets: [],
    keys: await storedKeys(),
  };
  const left = [...answers];
  const run = async (...argv: readonly string[]): Promise<Ran> => {
    const said = { out: '', err: '' };
    let code = -1;
    const line: Partial<CommandLine> = {
      out: {
        print: (text) => {
          said.out += text;
        },
        data: (text) => {
          said.out += text;
        },
        error: (text) => {
          said.err += text;
        },
        ask: () => Promise.resolve(left.shift() ?? ''),
        askHidden: () => Promise.resolve(left.shift() ?? null),
        isTerminal: false,
        canAsk: answers.length > 0,
        screen: {},
      },
      guards: {
        session: () => Promise.resolve(plainGuard({}, [])),
        export: () => Promise.resolve(exportGuard({}, [], '[redacted]')),
      },
      settings: () => Promise.resolve(settings),
      withStore: async (use) =>
        await use({
          store,
          records: store.records,
          tasks: () => Promise.resolve(tasks),
          notes: () => Promise.resolve({ notes, project: settings.cwd }),
          team: () => Promise.reject(new CliError(2, 'there is no team', 'Set store.url.')),
          exchange: () => Promise.reject(new CliError(2, 'there is no team', 'Set store.url.')),
          settings,
          newestHere: () => store.newest(settings.cwd),
          notePlace: () => Promise.resolve({}),
        }),
    };
    const program = new Command('agent').exitOverride();
    await addVerbs(program, table, {
      load: [argv[0] ?? ''],
      line: () => Promise.resolve(line as CommandLine),
      finish: (exitCode) => {
        code = exitCode;
      },
    });
    try {
      await program.parseAsync([...argv], { from: 'user' });
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      code = error.exitCode;
      said.err += `${error.message}\n${error.hint}\n`;
    }
    return { code, ...said };
  };
  return { store, tasks, notes, run };
}
