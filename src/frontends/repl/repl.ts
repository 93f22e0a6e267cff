import { existsSync } from 'node:fs';
import { CliError, exit } from '../../kernel/console/command.js';
import { keepSetting } from '../../kernel/console/keep-setting.js';
import { loadSettingsCommands } from '../../commands/settings-table.js';
import { longestTimerMs } from '../../kernel/core/runtime.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import { openingRows } from '../../ui/components/status-line.js';
import { inputTips } from '../../ui/components/input-tips.js';
import { createTheme } from '../../kernel/console/theme.js';
import type { TerminalFacts, ThemeChoice } from '../../kernel/console/theme.js';
import { emptyView, pastOf } from '../../ui/view.js';
import type { ReplHandle, ReplOptions } from '../../ui/repl-options.js';
import { type EarlyFrame, rowAbove, screenStreams } from '../../ui/early-frame.js';
import { endingSignals, type EndingSignal, giveTerminalBackOnCrash, onEndingSignal } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { configuredTheme, createThemes, terminalFacts } from './terminal-theme.js';
import { onLostStream, print } from '../../kernel/console/print.js';
import { openRun, type Run } from '../../app/create-session.js';
import { eventNumber, SessionInUse } from '../../app/find-session.js';
import { countSockets } from '../../app/live/socket-path.js';
import { features, provided } from '../../app/features.js';
import { offerImport } from '../../app/offer-import.js';
import type { ReplPart, ReplNotices } from '../../kernel/console/feature.js';
import { promptWithImages } from '../../kernel/console/pictures.js';
import { askForSettings, readSettings } from '../../app/settings.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { afterFirstEvent, createStatus, openReplSessions, type ReplSessions } from './current-session.js';
import { type CommandSessions, type Keep, refreshMenus, replCommands } from './session-commands.js';
import { hasTerminal, jobControl } from './job-control.js';
import { createSavedQueue, type HistoryFile, type SavedQueue } from './saved-input.js';
import { createOwnRuns, runsEditorHere, runUserShell } from './user-shell.js';
import { unattendedOptions, unattendedRuns } from '../../app/unattended-runner.js';
import { printedEnd } from '../../ui/transcript.js';
import { wrongBinding } from '../../ui/editor/keybindings.js';
import { createSessionTurns } from '../../ui/session-turns.js';
import { withoutScreen } from './no-screen.js';
import type { After } from './attach-running.js';
import { followQuestions } from './open-questions.js';
import { openingOf } from './opening.js';
import { shortId } from './short-id.js';
import { ProcessLife } from './process-life.js';
import { Screens } from './screens.js';
import {
  loadRepl,
  machineClock,
  openHistory,
  printingOf,
  screenOptions,
  tellPerson,
  type Shared,
  type TerminalPlace,
} from './screen-options.js';
import type { Report } from './detached-start.js';

/** Runs the REPL and returns the exit code. */
export async function runRepl(
  words: readonly string[],
  options: RootOptions,
  early: EarlyFrame | null,
  report: Report | null = null,
): Promise<number> {
  const { settings, typed } = report
    ? { settings: await readSettings(options), typed: [] }
    : await askForSettings(options, early);
  const { files, store } = settings.config;
  const running = report ? null : await attachFirst(settings, options, words, early);
  if (running) return await afterAttached(running);
  const isFirst = !settings.ephemeral && store.mode !== 'remote' && !existsSync(files.database);
  const run = await openRun(settings, options, { canAsk: true, inRepl: true, updating: rowAbove(early) });
  let ended: Ended;
  try {
    ended = await converseIn(run, words, { early, typed, isFirst, report });
  } catch (error) {
    const other = error instanceof SessionInUse && !report ? await attachInUse(settings, error, options, early) : null;
    if (!other) throw error;
    return await afterAttached(other);
  } finally {
    await run.close();
  }
  return await farewell(ended, options);
}

/** Says how the session is resumed, or continues it elsewhere. Returns the exit code. */
async function farewell({ id, exitCode, life, unsaved }: Ended, options: RootOptions): Promise<number> {
  const place = typeof options.worktree === 'string' ? `-w ${options.worktree} ` : '';
  if (id !== null && life.handsOver) return await (await loadDetached()).handOver(id, options);
  if (id !== null && exitCode === exit.done && !life.detached) print(`Resume with: agent ${place}-r ${shortId(id)}\n`);
  return unsaved > 0 && exitCode === exit.done ? exit.failed : exitCode;
}

/** Attaches to the session of the command line where another process runs it. No session runs where there is no socket:
 * then nothing is looked up. */
async function attachFirst(
  settings: Settings,
  options: RootOptions,
  words: readonly string[],
  early: EarlyFrame | null,
): Promise<After | null> {
  const resumes = options.continue === true || typeof options.resume === 'string';
  if (!resumes || options.fork === true || options.at !== undefined || countSockets(settings.config.files) === 0)
    return null;
  return await (await loadAttach()).attachIfRunning(settings, options, words, early);
}

async function attachInUse(
  settings: Settings,
  { sessionId }: SessionInUse,
  options: RootOptions,
  early: EarlyFrame | null,
): Promise<After | null> {
  early?.withdraw();
  return await (await loadAttach()).attachInUse(settings, sessionId, options);
}

async function afterAttached(after: After): Promise<number> {
  return 'exitCode' in after ? after.exitCode : await runRepl([], after.options, null);
}

/** The end of a conversation. `id`: the session that can be resumed. */
interface Ended extends Ending {
  readonly id: string | null;
  readonly unsaved: number;
}

/** Opens the session, converses and closes it. */
async function converseIn(run: Run, words: readonly string[], before: Before): Promise<Ended> {
  const { options } = run;
  const sessions = await openReplSessions(run, {
    continueNewest: options.continue === true,
    resume: typeof options.resume === 'string' ? options.resume : null,
    fork: options.fork === true,
    ...eventNumber(options.at),
  });
  let unsaved = 0;
  let id: string | null = null;
  let ending: Ending;
  try {
    const begun = await begunInput(run, words.join(' ').trim(), before.typed);
    ending = await converse(run, sessions, begun.prompt, { ...before, typed: begun.typed });
    const left = sessions.current().session.id;
    const isSaved = run.lasting !== null && (await run.store.session(left).catch(() => null)) !== null;
    id = isSaved ? left : null;
  } finally {
    unsaved = await sessions.close();
  }
  return { ...ending, id, unsaved };
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
  /** The process was started in the background, without a terminal: what it reports to. */
  readonly report: Report | null;
}

/** The end of the REPL. */
interface Ending {
  readonly exitCode: number;
  readonly life: ProcessLife;
}

/** Shows the screen, if there is one, and waits for the end. */
async function converse(run: Run, sessions: ReplSessions, prompt: string, before: Before): Promise<Ending> {
  const { settings, options } = run;
  if (before.report) {
    sessions.readRest();
    await sessions.ready();
  }
  const life = new ProcessLife(before.report !== null, () => sessions.shown().busy() || run.parts.running() > 0);
  // This comes before the early frame removes its handlers: a signal in between would leave the terminal raw.
  const ending = endOnSignals(life);
  giveTerminalBackOnCrash(settings.log, options.debug === true);
  const theme = await configuredTheme(settings);
  await checkBindings(settings.config);
  const parts = await openReplParts(run, sessions, before.isFirst);
  const screens = new Screens();
  const shared = await openShared(run, sessions, life, screens);
  const { turns, status } = shared;
  const end = (): void => {
    life.close();
    screens.exit();
    turns.end();
    if (turns.screens() === 0) life.finish();
  };
  if (before.report) {
    await shared.queued();
    reportSession(sessions, before.report);
    ending.attach({ exit: end, interrupt: () => false });
    if (prompt !== '') turns.submit(prompt);
  } else {
    const handle = await openOwnScreen(shared, theme, prompt, before);
    ending.attach({ exit: end, interrupt: handle.interrupt.bind(handle) });
  }
  void status.begin(screens, machineClock.schedule);
  void whenReady(shared, parts, end);
  // Without a terminal nothing else may keep the process.
  const kept = setInterval(() => undefined, longestTimerMs);
  await life.ended;
  clearInterval(kept);
  status.close();
  await sessions.ready();
  sessions.current().session.interrupt('leaving');
  await shared.ownCommands.ended();
  await Promise.all(parts.map(async (part) => await part.close?.()));
  await shared.settled();
  return { exitCode: ending.exitCode(), life };
}

/** Reports the session once it is on the disk. */
function reportSession(sessions: ReplSessions, report: Report): void {
  const { session } = sessions.current();
  if (session.recent().length > 0) report(session.id);
  else
    afterFirstEvent(session, () => {
      report(session.id);
    });
}

/** Opens what the screens share. */
async function openShared(run: Run, sessions: ReplSessions, life: ProcessLife, screens: Screens): Promise<Shared> {
  const { settings } = run;
  const mask = (text: string): string => settings.guard.text(text);
  const queue = createSavedQueue(run.store, settings.log, mask, machineClock.schedule);
  const keep: Keep = (key, value) => keepSetting(settings, settings.ephemeral, key, value);
  const menus = await run.parts.menus();
  const themes = createThemes(settings);
  const ownCommands = createOwnRuns();
  const histories: HistoryFile[] = [];
  const queued = waitingOnce(sessions, queue, () => turns.screens() > 0);
  const alone = withoutScreen({
    commands: replCommands(run, sessions, { keep, menus, themes }),
    screens,
    runShell: (command, options) =>
      ownCommands.follow(sessions.ready().then(() => runUserShell(run, sessions, command, options))),
    send: (text) => {
      turns.deliver({ text, when: 'after' });
    },
    attach: (session) => {
      turns.attach(session);
      void queued();
    },
  });
  const turns = createSessionTurns({
    session: sessions.shown(),
    findNewCommands: async () => await refreshMenus(menus),
    alone,
    onEvent: followQuestions({
      config: settings.config,
      hasScreens: () => turns.screens() > 0,
      tell: (said) => void tellPerson(settings, said),
    }),
    staysOpen: life.stays.bind(life),
  });
  return {
    run,
    sessions,
    turns,
    screens,
    life,
    status: createStatus(run, sessions),
    menus,
    keep,
    ownCommands,
    queued,
    history: () => {
      const history = openHistory(settings);
      histories.push(history);
      return history;
    },
    settled: async () => {
      await queue.close();
      for (const history of histories) await history.settled();
    },
  };
}

/** Returns what takes the texts that wait in the current session since an earlier run. Each is taken once. */
function waitingOnce(
  sessions: ReplSessions,
  queue: SavedQueue,
  hasScreens: () => boolean,
): () => Promise<readonly string[]> {
  let followed: SessionPort | null = null;
  let untold: readonly string[] = [];
  return async () => {
    try {
      await sessions.ready();
    } catch {
      return [];
    }
    const { session } = sessions.current();
    if (followed !== session) {
      followed = session;
      untold = await queue.take(session);
      if (!hasScreens()) return [];
    }
    const texts = untold;
    untold = [];
    return texts;
  };
}

/** Opens the screen on the terminal of this process. */
async function openOwnScreen(
  shared: Shared,
  theme: ThemeChoice,
  prompt: string,
  { early, typed }: Before,
): Promise<ReplHandle> {
  const { run, sessions, status, turns, screens, life } = shared;
  const { settings } = run;
  const facts = terminalFacts(settings.env, theme);
  const themes = createThemes(settings);
  const begins = openingOf(sessions.shown(), settings, prompt, () => status.facts(emptyView));
  const opening = await showOpening(early, begins, sessions.shown(), { status, facts, settings });
  const start = await loadRepl(facts.plain);
  const firstFrame = early?.take() ?? null;
  const place: TerminalPlace = {
    terminal: {
      ...screenStreams(),
      facts,
      typed,
      ...(firstFrame ? { firstFrame } : {}),
      ...(themes.onGround ? { onGround: themes.onGround } : {}),
      job: jobControl,
      detach: async (command) => {
        const leave = (): void => {
          handle.exit();
        };
        return await (await loadDetached()).detachHere(shared, leave, command);
      },
    },
    env: settings.env,
    themes,
    runsEditor: runsEditorHere,
    runsProgram: null,
    sessions: whileAlone(shared),
  };
  const handle = screens.open(start, {
    ...screenOptions(shared, place, shared.history()),
    opening,
    onExit: () => {
      if (turns.isEnded() || life.isClosing()) life.finish();
      else void loadDetached().then(({ leaveHere }) => leaveHere(shared));
    },
  });
  return handle;
}

const loadClients = () => import('./client-terminal.js');
const loadAttach = () => import('./attach-running.js');
const loadDetached = () => import('./detached-code.js');

/** The sessions as commands on the terminal of this process open them: not while other terminals show this one. */
function whileAlone({ sessions, turns }: Shared): CommandSessions {
  return {
    ...sessions,
    open: async (choice) => {
      const others = turns.screens() - 1;
      if (others > 0)
        throw new CliError(
          exit.usage,
          `${others === 1 ? 'another terminal shows' : `${others} other terminals show`} this session. ` +
            'Open the other one in a new terminal, or let this terminal go first with /bg.',
          'Run agent in a new terminal.',
        );
      return await sessions.open(choice);
    },
  };
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
  session: SessionPort,
  { status, facts, settings }: Looks,
): Promise<ReplOptions['opening']> {
  if (!early) return opening;
  const { output } = screenStreams();
  if (opening.greeting) {
    const above = openingRows(opening.greeting, status.facts(emptyView), facts, output);
    const theme = createTheme(facts);
    if (above) early.show(above, opening.hasTips ? { tips: inputTips(theme, output.columns) } : {});
    return opening;
  }
  const view = { ...emptyView, ...pastOf(session) };
  const { columns } = output;
  const { bindings } = settings.config.ui;
  const end = await printedEnd(session.recent(), facts, { ...printingOf(settings), columns, bindings });
  const above = openingRows(null, status.facts(view), facts, output, view);
  if (!end || !above || output.columns !== columns) return opening;
  early.show(above, { printed: end.lines, sent: end.sent });
  return { ...opening, end };
}

/** Throws a `CliError` if custom key bindings are wrong. */
async function checkBindings({ ui, files }: Settings['config']): Promise<void> {
  if (Object.keys(ui.bindings).length === 0) return;
  const problem = wrongBinding(ui.bindings, files.config);
  if (problem) throw new CliError(exit.usage, problem.message, problem.hint);
}

/** Attaches the whole session where its end was shown before. Ends the REPL where it cannot be opened. */
async function whenReady(shared: Shared, parts: readonly ReplPart[], end: () => void): Promise<void> {
  const { run, sessions, turns, screens, life } = shared;
  const shown = sessions.shown();
  sessions.readRest();
  try {
    await sessions.ready();
  } catch {
    end();
    return;
  }
  const { session, notices, model } = sessions.current();
  if (shown !== session) turns.attach(session, 'shown');
  sessions.serve({
    deliver: turns.deliver.bind(turns),
    ownTerminals: () => (life.detached ? 0 : 1),
    stop: end,
    onTerminal: (connection) => {
      void loadClients().then(({ openClientTerminal }) => openClientTerminal(shared, connection));
    },
  });
  for (const notice of [...run.notices(), ...notices]) screens.notice(notice.level, notice.message);
  const { keys } = run.settings;
  keys.refused.listen(() => {
    if (turns.screens() > 0) turns.submit('/login');
    else screens.notice('error', 'The provider refuses the key: /login sets another one.');
  });
  if (run.options.resume === true) turns.submit('/sessions');
  model.warm();
  const shownIn: ReplNotices = {
    notice: screens.notice.bind(screens),
    remind: screens.remind.bind(screens),
    leave: () => {
      const runs = sessions.current().session.busy() || run.parts.running() > 0;
      if (turns.screens() === 0 && !runs) end();
    },
  };
  for (const part of parts) part.start?.(shownIn);
}

/** Ends the REPL in order at a signal or when the terminal is lost: the terminal is restored, the turn interrupted, the
 * store closed. Once it is detached, what becomes of the terminal does not concern it. */
function endOnSignals(life: ProcessLife): {
  attach(handle: Pick<ReplHandle, 'exit' | 'interrupt'>): void;
  exitCode(): number;
} {
  let exitCode: number = exit.done;
  let handle: Pick<ReplHandle, 'exit' | 'interrupt'> | null = null;
  let ended = false;
  const end = (code: number | null): void => {
    if (life.detached && (code === null || code === endingSignals.SIGHUP)) return;
    if (code === exit.interrupted && handle?.interrupt()) return;
    exitCode = code ?? exitCode;
    ended = true;
    handle?.exit();
  };
  onEndingSignal((signal) => {
    end(endingSignals[signal]);
    if (ended && !life.detached) endInBackground(signal);
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
