import { createExtraDirectories } from '../../src/kernel/core/directories.js';
import { Command } from 'commander';
import { exportGuard, plainGuard } from '../../src/kernel/secrets/known-secrets.js';
import { guardedNotes } from '../../src/features/memory/guarded-notes.js';
import { CliError, type CommandLine } from '../../src/kernel/console/command.js';
import type { Settings } from '../../src/kernel/console/run-settings.js';
import { addVerbs } from '../../src/kernel/console/registration.js';
import { table } from '../../src/commands/table.js';
import { loadConfig } from '../../src/kernel/config/load.js';
import type { Notes } from '../../src/features/memory/notes.js';
import type { Records, Store } from '../../src/kernel/core/store.js';
import type { Tasks } from '../../src/features/scheduled-tasks/tasks.js';
import { openMemoryStore } from '../../src/kernel/store/memory-store.js';
import { storedKeys } from '../kernel/secrets/stored.js';
import { createMemoryNotes } from '../../src/features/memory/memory-notes.js';
import { openMemoryTasks } from '../../src/features/scheduled-tasks/memory-tasks.js';
import type { Tables } from '../../src/kernel/store/tables.js';
import { projects } from '../../src/app/project-files.js';

interface Ran {
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

/** The folders of a command line. */
interface LinePlace {
  readonly home: string;
  readonly cwd: string;
  /** The folder of the user's own files. */
  readonly own: string;
}

const nowhere: LinePlace = { home: '/nowhere', cwd: '/work/project', own: '/nowhere' };

/** Runs verbs of the table as the command line does, over a store in memory. Without answers there is no terminal. */
export async function lineRig(answers: readonly string[] = [], at: LinePlace = nowhere): Promise<LineRig> {
  const store = openMemoryStore({ now: Date.now });
  const tasks = openMemoryTasks();
  const notes = guardedNotes({ ...createMemoryNotes(Date.now), passing: false }, { env: {}, secrets: [] });
  const loaded = await loadConfig({ env: { AGENT_HOME: at.own }, cwd: at.home, home: at.home });
  const settings: Settings = {
    cwd: at.cwd,
    env: {},
    home: at.home,
    loaded,
    config: loaded.config,
    projects,
    commandNames: [],
    directories: createExtraDirectories([]),
    log: () => undefined,
    guard: plainGuard({}, []),
    ephemeral: false,
    testMode: false,
    notices: [],
    secrets: [],
    keys: { ...(await storedKeys()), ofInstallation: () => Buffer.alloc(32) },
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
        drained: () => Promise.resolve(),
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
          tables: (async ({ name }) => ({ tasks, notes })[name] ?? null) as Tables,
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
