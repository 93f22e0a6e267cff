import type { Repl, Themes } from '../../src/kernel/console/command.js';
import { slashCommands } from '../../src/kernel/console/registration.js';
import { table } from '../../src/commands/table.js';
import type { FirstFrame, InputPort } from '../../src/ui/terminal/streams.js';
import { startPlainRepl } from '../../src/frontends/repl/plain-repl.js';
import type {
  ReplHandle,
  ReplInput,
  ReplOpening,
  ReplOptions,
  ReplPrinting,
  ReplTerminal,
} from '../../src/ui/repl-options.js';
import { createSessionTurns, type SessionTurns } from '../../src/ui/session-turns.js';
import { startScreenRepl } from '../../src/ui/screen-repl.js';
import type { SessionPort } from '../../src/kernel/core/session-port.js';
import type { SlashCommand } from '../../src/kernel/console/slash-command.js';
import type { TerminalFacts } from '../../src/kernel/console/theme.js';
import { createEmulator, type Emulator } from './terminal/terminal-emulator.js';
import { createFakeSession, type FakeSession } from './fake-session.js';

/** What a test says of the REPL, sections put together. */
export type HarnessOptions = Partial<
  Omit<ReplTerminal, 'input'> &
    ReplInput &
    ReplPrinting &
    ReplOpening &
    Pick<ReplOptions, 'session' | 'turns' | 'status' | 'runShell' | 'onExit'> & {
      readonly commands: readonly SlashCommand[];
    }
>;

/** A REPL on an emulated terminal, with a clock and a schedule turned by hand. */
export interface Harness {
  readonly terminal: Emulator;
  readonly session: FakeSession;
  readonly repl: ReplHandle;
  readonly options: ReplOptions;
  readonly exits: () => number;
  readonly raw: () => boolean;
  readonly history: string[];
  type(bytes: string): void;
  /** Moves the clock on, running what was scheduled on the way, in order. */
  tick(milliseconds: number): void;
  /** Lets promises and lazily loaded parts come in, then a frame pass. */
  settle(): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  scheduled(): number;
}

export const facts: TerminalFacts = {
  unicode: true,
  colors: 0,
  theme: 'dark',
  synchronized: true,
  reflows: true,
  plain: false,
};

/** Commands of the table that need nothing but the screen and the session, loaded before anybody types them. */
const names = ['help', 'show', 'copy', 'theme', 'exit'];
const all = table.flatMap(({ entries }) => entries);
const entries = names.flatMap((name) => all.filter(({ slash }) => slash?.[0].split(/[ |]/)[0] === name));
for (const { load } of entries) await load?.();

function screenCommands(
  commands: () => readonly SlashCommand[],
  session: FakeSession,
  themes: Themes = {
    current: () => 'dark',
    folder: () => '/home/themes',
    names: () => [],
    load: async () => null,
    chosen: () => undefined,
  },
  bindings: ReplInput['bindings'] = {},
): readonly SlashCommand[] {
  const context: Partial<Repl> = {
    sessions: { current: () => ({ session }), rename: async () => undefined, open: async () => session } as never,
    commands,
    themes,
    keep: async () => '',
    settings: { config: { ui: { bindings } } } as never,
  };
  return slashCommands([{ heading: null, entries }], context as Repl);
}

export function openRepl(
  options: HarnessOptions & {
    readonly columns?: number;
    readonly rows?: number;
    readonly terminal?: Emulator;
    readonly frame?: FirstFrame;
    readonly themes?: Themes;
    /** False: a terminal that is asked in vain. */ readonly answers?: boolean;
  } = {},
): Harness {
  const columns = options.columns ?? 80;
  const rows = options.rows ?? 24;
  const terminal = options.terminal ?? createEmulator(columns, rows);
  const size = { columns, rows };
  let nowMs = 1_000;
  let timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  let onData: ((chunk: string) => void) | null = null;
  let onResize: (() => void) | null = null;
  let exits = 0;
  let raw = false;
  const history: string[] = [];
  if (options.answers !== false)
    terminal.onReply((reply) => {
      onData?.(reply);
    });
  const input: InputPort = {
    on: (_event, listener) => {
      onData = listener;
    },
    off: () => {
      onData = null;
    },
    setRawMode: (on) => {
      raw = on;
    },
    resume: () => undefined,
    pause: () => undefined,
  };
  const session = (options.session as FakeSession | undefined) ?? createFakeSession();
  const commands: SlashCommand[] = [...(options.commands ?? [])];
  commands.push(...screenCommands(() => commands, session, options.themes, options.bindings));
  const { onExit, ...rest } = options;
  const sections = { history: inputHistory(history), files: async () => completedFiles, ...rest };
  const replOptions: ReplOptions = {
    terminal: {
      facts,
      ...rest,
      input,
      output: options.output ?? {
        write: terminal.write,
        get columns() {
          return size.columns;
        },
        get rows() {
          return size.rows;
        },
        on: (_event, listener) => {
          onResize = listener;
        },
        off: () => {
          onResize = null;
        },
      },
    },
    time: {
      clock: () => nowMs,
      schedule: (callback, delayMs) => {
        const timer = { atMs: nowMs + delayMs, callback };
        timers.push(timer);
        return () => {
          timers = timers.filter((item) => item !== timer);
        };
      },
    },
    input: sections,
    printing: rest,
    opening: rest,
    session,
    turns: options.turns ?? soleTurns(session),
    commands: () => commands,
    status: () => ({
      model: 'offline',
      approval: 'dangerous',
      sandbox: 'off',
      directory: '~/thing',
      branch: 'main',
      contextWindow: 100_000,
    }),
    runShell: async (command, { onOutput }) => {
      onOutput(`ran ${command}\n`);
      return { exitCode: 0 };
    },
    ...(options.status ? { status: options.status } : {}),
    ...(options.runShell ? { runShell: options.runShell } : {}),
    onExit: () => {
      exits++;
      onExit?.();
    },
  };
  const repl = (replOptions.terminal.facts.plain ? startPlainRepl : startScreenRepl)(replOptions);
  const tick = (milliseconds: number): void => {
    const end = nowMs + milliseconds;
    for (;;) {
      const next = timers.filter((timer) => timer.atMs <= end).sort((a, b) => a.atMs - b.atMs)[0];
      if (!next) break;
      timers = timers.filter((timer) => timer !== next);
      nowMs = Math.max(nowMs, next.atMs);
      next.callback();
    }
    nowMs = end;
  };
  return {
    terminal,
    session,
    repl,
    options: replOptions,
    history,
    exits: () => exits,
    raw: () => raw,
    tick,
    type: (bytes) => {
      onData?.(bytes);
    },
    settle: async () => {
      await import('../../src/ui/vim/vim.js');
      for (let i = 0; i < 20; i++)
        await new Promise((done) => {
          setImmediate(done);
        });
      tick(40);
      await terminal.settle();
    },
    resize: async (c, r) => {
      await terminal.resize(c, r);
      size.columns = c;
      size.rows = r;
      onResize?.();
    },
    scheduled: () => timers.length,
  };
}

/** The queue of a session whose screens are all there is of the program. */
export function soleTurns(session: SessionPort, staysOpen: () => boolean = () => false): SessionTurns {
  const nowhere = (): never => {
    throw new Error('no screen');
  };
  return createSessionTurns({
    session,
    alone: {
      commands: () => [],
      context: nowhere,
      runShell: nowhere,
      onSend: (send) => {
        send();
      },
      onFailure: nowhere,
      onIdle: () => undefined,
      onSession: () => undefined,
    },
    staysOpen,
  });
}

const completedFiles = ['src/a.ts', 'src/b.ts', 'docs/my file.md'];

function inputHistory(written: string[]): ReplInput['history'] {
  return {
    load: async () => ['older', 'newest'],
    append: async (text) => {
      written.push(text);
    },
  };
}

/** The screen without empty rows at its end. */
export function shown(terminal: Emulator): string[] {
  const rows = terminal.screen().map((row) => row.trimEnd());
  return rows.slice(0, rows.findLastIndex((row) => row !== '') + 1);
}
