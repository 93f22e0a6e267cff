import { CliError, exit } from '../../commands/cli-error.js';
import type { Themes } from '../../commands/command.js';
import { slashCommands } from '../../commands/registration.js';
import { keepSetting } from '../../commands/settings/kept-setting.js';
import { loadTheme, ownThemes, themeNames } from '../../commands/settings/theme-files.js';
import { table } from '../../commands/table.js';
import type { ModelRef } from '../../core/projection.js';
import type { Log } from '../../core/runtime.js';
import type { QueuedMessage, SessionPort } from '../../core/session-port.js';
import type { Store } from '../../core/store.js';
import { suggestedProvider } from '../../providers/presets.js';
import { reasoningText } from '../../providers/wires/layout.js';
import { walkFiles } from '../../tools/search/file-walk.js';
import type { Command } from '../../ui/command.js';
import type { Greeting, Kept } from '../../ui/repl-options.js';
import { startRepl } from '../../ui/start-repl.js';
import type { ColorDepth, TerminalFacts, ThemeChoice } from '../../ui/theme.js';
import { createGuards, createMachine, createPrinter, settingsRequest } from '../command-line.js';
import { type EarlyFrame, hasColors, hasUnicode, isPlainTerminal, screenStreams } from '../early-frame.js';
import { endingSignals, giveTerminalBackOnCrash, onEndingSignal } from '../ending.js';
import type { RootOptions } from '../options.js';
import { onLostStream, print } from '../print.js';
import { openRun, type Run } from '../session/assemble.js';
import { eventNumber } from '../session/find-session.js';
import { choseOffline, resolveModel } from '../session/open-model.js';
import { type Settings, askForSettings } from '../settings.js';
import { version } from '../version.js';
import { createStatus, openReplSessions, type ReplSessions } from './current-session.js';
import { createHistoryFile, unwritten } from './history-file.js';
import { createOwnRuns, editExternally, runUserShell } from './user-shell.js';

const maxCompletionFiles = 200_000;

/** The REPL from its start to its end; gives the exit code. */
export async function runRepl(
  words: readonly string[],
  options: RootOptions,
  early: EarlyFrame | null,
): Promise<number> {
  const { settings, typed } = await askForSettings(options, early);
  const run = await openRun(settings, options);
  let exitCode: number;
  let left: string | null = null;
  try {
    const resume = typeof options.resume === 'string' ? options.resume : null;
    const sessions = await openReplSessions(run, {
      continueNewest: options.continue === true,
      resume,
      fork: options.fork === true,
      ...eventNumber(options.at),
    });
    try {
      exitCode = await converse(run, sessions, words.join(' ').trim(), { early, typed });
      left = run.ends !== null && sessions.current().session.events().length > 0 ? sessions.current().session.id : null;
    } finally {
      await sessions.close();
    }
  } finally {
    await run.close();
  }
  if (left !== null && exitCode === exit.done) print(`To go on: agent -r ${left.slice(0, 13)}\n`);
  return exitCode;
}

/** What stood on the terminal and what was typed before there was a REPL. */
interface Before {
  readonly early: EarlyFrame | null;
  readonly typed: readonly (Uint8Array | string)[];
}

/** Shows the screen and waits for its end. */
async function converse(run: Run, sessions: ReplSessions, prompt: string, { early, typed }: Before): Promise<number> {
  const { settings, options } = run;
  const mask = (text: string): string => settings.guard.text(text);
  const queue = createQueueKeeper(run.store, settings.log, mask);
  let signalCode: number = exit.done;
  let leave = (): void => {
    /* Nothing is there yet. */
  };
  let interrupted = (): boolean => false;
  // Before the early frame lets go of its own handlers: a signal in between would leave the terminal raw.
  onSignals((code) => {
    if (code === exit.interrupted && interrupted()) return;
    signalCode = code ?? signalCode;
    leave();
  });
  giveTerminalBackOnCrash(settings.log, options.debug === true);
  const theme = await configuredTheme(settings);
  const firstFrame = early?.take() ?? null;
  const kept = createHistoryFile(settings.config.files.history, settings.log, mask);
  const history = options.ephemeral ? unwritten(kept) : kept;
  const status = createStatus(run, sessions);
  const hello =
    sessions.current().session.events().length === 0
      ? greeting(sessions.current().session.ref(), settings.config.provider)
      : null;
  const keep = (key: string, value: string): Promise<Kept> =>
    keepSetting(settings, options.ephemeral === true, key, value);
  const ownCommands = createOwnRuns();
  await new Promise<void>((resolve) => {
    const handle = startRepl({
      ...screenStreams(),
      facts: terminalFacts(settings.env, theme),
      keepSetting: keep,
      tellsDetail: settings.loaded.origins['ui.tool_output'] === undefined,
      clock: () => performance.now(),
      schedule: (callback, delayMs) => {
        const timer = setTimeout(callback, delayMs);
        return () => {
          clearTimeout(timer);
        };
      },
      session: sessions.current().session,
      commands: replCommands(run, sessions, keep),
      history,
      queued: () => queue.take(sessions.current().session),
      files: () => listFiles(run),
      status,
      runShell: (command, shellOptions) => ownCommands.follow(runUserShell(run, sessions, command, shellOptions)),
      editExternally: (text) => editExternally(settings, text),
      suspend: () => {
        process.kill(0, 'SIGSTOP');
      },
      detail: { show: settings.config.ui.toolOutput, maxRows: settings.config.ui.toolOutputRows },
      wrap: settings.config.ui.wrap,
      notify: settings.config.ui.notify,
      keys: settings.config.ui.keys,
      reasoning: settings.config.ui.reasoning,
      reasoningOf: reasoningText,
      ...(settings.config.ui.title && hasTitle(settings.env) ? { title: () => sessions.title() } : {}),
      typed,
      ...(firstFrame ? { firstFrame } : {}),
      ...(hello ? { greeting: hello } : {}),
      ...(prompt === '' ? {} : { prompt }),
      onExit: () => {
        resolve();
      },
    });
    leave = () => {
      handle.exit();
    };
    interrupted = () => handle.interrupt();
    for (const notice of [...run.notices, ...sessions.current().notices]) handle.notice(notice.level, notice.message);
    if (options.resume === true) handle.submit('/sessions');
    sessions.current().model.warm();
  });
  sessions.current().session.interrupt();
  await ownCommands.ended();
  await queue.close();
  await history.settled();
  return signalCode;
}

/** The slash commands, and what they work with. */
function replCommands(
  { settings, options, store, registry, policy, spend }: Run,
  sessions: ReplSessions,
  keep: (key: string, value: string) => Promise<Kept>,
): readonly Command[] {
  const commands = slashCommands(table, {
    sessions,
    store,
    settings,
    registry,
    approval: policy,
    spending: spend,
    resolveModel: (name, current) => resolveModel(settings, name, current),
    keep: async (key, value) => (await keep(key, value)).said,
    line: {
      out: createPrinter(),
      get request() {
        return settingsRequest(options);
      },
      machine: createMachine(() => settingsRequest(options)),
      guards: createGuards(() => Promise.resolve(settings)),
    },
    commands: () => commands,
    themes: createThemes(settings),
  });
  return commands;
}

/** A lost terminal and a kill end the REPL in order: the terminal is given back, the turn interrupted, the store
 * closed. */
function onSignals(ended: (exitCode: number | null) => void): void {
  onEndingSignal((signal) => {
    ended(endingSignals[signal]);
  });
  process.stdin.once('end', () => {
    ended(null);
  });
  onLostStream(() => {
    ended(null);
  });
}

/** The files that `@` completes, as the search tools see them. */
async function listFiles(run: Run): Promise<readonly string[]> {
  const files: string[] = [];
  const stop = new AbortController();
  await walkFiles(
    { root: run.settings.cwd, pattern: '**/*', includeIgnored: false, signal: stop.signal, env: run.settings.env },
    (path) => {
      files.push(path);
      if (files.length >= maxCompletionFiles) stop.abort();
    },
  );
  return files;
}

/** One line, and where no model was found what was looked for and how to connect one. */
export function greeting(
  { provider, model }: ModelRef,
  configured: { readonly provider: string | null; readonly model: string | null },
): Greeting {
  const head = { name: `agent ${version}`, line: ` · ${provider}/${model} · /help` };
  if (provider !== 'offline' || model !== 'offline') return head;
  if (choseOffline(configured)) return head;
  const { name, key, model: suggested } = suggestedProvider();
  return {
    ...head,
    more: [
      'No model is connected. The embedded **offline** provider answers plain requests such as `list **/*.md`, `run ls -la`. To connect one, set a key and start again:',
      '',
      `    export ${key}=…  # agent -m ${name}/${suggested}`,
      '    ollama serve                 # a local model: agent -m ollama/<model>',
      '    agent providers              # the others, and the names of their keys',
    ].join('\n'),
  };
}

/** What is known of the terminal, from the environment alone, and its colours. */
export function terminalFacts(env: NodeJS.ProcessEnv, theme: ThemeChoice): TerminalFacts {
  const colors = hasColors(env) ? colorDepth(env) : 0;
  return {
    unicode: hasUnicode(env),
    colors,
    plain: isPlainTerminal(env),
    theme: colors === 0 ? 'none' : theme,
    synchronized: env.TERM !== 'linux',
    reflows: env.TERM !== 'linux' && !isGnuScreen(env),
    links: knowsLinks(env),
  };
}

/** Terminals that are known to know OSC 8, by what they say of themselves. Inside tmux and screen nothing is known. */
function knowsLinks(env: NodeJS.ProcessEnv): boolean {
  if (env.TMUX || env.STY) return false;
  if (/^(?:iTerm\.app|WezTerm|vscode|ghostty|Hyper|rio)$/.test(env.TERM_PROGRAM ?? '')) return true;
  if (/^(?:xterm-kitty|xterm-ghostty|foot|foot-extra|alacritty|wezterm)$/.test(env.TERM ?? '')) return true;
  return (
    Number(env.VTE_VERSION ?? 0) >= 5_000 || Boolean(env.WT_SESSION) || Number(env.KONSOLE_VERSION ?? 0) >= 201_200
  );
}

/** Whether the terminal has a title that can be given back: the Linux console has none, GNU screen no stack of them. */
export function hasTitle(env: NodeJS.ProcessEnv): boolean {
  return env.TERM !== 'linux' && !isGnuScreen(env);
}

/** tmux calls itself screen as well. */
function isGnuScreen(env: NodeJS.ProcessEnv): boolean {
  return (env.TERM ?? '').startsWith('screen') && (env.TMUX ?? '') === '';
}

function colorDepth(env: NodeJS.ProcessEnv): ColorDepth {
  const bits = screenStreams().output.getColorDepth({ ...env });
  if (bits >= 24) return 16_777_216;
  if (bits >= 8) return 256;
  return bits >= 4 ? 16 : 0;
}

/** One of our own themes by its configured name. */
export function terminalTheme(env: NodeJS.ProcessEnv, name: string): 'dark' | 'light' | 'none' {
  return name === 'auto' ? backgroundTheme(env) : name === 'light' || name === 'none' ? name : 'dark';
}

/** `COLORFGBG` is `foreground;background`; 7 and 15 are light grounds. Dark where nothing is said. */
function backgroundTheme(env: NodeJS.ProcessEnv): 'dark' | 'light' {
  return /;(7|15)$/.test(env.COLORFGBG ?? '') ? 'light' : 'dark';
}

/** The theme that is configured. Throws a `CliError` that names file and key where one of the user's own is wrong. */
export async function configuredTheme({ env, config }: Settings): Promise<ThemeChoice> {
  const name = config.ui.theme;
  if (ownThemes.includes(name)) return terminalTheme(env, name);
  const loaded = await loadTheme(name, config.files);
  if (!loaded.ok) throw new CliError(exit.usage, loaded.problem.message, loaded.problem.hint);
  return loaded.theme;
}

/** The colours of this run, and what `/theme` offers besides our own. */
export function createThemes({ env, config }: Pick<Settings, 'env' | 'config'>): Themes {
  const name = config.ui.theme;
  let current = name === 'auto' ? terminalTheme(env, name) : name;
  return {
    current: () => current,
    chosen: (next) => {
      current = next;
    },
    names: () => themeNames(config.files),
    load: async (wanted, onProblem) => {
      const loaded = await loadTheme(wanted, config.files);
      if (loaded.ok) return loaded.theme;
      onProblem(`${loaded.problem.message}\n${loaded.problem.hint}`);
      return null;
    },
  };
}

/** What is sent or taken back is forgotten this much later, when it stands elsewhere on disk: as an event, or as the
 * draft. */
const forgetDelayMs = 500;

/** Saves the queue of the session that is shown, so that it survives a crash. Failures go to the log: the session goes
 * on. */
export interface QueueKeeper {
  /** Goes over to `session` and gives the texts that wait there since an earlier run, oldest first. */
  take(session: SessionPort): Promise<readonly string[]>;
  /** Writes what is still to be written. */
  close(): Promise<void>;
}

export function createQueueKeeper(store: Store, log: Log, mask: (text: string) => string): QueueKeeper {
  let leave = (): Promise<void> => Promise.resolve();
  const write = (sessionId: string, queue: readonly QueuedMessage[]): Promise<void> =>
    store
      .setQueue(
        sessionId,
        queue.map((message) => ({ ...message, text: mask(message.text) })),
      )
      .catch((error: unknown) => {
        log({ at: 'queue', message: String(error) });
      });

  const follow = (session: SessionPort, before: number): (() => Promise<void>) => {
    let kept = before;
    let latest: readonly QueuedMessage[] = [];
    let timer: NodeJS.Timeout | null = null;
    const save = (): Promise<void> => {
      if (timer) clearTimeout(timer);
      timer = null;
      kept = latest.length;
      return write(session.id, latest);
    };
    const later = (): void => {
      timer ??= setTimeout(() => void save(), forgetDelayMs);
    };
    if (before > 0) later();
    const stop = session.subscribe((event) => {
      if (event.type !== 'queue_changed') return;
      latest = event.queue;
      if (latest.length > kept) void save();
      else later();
    });
    return async () => {
      stop();
      if (timer) await save();
    };
  };

  return {
    take: async (session) => {
      await leave();
      const waiting = await store.queue(session.id).catch((error: unknown): readonly QueuedMessage[] => {
        log({ at: 'queue', message: String(error) });
        return [];
      });
      leave = follow(session, waiting.length);
      return waiting.map((message) => message.text);
    },
    close: () => leave(),
  };
}
