import { EventEmitter } from 'node:events';
import { randomUUID } from 'node:crypto';
import { WriteStream } from 'node:tty';
import type { OwnerConnection } from '../../app/live/owner-host.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import type { TerminalPrograms, TerminalRun } from '../../kernel/console/terminal-programs-port.js';
import type { InputPort, OutputPort } from '../../ui/terminal/streams.js';
import type { ReplHandle } from '../../ui/repl-options.js';
import { emptyView } from '../../ui/view.js';
import { shellOf } from '../../kernel/tools/process/shell-file.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import { continuesAs } from './detach.js';
import { shortId } from './short-id.js';
import { openingOf } from './opening.js';
import { loadRepl, screenOptions, type Shared, type TerminalPlace } from './screen-options.js';
import type { CommandSessions } from './session-commands.js';
import { configuredTheme, createThemes, terminalFacts } from './terminal-theme.js';

/** A client that has more than this unread gets nothing until it has read it. */
const mostUnreadBytes = 1024 * 1024;

/** The terminal of a client, as streams of this process. Nothing that the client does or leaves undone throws here. */
class ClientTerminal {
  readonly input: InputPort & { emit(chunk: Uint8Array): void };
  readonly output: OutputPort;
  readonly env: Readonly<Record<string, string>>;
  /** Called when the client has far too much to read, and when it has read it. */
  onPressure: (isFull: boolean) => void = () => undefined;
  /** Called when its terminal was stopped, and when it continues. */
  onPause: (isStopped: boolean) => void = () => undefined;
  readonly #connection: OwnerConnection;
  readonly #events = new EventEmitter();
  readonly #programs = new Map<string, (run: TerminalRun) => void>();
  #size: { readonly columns: number; readonly rows: number };
  /** Keys that came before there was a screen. */
  #early: Uint8Array[] = [];
  #written: string[] = [];
  #rowsAbove: number | null = null;
  #isFull = false;
  #isGone = false;

  constructor(connection: OwnerConnection) {
    const { terminal = { columns: 80, rows: 24, env: {} } } = connection.hello;
    const size = (): { readonly columns: number; readonly rows: number } => this.#size;
    const events = this.#events;
    this.#connection = connection;
    this.#size = terminal;
    this.env = terminal.env;
    this.input = {
      on: (_event, listener) => events.on('data', listener),
      off: (_event, listener) => events.off('data', listener),
      emit: (chunk) => {
        if (!events.emit('data', chunk)) this.#early.push(chunk);
      },
      setRawMode: (on) => {
        this.#send();
        connection.send({ type: 'raw', on });
      },
      resume: () => undefined,
      pause: () => undefined,
    };
    this.output = {
      write: (text) => {
        this.#write(text);
      },
      get columns() {
        return size().columns;
      },
      get rows() {
        return size().rows;
      },
      on: (_event, listener) => events.on('resize', listener),
      off: (_event, listener) => events.off('resize', listener),
      onFrame: (rowsAbove) => {
        this.#rowsAbove = rowsAbove;
      },
    };
    connection.onMessage((message) => {
      this.#take(message);
    });
    connection.onDrain(() => {
      if (!this.#isFull) return;
      this.#isFull = false;
      this.onPressure(false);
    });
    connection.onClose(() => {
      this.#isGone = true;
      for (const end of this.#programs.values()) end({ exitCode: null, output: null });
    });
  }

  takeEarly(): readonly Uint8Array[] {
    return this.#early.splice(0);
  }

  suspend(): void {
    this.#send();
    this.#connection.send({ type: 'suspend' });
  }

  /** Runs a program on the terminal of the client. */
  async run(
    command: readonly string[],
    place: { readonly cwd: string; readonly env: Readonly<Record<string, string>>; readonly keepsBytes?: number },
    signal?: AbortSignal,
  ): Promise<TerminalRun> {
    if (this.#isGone || signal?.aborted) return { exitCode: null, output: null };
    const ref = randomUUID();
    const end = (): void => {
      this.#connection.send({ type: 'end_program', ref });
    };
    signal?.addEventListener('abort', end, { once: true });
    const ran = await new Promise<TerminalRun>((resolve) => {
      this.#programs.set(ref, resolve);
      this.#send();
      this.#connection.send({ type: 'run', ref, command, ...place });
    });
    signal?.removeEventListener('abort', end);
    this.#programs.delete(ref);
    return ran;
  }

  /** Ends the client, in order. */
  end(message: Parameters<OwnerConnection['send']>[0] & { readonly type: 'end' | 'open' }): void {
    this.#send();
    this.#connection.send(message);
    this.#connection.end();
  }

  #take(message: Readonly<Record<string, unknown>> & { readonly type: string }): void {
    const { type, data, columns, rows } = message;
    switch (type) {
      case 'keys':
        if (typeof data === 'string') this.input.emit(Buffer.from(data, 'base64'));
        break;
      case 'size':
        if (!isCount(columns) || !isCount(rows)) break;
        this.#size = { columns, rows };
        this.#events.emit('resize');
        break;
      case 'pause':
      case 'resume':
        this.onPause(type === 'pause');
        break;
      case 'ran':
        this.#ran(message);
        break;
      default: // A later version may send more.
    }
  }

  #ran({ ref, exitCode, output }: Readonly<Record<string, unknown>>): void {
    if (typeof ref !== 'string') return;
    this.#programs.get(ref)?.({
      exitCode: typeof exitCode === 'number' ? exitCode : null,
      output: typeof output === 'string' ? output : null,
    });
  }

  /** All that is written at once becomes one message. */
  #write(text: string): void {
    if (this.#isGone || this.#connection.unread() > 2 * mostUnreadBytes) return;
    if (this.#written.length === 0)
      queueMicrotask(() => {
        this.#send();
      });
    this.#written.push(text);
  }

  #send(): void {
    const text = this.#written.splice(0).join('');
    if (text === '') return;
    this.#connection.send({
      type: 'screen',
      data: Buffer.from(text, 'utf8').toString('base64'),
      ...(this.#rowsAbove === null ? {} : { rows_above: this.#rowsAbove }),
    });
    if (this.#isFull || this.#connection.unread() <= mostUnreadBytes) return;
    this.#isFull = true;
    this.onPressure(true);
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 10_000;
}

type Leave = (message: Parameters<ClientTerminal['end']>[0]) => void;

/** Opens a screen on the terminal of a client. */
export async function openClientTerminal(shared: Shared, connection: OwnerConnection): Promise<void> {
  const { run, sessions, turns, screens, life, status } = shared;
  const terminal = new ClientTerminal(connection);
  let leaving: Parameters<Leave>[0] | null = null;
  let handle: ReplHandle | null = null;
  const place = await placeOf(shared, terminal, (message) => {
    leaving = message;
    life.lettingGo(() => handle?.exit());
  });
  const start = await loadRepl(place.terminal.facts.plain);
  const options = screenOptions(shared, place, shared.history());
  const opened = screens.open(start, {
    ...options,
    terminal: { ...options.terminal, typed: terminal.takeEarly() },
    opening: openingOf(sessions.shown(), run.settings, '', () => status.facts(emptyView)),
    onExit: () => {
      terminal.end(leaving ?? lastMessage(shared));
      if (turns.isEnded() || life.isClosing()) life.finish();
    },
  });
  handle = opened;
  followTerminal(terminal, opened);
  connection.onClose(() => {
    life.lettingGo(() => {
      opened.exit();
    });
  });
}

/** Pauses the screen while its terminal is stopped, and while it does not read. */
function followTerminal(terminal: ClientTerminal, screen: ReplHandle): void {
  let isStopped = false;
  let isFull = false;
  const change = (): void => {
    if (isStopped || isFull) screen.pause();
    else screen.resume();
  };
  terminal.onPressure = (full) => {
    isFull = full;
    change();
  };
  terminal.onPause = (stopped) => {
    isStopped = stopped;
    change();
  };
}

async function placeOf(shared: Shared, terminal: ClientTerminal, leave: Leave): Promise<TerminalPlace> {
  const { run, sessions } = shared;
  const { config } = run.settings;
  const env = { ...terminal.env };
  const theme = await configuredTheme({ env, config });
  const themes = createThemes({ env, config });
  return {
    terminal: {
      input: terminal.input,
      output: terminal.output,
      facts: terminalFacts(env, theme, (given) => WriteStream.prototype.getColorDepth({ ...given })),
      ...(themes.onGround ? { onGround: themes.onGround } : {}),
      job: stoppedThere(terminal),
      detach: () => {
        leave({ type: 'end', exitCode: 0, detached: true, text: continuesAs(sessions.shown().id) });
        return Promise.resolve(null);
      },
    },
    env,
    themes,
    runsEditor: async (command, cwd) => (await terminal.run(command, { cwd, env: {} })).exitCode,
    runsProgram: programsOf(shared, terminal),
    sessions: openedThere(sessions, (choice) => {
      leave({ type: 'open', arguments: wordsOf(choice) });
    }),
  };
}

/** Returns the last message to a client that leaves. */
function lastMessage({ sessions, turns, life }: Shared): Parameters<ClientTerminal['end']>[0] {
  const { id } = sessions.shown();
  if (life.isClosing()) return { type: 'end', exitCode: 0, detached: false, text: 'The session was ended.' };
  if (turns.isEnded())
    return { type: 'end', exitCode: 0, detached: false, text: `Resume with: agent -r ${shortId(id)}` };
  return { type: 'end', exitCode: 0, detached: true, text: continuesAs(id) };
}

/** Ctrl-Z stops the client, not this process. */
function stoppedThere(terminal: ClientTerminal): NonNullable<TerminalPlace['terminal']['job']> {
  return {
    hasShell: () => true,
    hasTerminal: () => true,
    stop: () => {
      terminal.suspend();
    },
    // The client reports it, however it was stopped.
    onContinue: () => undefined,
  };
}

/** Another session is opened by the process of the client: this one continues with its own. */
function openedThere(sessions: CommandSessions, open: (choice: SessionChoice) => void): CommandSessions {
  return {
    ...sessions,
    open: (choice) => {
      open(choice);
      // The command ends with its screen.
      return new Promise(() => undefined);
    },
  };
}

function wordsOf({ resume, fork, at }: SessionChoice): readonly string[] {
  return [
    ...(resume === null ? [] : ['-r', resume]),
    ...(fork ? ['--fork'] : []),
    ...(at === undefined ? [] : ['--at', String(at)]),
  ];
}

/** Runs commands of the user that need a terminal on that of the client. */
function programsOf({ run: { settings } }: Shared, terminal: ClientTerminal): TerminalPrograms['run'] {
  return async (command, need, signal) => {
    const hidden = new Set(secretVariables(settings.env, ownKeys(settings.config)));
    const kept = Object.entries(settings.env).filter(([name, value]) => value !== undefined && !hidden.has(name));
    const env = { ...(Object.fromEntries(kept) as Record<string, string>), ...terminal.env };
    const { maxOutputBytes } = settings.config.limits;
    const place = { cwd: settings.cwd, env, ...(need === 'asks' ? { keepsBytes: maxOutputBytes } : {}) };
    return await terminal.run([shellOf(settings.env), '-c', command], place, signal);
  };
}
