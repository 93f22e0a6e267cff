import type { SessionPort } from '../kernel/core/session-port.js';
import type { CommandContext } from '../kernel/console/slash-command.js';
import type { Dialogs } from './components/dialogs.js';
import type { Display } from './display.js';
import type { KeyOf } from './editor/keybindings.js';
import type { PromptInput } from './editor/prompt-input.js';
import { notDetached, type ReplHandle, type ReplTerminal } from './repl-options.js';

interface Parts {
  readonly display: Display;
  readonly dialogs: Dialogs;
  readonly input: PromptInput;
  readonly keyOf: KeyOf;
  readonly colored: boolean;
  readonly signal: AbortSignal;
  /** The command as it was typed. It is printed once, above the first output. A command without output is not printed,
   * and one that sends a message appears as that message. */
  readonly typed: string;
  readonly keepText: ReplTerminal['keepText'];
  readonly openEditor: ((path: string) => Promise<boolean>) | undefined;
  /** Shows another session on every screen. */
  readonly attach: (session: SessionPort) => void;
  readonly detach: ReplTerminal['detach'];
  /** Sends a message of the command. */
  readonly send: (text: string) => void;
  /** Called when something is printed that a frame must show. */
  readonly onPrinted: () => void;
}

/** Returns the access of a command to the screen. */
export function commandContext(repl: ReplHandle, parts: Parts): CommandContext {
  const { display, input, keyOf, colored, signal, send, attach, detach, onPrinted, keepText, openEditor, typed } =
    parts;
  const echo = once(() => {
    display.notes.command(typed);
  });
  const notice: CommandContext['notice'] = (level, message) => {
    echo();
    repl.notice(level, message);
  };
  return {
    ...questions(parts),
    keyOf,
    signal,
    print: (text, as) => {
      echo();
      if (as === 'markdown') display.notes.printMarkdown(text);
      else if (as) display.notes.printChange(as);
      else display.notes.print(text);
      onPrinted();
    },
    notice,
    copy: (text) => copyText(text, display, keepText),
    setTheme: (theme) => {
      display.setTheme(theme);
      repl.refresh();
      return colored;
    },
    openEditor: (path) => (signal.aborted ? Promise.resolve(null) : lendTerminal(repl, openEditor, path)),
    setDraft: (text) => {
      if (!signal.aborted) input.setText(text);
      repl.refresh();
    },
    send: (text) => {
      if (!signal.aborted) send(text);
    },
    attach,
    detach: async () => (detach ? await detach({ signal, keyOf, notice }) : notDetached),
    refresh: () => {
      repl.refresh();
    },
    exit: () => {
      repl.exit();
    },
  };
}

type Questions = Pick<CommandContext, 'pick' | 'ask' | 'hidden' | 'page' | 'box'>;

/** Asks in dialogs. */
function questions({ dialogs, signal }: Parts): Questions {
  let calledAt = dialogs.keys();
  /** Keys before an answer belong to the answered dialog, so the next dialog waits for new keys. */
  async function answered<T>(ask: () => Promise<T | null>): Promise<T | null> {
    if (signal.aborted) return null;
    const given = await ask();
    calledAt = dialogs.keys();
    return given;
  }
  return {
    pick: (options) => answered(() => dialogs.pick(options, calledAt)),
    ask: (form) => answered(() => dialogs.ask(form, calledAt, signal)),
    hidden: (question) => answered(() => dialogs.hidden(question)),
    page: async (title, text, options) =>
      signal.aborted ? null : await dialogs.page(title, text, calledAt, options, signal),
    box: (options) => answered(() => dialogs.box(options, calledAt, signal)),
  };
}

async function copyText(
  text: string,
  display: Display,
  keepText: Parts['keepText'],
): Promise<'tmux' | 'system' | 'terminal'> {
  const target = (await keepText?.(text)) ?? null;
  if (target !== null) return target;
  display.copy(text);
  return 'terminal';
}

async function lendTerminal(repl: ReplHandle, openEditor: Parts['openEditor'], path: string): Promise<boolean | null> {
  if (openEditor === undefined) return null;
  repl.pause();
  try {
    return await openEditor(path);
  } finally {
    repl.resume();
    repl.refresh();
  }
}

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) act();
    isDone = true;
  };
}
