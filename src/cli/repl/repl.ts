import { walkFiles } from '../../tools/search/file-walk.js';
import { screenStreams, type EarlyFrame } from './early-frame.js';
import { startRepl } from '../../ui/start-repl.js';
import { reasoningText } from '../../providers/wires/layout.js';
import { exit } from '../../commands/cli-error.js';
import { endingSignals, onEndingSignal } from '../exit-code.js';
import { editExternally } from './external-editor.js';
import { greeting } from './greeting.js';
import { createHistoryFile, unwritten } from './history-file.js';
import type { RootOptions } from '../options.js';
import { replCommands } from '../../commands/slash-commands.js';
import { eventNumber } from '../open/rewind-event.js';
import { giveTerminalBackOnCrash } from './repl-crash.js';
import { createQueueKeeper } from './repl-queue.js';
import { keepSetting } from '../../commands/settings/settings-slash.js';
import { createStatus } from './repl-status.js';
import { configuredTheme, userThemes } from './repl-themes.js';
import { openDesk, type SessionDesk } from './session-desk.js';
import { hasTitle, terminalFacts } from './terminal-opening.js';
import { setUpAsking } from '../trust/trust-opening.js';
import { createOwnRuns, runUserShell } from './user-shell.js';
import { openWorkbench, type Workbench } from '../open/workbench.js';
import { onLostStream, print } from '../print.js';

const maxCompletionFiles = 200_000;

/** The REPL from its start to its end; gives the exit code. */
export async function runRepl(
  words: readonly string[],
  options: RootOptions,
  early: EarlyFrame | null,
): Promise<number> {
  const { setup, typed } = await setUpAsking(options, early);
  const bench = await openWorkbench(setup, options);
  let exitCode: number;
  let left: string | null = null;
  try {
    const resume = typeof options.resume === 'string' ? options.resume : null;
    const desk = await openDesk(bench, {
      continueNewest: options.continue === true,
      resume,
      fork: options.fork === true,
      ...eventNumber(options.at),
    });
    try {
      exitCode = await converse(bench, desk, words.join(' ').trim(), { early, typed });
      left = bench.durable && desk.current().session.events().length > 0 ? desk.current().session.id : null;
    } finally {
      await desk.close();
    }
  } finally {
    await bench.close();
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
async function converse(
  bench: Workbench,
  desk: SessionDesk,
  prompt: string,
  { early, typed }: Before,
): Promise<number> {
  const { setup, options } = bench;
  const mask = (text: string): string => setup.guard.text(text);
  const queue = createQueueKeeper(bench.store, setup.log, mask);
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
  giveTerminalBackOnCrash(setup.log, options.debug === true);
  const theme = await configuredTheme(setup);
  const firstFrame = early?.take() ?? null;
  const kept = createHistoryFile(setup.config.files.history, setup.log, mask);
  const history = options.ephemeral ? unwritten(kept) : kept;
  const status = createStatus(bench, desk);
  const hello =
    desk.current().session.events().length === 0 ? greeting(desk.current().session.ref(), setup.config.provider) : null;
  const ownCommands = createOwnRuns();
  await new Promise<void>((resolve) => {
    const handle = startRepl({
      ...screenStreams(),
      facts: terminalFacts(setup.env, theme),
      themes: userThemes(setup, async (name) => (await keepSetting(bench, 'ui.theme', name)).said),
      keepSetting: (key, value) => keepSetting(bench, key, value),
      tellsDetail: setup.loaded.origins['ui.tool_output'] === undefined,
      clock: () => performance.now(),
      schedule: (callback, delayMs) => {
        const timer = setTimeout(callback, delayMs);
        return () => {
          clearTimeout(timer);
        };
      },
      session: desk.current().session,
      commands: replCommands(bench, desk),
      history,
      queued: () => queue.take(desk.current().session),
      files: () => listFiles(bench),
      status,
      runShell: (command, shellOptions) => ownCommands.follow(runUserShell(bench, desk, command, shellOptions)),
      editExternally: (text) => editExternally(setup, text),
      suspend: () => {
        process.kill(0, 'SIGSTOP');
      },
      detail: { show: setup.config.ui.toolOutput, maxRows: setup.config.ui.toolOutputRows },
      wrap: setup.config.ui.wrap,
      notify: setup.config.ui.notify,
      keys: setup.config.ui.keys,
      reasoning: setup.config.ui.reasoning,
      reasoningOf: reasoningText,
      ...(setup.config.ui.title && hasTitle(setup.env) ? { title: () => desk.title() } : {}),
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
    for (const notice of [...bench.notices, ...desk.current().notices]) handle.notice(notice.level, notice.message);
    if (options.resume === true) handle.submit('/sessions');
    desk.current().model.warm();
  });
  desk.current().session.interrupt();
  await ownCommands.ended();
  await queue.close();
  await history.settled();
  return signalCode;
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
async function listFiles(bench: Workbench): Promise<readonly string[]> {
  const files: string[] = [];
  const stop = new AbortController();
  await walkFiles(
    { root: bench.setup.cwd, pattern: '**/*', includeIgnored: false, signal: stop.signal, env: bench.setup.env },
    (path) => {
      files.push(path);
      if (files.length >= maxCompletionFiles) stop.abort();
    },
  );
  return files;
}
