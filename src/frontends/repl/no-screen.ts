import type { CommandContext } from '../../kernel/console/slash-command.js';
import type { ScreenParts } from '../../ui/session-turns.js';
import type { ReplOptions } from '../../ui/repl-options.js';
import type { Screens } from './screens.js';

interface Parts {
  readonly commands: ScreenParts['commands'];
  readonly screens: Pick<Screens, 'notice'>;
  readonly runShell: ReplOptions['runShell'];
  readonly send: (text: string) => void;
  readonly attach: CommandContext['attach'];
}

/** Runs what waits in the queue while no terminal shows the session. The next one that does shows what was said. A
 * question that only a screen can ask is not answered. */
export function withoutScreen({ commands, screens, runShell, send, attach }: Parts): ScreenParts {
  const print = (text: string): void => {
    screens.notice('info', text);
  };
  const context = (signal: AbortSignal): CommandContext => ({
    signal,
    keyOf: () => null,
    print: (text) => {
      print(text);
    },
    notice: (level, message) => {
      screens.notice(level, message);
    },
    pick: async ({ listing }) => {
      if (listing !== undefined) print(listing);
      return null;
    },
    ask: () => Promise.resolve(null),
    hidden: () => Promise.resolve(null),
    page: (_title, text) => {
      print(text);
      return Promise.resolve(null);
    },
    box: () => Promise.resolve(null),
    openEditor: () => Promise.resolve(null),
    detach: () => Promise.resolve(null),
    setDraft: print,
    send: (text) => {
      if (!signal.aborted) send(text);
    },
    copy: () => Promise.resolve(null),
    setTheme: () => false,
    attach,
    refresh: () => {
      /* There is no status line. */
    },
    exit: () => {
      /* There is nothing to leave. */
    },
  });
  return {
    commands,
    context,
    runShell: async ({ command, sendToModel }, signal) => {
      await runShell(command, {
        sendToModel,
        onTerminal: false,
        signal,
        onOutput: () => undefined,
        lend: () => Promise.resolve({ exitCode: null, output: null }),
      });
    },
    onSend: (send) => {
      send();
    },
    onFailure: (message) => {
      screens.notice('error', message);
    },
    onIdle: () => undefined,
    onSession: () => undefined,
  };
}
