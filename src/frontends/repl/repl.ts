import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CliError, exit } from '../../kernel/console/command.js';
import { keepSetting } from '../../kernel/console/keep-setting.js';
import { loadSettingsCommands } from '../../commands/settings-table.js';
import type { Event } from '../../kernel/core/event.js';
import { type ModelRef, todoOf } from '../../kernel/core/projection.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import { reasoningText } from '../../kernel/providers/wires/pieces.js';
import { isInside } from '../../kernel/permissions/guarded-paths.js';
import { walkFiles } from '../../kernel/tools/search/file-walk.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import { openingRows } from '../../ui/components/status-line.js';
import type { TerminalFacts } from '../../kernel/console/theme.js';
import { emptyView, totalsOf } from '../../ui/view.js';
import type { StatusFacts } from '../../ui/components/status-line.js';
import { createKeyMap } from '../../ui/editor/keybindings.js';
import type { Greeting } from '../../ui/item-lines.js';
import type { ReplHandle, ReplOptions } from '../../ui/repl-options.js';
import { type EarlyFrame, screenStreams } from '../../ui/early-frame.js';
import { endingSignals, type EndingSignal, giveTerminalBackOnCrash, onEndingSignal } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { chosenSign, configuredTheme, createThemes, hasTitle, terminalFacts } from './terminal-theme.js';
import { version } from '../../kernel/console/version.js';
import { onLostStream, print } from '../../kernel/console/print.js';
import { openRun, type Run } from '../../app/create-session.js';
import { eventNumber } from '../../app/find-session.js';
import { features, provided } from '../../app/features.js';
import { offerImport } from '../../app/offer-import.js';
import { promptStash } from '../../kernel/console/prompt-stash-port.js';
import type { Menu, ReplPart } from '../../kernel/console/feature.js';
import { promptWithImages } from '../../kernel/console/pictures.js';
import { choseOffline } from '../../app/model-resolution.js';
import { askForSettings } from '../../app/settings.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { createStatus, openReplSessions, type ReplSessions } from './current-session.js';
import { type Keep, offerPlanTool, refreshMenus, replCommands } from './session-commands.js';
import { hasTerminal, jobControl } from './job-control.js';
import { createHistoryFile, createSavedQueue, type HistoryFile, unwritten } from './saved-input.js';
import { keepInTmux } from './tmux-buffer.js';
import { createOwnRuns, editExternally, runEditor, runUserShell } from './user-shell.js';
import { unattendedOptions, unattendedRuns } from '../../app/unattended-runner.js';
import { desktop } from '../../kernel/console/announce.js';
import { printedEnd } from '../../ui/transcript.js';
import { wrongBinding } from '../../ui/editor/keybindings.js';
import { startPlainRepl } from './plain-repl.js';

const maxCompletionFiles = 200_000;

/** Runs the REPL and returns the exit code. */
export async function runRepl(
  words: readonly string[],
  options: RootOptions,
  early: EarlyFrame | null,
): Promise<number> {
  const { settings, typed } = await askForSettings(options, early);
  const { files, store } = settings.config;
  const isFirst = !settings.ephemeral && store.mode !== 'remote' && !existsSync(files.database);
  const run = await openRun(settings, options, { canAsk: true, inRepl: true });
  let exitCode: number;
  let left: string | null = null;
  let unsaved = 0;
  try {
    const resume = typeof options.resume === 'string' ? options.resume : null;
    const sessions = await openReplSessions(run, {
      continueNewest: options.continue === true,
      resume,
      fork: options.fork === true,
      ...eventNumber(options.at),
    });
    try {
      const begun = await begunInput(run, words.join(' ').trim(), typed);
      exitCode = await converse(run, sessions, begun.prompt, { early, typed: begun.typed, isFirst });
      const { id } = sessions.current().session;
      left = run.lasting !== null && (await run.store.session(id).catch(() => null)) !== null ? id : null;
    } finally {
      unsaved = await sessions.close();
    }
  } finally {
    await run.close();
  }
  const place = typeof options.worktree === 'string' ? `-w ${options.worktree} ` : '';
  if (left !== null && exitCode === exit.done) print(`Resume with: agent ${place}-r ${left.slice(0, 13)}\n`);
  return unsaved > 0 && exitCode === exit.done ? exit.failed : exitCode;
}

/** The images of the command line, with the prompt if there is one. Without a prompt their addresses stand in the input,
 * before what was typed: there is no message to load them for yet. */
async function begunInput(run: Run, text: string, typed: Before['typed']) {
  const prompt = await promptWithImages(provided, run.pictures, run.options.image ?? [], text);
  if (text !== '') return { prompt, typed };
  return { prompt: '', typed: prompt === '' ? typed : [`${prompt} `, ...typed] };
}

/** The frame on the terminal, and the keys that were typed before the REPL. */
interface Before {
  readonly early: EarlyFrame | null;
  readonly typed: readonly (Uint8Array | string)[];
  /** Nothing was ever recorded on this machine. */
  readonly isFirst: boolean;
}

/** Shows the screen and waits for its end. */
async function converse(run: Run, sessions: ReplSessions, prompt: string, before: Before): Promise<number> {
  const { early, typed } = before;
  const { settings, options } = run;
  // This comes before the early frame removes its handlers: a signal in between would leave the terminal raw.
  const ending = endOnSignals();
  giveTerminalBackOnCrash(settings.log, options.debug === true);
  const theme = await configuredTheme(settings);
  await checkBindings(settings.config);
  const mask = (text: string): string => settings.guard.text(text);
  const queue = createSavedQueue(run.store, settings.log, mask, machineClock.schedule);
  const history = openHistory(settings, mask);
  const ownCommands = createOwnRuns();
  const parts = await openReplParts(run, sessions, before.isFirst);
  const keep: Keep = (key, value) => keepSetting(settings, settings.ephemeral, key, value);
  const menus = await run.parts.menus();
  const facts = terminalFacts(settings.env, theme);
  const themes = createThemes(settings);
  const status = createStatus(run, sessions);
  const begins = openingOf(sessions.shown(), settings, prompt, () => status.facts(emptyView));
  const opening = await showOpening(early, begins, sessions.shown().events(), { status, facts, settings });
  const startRepl = await loadRepl(facts.plain);
  const firstFrame = early?.take() ?? null;
  await new Promise<void>((resolve) => {
    const handle = startRepl({
      terminal: {
        ...screenStreams(),
        facts,
        typed,
        ...(firstFrame ? { firstFrame } : {}),
        ...signsOf(run, sessions),
        ...(themes.onGround ? { onGround: themes.onGround } : {}),
        job: jobControl,
      },
      time: machineClock,
      input: inputOf(run, sessions, { history, queue, menus }),
      printing: printingOf(settings),
      opening,
      session: sessions.shown(),
      commands: replCommands(run, sessions, { keep, menus, themes }),
      findNewCommands: async () => await refreshMenus(menus),
      status: status.facts,
      runShell: (command, shellOptions) =>
        ownCommands.follow(sessions.ready().then(() => runUserShell(run, sessions, command, shellOptions))),
      onExit: resolve,
    });
    ending.attach(handle);
    void status.begin(handle, machineClock.schedule);
    void whenReady(run, sessions, parts, handle);
  });
  status.close();
  await sessions.ready();
  sessions.current().session.interrupt('leaving');
  await ownCommands.ended();
  await Promise.all(parts.map(async (part) => await part.close?.()));
  await queue.close();
  await history.settled();
  return ending.exitCode();
}

/** Opens what features do while the REPL is open. */
async function openReplParts(run: Run, sessions: ReplSessions, isFirst: boolean): Promise<readonly ReplPart[]> {
  const { settings, tables, policy, toolbox, options } = run;
  const host = {
    settings,
    tables,
    policy,
    parts: toolbox.parts,
    current: () => sessions.current().session,
    schedule: machineClock.schedule,
    runUnattended: unattendedRuns(unattendedOptions(options)),
  };
  const parts = await Promise.all(features.map(async (feature) => await feature.openRepl?.(host)));
  return [...parts, isFirst ? offerImport(settings, countFiles) : null].flatMap((part) => part ?? []);
}

const countFiles: Parameters<typeof offerImport>[1] = async (...counted) =>
  await (await loadSettingsCommands()).countFiles(...counted);

interface Looks {
  readonly status: Pick<ReturnType<typeof createStatus>, 'facts'>;
  readonly facts: TerminalFacts;
  readonly settings: Settings;
}

/** Shows how a session begins, or how it ended, before the screen is loaded. Returns what the screen begins with. */
async function showOpening(
  early: EarlyFrame | null,
  opening: ReplOptions['opening'],
  events: readonly Event[],
  { status, facts, settings }: Looks,
): Promise<ReplOptions['opening']> {
  if (!early) return opening;
  const { output } = screenStreams();
  if (opening.greeting) {
    const above = openingRows(opening.greeting, status.facts(emptyView), facts, output);
    if (above) early.show(above);
    return opening;
  }
  const view = { ...emptyView, totals: totalsOf(events), todo: todoOf(events) };
  const { columns } = output;
  const { bindings } = settings.config.ui;
  const end = await printedEnd(events, facts, { ...printingOf(settings), columns, bindings });
  const above = openingRows(null, status.facts(view), facts, output, view);
  if (!end || !above || output.columns !== columns) return opening;
  early.show(above, end.lines, end.sent);
  return { ...opening, end };
}

/** Throws a `CliError` if custom key bindings are wrong. */
async function checkBindings({ ui, files }: Settings['config']): Promise<void> {
  if (Object.keys(ui.bindings).length === 0) return;
  const problem = wrongBinding(ui.bindings, files.config);
  if (problem) throw new CliError(exit.usage, problem.message, problem.hint);
}

/** Returns the notifications and the title that the program shows beside the screen. */
function signsOf(
  { settings, toolbox }: Run,
  sessions: ReplSessions,
): Pick<ReplOptions['terminal'], 'notify' | 'tell' | 'title' | 'keepInTmux'> {
  const { env, config } = settings;
  return {
    notify: chosenSign(env, config.ui.notify),
    tell: (said) => void tellPerson(settings, said),
    ...(config.ui.title && hasTitle(env) ? { title: () => sessions.title() } : {}),
    ...(env.TMUX ? { keepInTmux: (text) => keepInTmux(toolbox, settings, text) } : {}),
  };
}

/** Notifies the user as tasks do: by their own program, else by the desktop. */
async function tellPerson(settings: Settings, said: DesktopNotification): Promise<void> {
  const problem = await desktop(settings)(said);
  if (problem !== null) settings.log({ at: 'ui', message: 'no one was notified', problem });
}

/** Returns the dependencies of the input line. */
function inputOf(
  run: Run,
  sessions: ReplSessions,
  {
    history,
    queue,
    menus,
  }: {
    readonly history: HistoryFile;
    readonly queue: ReturnType<typeof createSavedQueue>;
    readonly menus: readonly Menu[];
  },
): ReplOptions['input'] {
  const stash = run.toolbox.parts.find(promptStash);
  return {
    history,
    ...(stash ? { stash } : {}),
    queued: async () => await sessions.ready().then(() => queue.take(sessions.current().session), nothingWaits),
    files: () => listFiles(run, menus),
    keys: run.settings.config.ui.keys,
    bindings: run.settings.config.ui.bindings,
    editExternally: (text) => editExternally(run.settings, text),
    openEditor: async (path) => (await runEditor(run.settings, path)) === 0,
    nextMode: () => {
      run.policy.next();
      offerPlanTool(run, sessions);
    },
    onEmptyLine: () => onEmptyLine(run, sessions.shown()),
    toBackground: () => run.parts.toBackground(sessions.shown().id),
    pictures: run.pictures,
  };
}

/** Attaches the whole session where its end was shown before. Ends the REPL where it cannot be opened. */
async function whenReady(
  run: Run,
  sessions: ReplSessions,
  parts: readonly ReplPart[],
  handle: ReplHandle,
): Promise<void> {
  const shown = sessions.shown();
  sessions.readRest();
  try {
    await sessions.ready();
  } catch {
    handle.exit();
    return;
  }
  const { session, notices, model } = sessions.current();
  if (shown !== session) handle.attach(session, 'shown');
  sessions.serve({
    deliver: (message) => {
      handle.receive(message);
    },
    ownTerminals: () => 1,
  });
  for (const notice of [...run.notices(), ...notices]) handle.notice(notice.level, notice.message);
  const { keys } = run.settings;
  keys.refused.listen(() => {
    handle.submit('/login');
  });
  if (run.options.resume === true) handle.submit('/sessions');
  model.warm();
  for (const part of parts) part.start?.(handle);
}

/** Returns the command that Enter on the empty line runs while no model is connected, else null. */
function onEmptyLine({ settings }: Run, session: SessionPort): string | null {
  const { provider, model } = session.ref();
  const isUnconnected = provider === 'offline' && model === 'offline' && !choseOffline(settings.config.provider);
  return isUnconnected && session.events().length === 0 && !session.busy() ? '/login' : null;
}

const nothingWaits = (): readonly string[] => [];

const machineClock: ReplOptions['time'] = {
  clock: () => performance.now(),
  schedule: (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** The settings of what is printed of results, prose and reasoning. */
function printingOf({ guard, config: { ui } }: Settings): Required<ReplOptions['printing']> {
  return {
    detail: { show: ui.toolOutput, maxRows: ui.toolOutputRows },
    wrap: ui.wrap,
    reasoning: ui.reasoning,
    reasoningOf: reasoningText,
    mask: (text) => guard.text(text),
  };
}

/** Returns what the REPL starts with: a greeting for a new session, and the prompt of the command line. */
function openingOf(
  session: SessionPort,
  { config }: Pick<Settings, 'config'>,
  prompt: string,
  facts: () => StatusFacts,
): ReplOptions['opening'] {
  return {
    ...(session.events().length === 0
      ? {
          greeting: greeting(
            session.ref(),
            config.provider,
            facts(),
            createKeyMap(config.ui.bindings).keyOf('next_mode'),
          ),
          hasTips: prompt === '',
        }
      : {}),
    ...(prompt === '' ? {} : { prompt }),
  };
}

function openHistory(
  { config, cwd, log, ephemeral }: Pick<Settings, 'config' | 'cwd' | 'log' | 'ephemeral'>,
  mask: (text: string) => string,
): HistoryFile {
  const history = createHistoryFile({ path: config.files.history, cwd, log, mask });
  return ephemeral ? unwritten(history) : history;
}

/** Ends the REPL in order at a signal or when the terminal is lost: the terminal is restored, the turn interrupted, the
 * store closed. */
function endOnSignals(): { attach(handle: ReplHandle): void; exitCode(): number } {
  let exitCode: number = exit.done;
  let handle: ReplHandle | null = null;
  let ended = false;
  const end = (code: number | null): void => {
    if (code === exit.interrupted && handle?.interrupt()) return;
    exitCode = code ?? exitCode;
    ended = true;
    handle?.exit();
  };
  onEndingSignal((signal) => {
    end(endingSignals[signal]);
    if (ended) endInBackground(signal);
  });
  process.stdin.once('end', () => {
    end(null);
  });
  onLostStream(() => {
    end(null);
  });
  return {
    attach: (opened) => {
      handle = opened;
      if (ended) opened.exit();
    },
    exitCode: () => exitCode,
  };
}

/** A program in the background is stopped by what Node does to the terminal at its exit, and would never end. There, once
 * everything is closed, the signal ends it. */
function endInBackground(signal: EndingSignal): void {
  process.once('exit', () => {
    if (hasTerminal()) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
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

/** The calls that run without a question, by approval mode. */
const unasked: Readonly<Record<string, string>> = {
  never: 'Nothing asks except secret files and protected paths',
  dangerous: 'Edits and ordinary commands run without asking; dangerous ones ask',
  mutating: 'Reading runs without asking; edits and commands ask',
  always: 'Every call asks',
  plan: 'Plan mode: reading runs without asking, and nothing is changed',
};

/** Returns the first screen: the name and the folder, the model or how to connect one, and what runs without asking. */
export function greeting(
  { provider, model }: ModelRef,
  configured: { readonly provider: string | null; readonly model: string | null },
  { directory, branch, approval }: Pick<StatusFacts, 'directory' | 'branch' | 'approval'>,
  modeKey: string | null,
): Greeting {
  const folder = branch === undefined ? directory : `${directory} (${branch})`;
  const isConnected = provider !== 'offline' || model !== 'offline' || choseOffline(configured);
  return {
    name: `agent ${version}`,
    line: `  ${folder}  /help`,
    more: [
      ...(isConnected
        ? [`Model: ${provider}/${model} (/model)`]
        : [
            'No model connected yet. Press Enter or type /login.',
            'Simple things work offline: list **/*.md, read README.md, run ls -la',
          ]),
      `${unasked[approval] ?? ''}${modeKey === null ? '.' : ` (${modeKey}).`}`,
    ],
  };
}

/** Loads the REPL for a terminal: with Ink where there are escape sequences, else line by line. What it gives starts at
 * once; `onExit` is called when it has ended and the terminal is as it was. */
export async function loadRepl(plain: boolean): Promise<(options: ReplOptions) => ReplHandle> {
  if (plain) return startPlainRepl;
  return (await import('../../ui/screen-repl.js')).startScreenRepl;
}
