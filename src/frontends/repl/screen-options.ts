import { join } from 'node:path';
import { choseOffline } from '../../app/model-resolution.js';
import type { Run } from '../../app/create-session.js';
import { desktop } from '../../kernel/console/announce.js';
import type { Menu } from '../../kernel/console/feature.js';
import { promptStash } from '../../kernel/console/prompt-stash-port.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import type { TerminalPrograms } from '../../kernel/console/terminal-programs-port.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import { isInside } from '../../kernel/permissions/guarded-paths.js';
import { reasoningText } from '../../kernel/providers/wires/pieces.js';
import { walkFiles } from '../../kernel/tools/search/file-walk.js';
import type { ReplHandle, ReplOptions, ReplTerminal } from '../../ui/repl-options.js';
import type { SessionTurns } from '../../ui/session-turns.js';
import type { Status, ReplSessions } from './current-session.js';
import type { ProcessLife } from './process-life.js';
import { createHistoryFile, type HistoryFile, unwritten } from './saved-input.js';
import { type CommandSessions, type Keep, offerPlanTool, replCommands } from './session-commands.js';
import type { Screens } from './screens.js';
import { chosenSign, hasTitle, type TerminalThemes } from './terminal-theme.js';
import { copyProgram, copyWith } from './copied-text.js';
import { editExternally, type OwnRuns, runEditor, type RunsEditor, runUserShell } from './user-shell.js';

const maxCompletionFiles = 200_000;

/** The parts that all screens of a process share. */
export interface Shared {
  readonly run: Run;
  readonly sessions: ReplSessions;
  readonly turns: SessionTurns;
  readonly screens: Screens;
  readonly life: ProcessLife;
  readonly status: Status;
  readonly menus: readonly Menu[];
  readonly keep: Keep;
  readonly ownCommands: OwnRuns;
  /** Takes what waits in the session since an earlier run, once. */
  readonly queued: () => Promise<readonly string[]>;
  /** Opens the past inputs for a screen, which has its own draft. */
  readonly history: () => HistoryFile;
  /** Resolves once what was typed and what waits is on the disk. */
  readonly settled: () => Promise<void>;
}

/** A terminal that shows the session: that of this process, or that of a client. */
export interface TerminalPlace {
  readonly terminal: Pick<
    ReplTerminal,
    'input' | 'output' | 'facts' | 'typed' | 'firstFrame' | 'onGround' | 'job' | 'detach'
  >;
  /** The variables of the terminal and its editor. */
  readonly env: Settings['env'];
  readonly themes: TerminalThemes;
  /** Runs an editor there. */
  readonly runsEditor: RunsEditor;
  /** Runs a command there that needs the terminal. */
  readonly runsProgram: TerminalPrograms['run'] | null;
  /** The sessions, as the commands of this terminal open them. */
  readonly sessions: CommandSessions;
}

/** Returns what a screen on this terminal is made from. */
export function screenOptions(
  shared: Shared,
  place: TerminalPlace,
  history: HistoryFile,
): Omit<ReplOptions, 'opening' | 'onExit'> {
  const { run, sessions, turns, status, menus, keep, ownCommands } = shared;
  const { themes } = place;
  return {
    terminal: { ...place.terminal, ...signsOf(run, sessions, place.env) },
    time: machineClock,
    input: inputOf(shared, place, history),
    printing: printingOf(run.settings),
    session: sessions.shown(),
    turns,
    commands: replCommands(run, place.sessions, { keep, menus, themes }),
    status: status.facts,
    runShell: (command, options) =>
      ownCommands.follow(
        sessions
          .ready()
          .then(() => runUserShell(run, sessions, command, { ...options, runsProgram: place.runsProgram })),
      ),
  };
}

/** Returns the notifications and the title that the program shows beside the screen. */
function signsOf(
  { settings, toolbox }: Run,
  sessions: ReplSessions,
  env: Settings['env'],
): Pick<ReplTerminal, 'notify' | 'tell' | 'title' | 'keepText'> {
  const { config } = settings;
  const all = { ...settings.env, ...env };
  const program = copyProgram(all, process.platform);
  return {
    notify: chosenSign(env, config.ui.notify),
    tell: (said) => void tellPerson(settings, said),
    ...(config.ui.title && hasTitle(env) ? { title: () => sessions.title() } : {}),
    ...(program === null
      ? {}
      : { keepText: (text) => copyWith(program, toolbox, { cwd: settings.cwd, env: all }, text) }),
  };
}

/** Notifies the user as tasks do: by their own program, else by the desktop. */
export async function tellPerson(settings: Settings, said: DesktopNotification): Promise<void> {
  const problem = await desktop(settings)(said);
  if (problem !== null) settings.log({ at: 'ui', message: 'no one was notified', problem });
}

/** Returns the dependencies of the input line. */
function inputOf(
  { run, sessions, menus, queued }: Shared,
  { runsEditor, env }: TerminalPlace,
  history: HistoryFile,
): ReplOptions['input'] {
  const stash = run.toolbox.parts.find(promptStash);
  const { config, cwd } = run.settings;
  return {
    history,
    ...(stash ? { stash } : {}),
    queued,
    files: () => listFiles(run, menus),
    agents: async () =>
      new Map((await Promise.all(menus.map(async (menu) => [...((await menu.agents?.()) ?? [])]))).flat()),
    keys: config.ui.keys,
    bindings: config.ui.bindings,
    editExternally: (text) => editExternally({ config, env, cwd }, text, runsEditor),
    openEditor: async (path) => (await runEditor({ env, cwd }, path, runsEditor)) === 0,
    nextMode: () => {
      run.policy.next();
      offerPlanTool(run, sessions);
    },
    onEmptyLine: () => onEmptyLine(run, sessions.shown()),
    toBackground: () => run.parts.toBackground(sessions.shown().id),
    pictures: run.pictures,
  };
}

/** Returns the command that Enter on the empty line runs while no model is connected, else null. */
function onEmptyLine({ settings }: Run, session: SessionPort): string | null {
  const { provider, model } = session.ref();
  const isUnconnected = provider === 'offline' && model === 'offline' && !choseOffline(settings.config.provider);
  return isUnconnected && session.recent().length === 0 && !session.busy() ? '/login' : null;
}

export const machineClock: ReplOptions['time'] = {
  clock: () => performance.now(),
  schedule: (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** The settings of what is printed of results, prose and reasoning. */
export function printingOf({ guard, config: { ui } }: Settings): Required<ReplOptions['printing']> {
  return {
    detail: { show: ui.toolOutput, maxRows: ui.toolOutputRows },
    wrap: ui.wrap,
    reasoning: ui.reasoning,
    reasoningOf: reasoningText,
    mask: (text) => guard.text(text),
  };
}

/** Opens the past inputs for one screen, which has its own draft. */
export function openHistory({
  config,
  cwd,
  log,
  ephemeral,
  guard,
}: Pick<Settings, 'config' | 'cwd' | 'log' | 'ephemeral' | 'guard'>): HistoryFile {
  const history = createHistoryFile({ path: config.files.history, cwd, log, mask: (text) => guard.text(text) });
  return ephemeral ? unwritten(history) : history;
}

/** Returns what `@` completes: resources of servers, and files as the search tools see them. Those of the working
 * directory are relative, those of added directories absolute. */
async function listFiles({ settings, policy }: Run, menus: readonly Menu[]): Promise<readonly string[]> {
  const files = menus.flatMap((menu) => menu.resources?.() ?? []);
  const stop = new AbortController();
  const list = async (root: string, name: (path: string) => string): Promise<void> => {
    await walkFiles({ root, includeIgnored: false, signal: stop.signal, env: settings.env }, (path) => {
      files.push(name(path));
      if (files.length >= maxCompletionFiles) stop.abort();
    });
  };
  await list(settings.cwd, (path) => path);
  for (const { path: root } of policy.directories())
    if (!isInside(root, settings.cwd)) await list(root, (path) => join(root, path));
  return files;
}

/** Loads the REPL for a terminal: with Ink where there are escape sequences, else line by line. What it gives starts at
 * once; `onExit` is called when it has ended and the terminal is as it was. */
export async function loadRepl(plain: boolean): Promise<(options: ReplOptions) => ReplHandle> {
  if (plain) return (await import('./plain-repl.js')).startPlainRepl;
  return (await import('../../ui/screen-repl.js')).startScreenRepl;
}
