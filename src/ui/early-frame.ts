import { type FirstFrame, leaveTerminal, paintFirstFrame } from './terminal/streams.js';
import { opensRepl } from '../kernel/console/options.js';

/** The prompt on the screen while the rest of the program is loaded. The REPL takes it over, or `withdraw` removes
 * it. */
export interface EarlyFrame {
  take(): FirstFrame | null;
  /** Puts rows above the prompt, and prints lines above those. */
  show: FirstFrame['show'];
  /** Clears the frame, restores the terminal and returns the keys that were typed. Does nothing after `take`. */
  withdraw(): readonly (Uint8Array | string)[];
}

/** The terminal of the screen. Only the screen's writer, which sanitises, may write to it. */
export function screenStreams(): { readonly input: NodeJS.ReadStream; readonly output: NodeJS.WriteStream } {
  return { input: process.stdin, output: process.stdout };
}

/** Paints the prompt where the command line opens the REPL on a terminal that understands escape sequences. Returns
 * null elsewhere. */
export function paintEarly(argv: readonly string[], env: NodeJS.ProcessEnv): EarlyFrame | null {
  const { input: stdin, output: stdout } = screenStreams();
  if (!stdin.isTTY || !stdout.isTTY || isPlainTerminal(env) || !opensRepl(argv)) return null;
  const stop = (code: number) => (): void => {
    leaveTerminal(stdin, stdout);
    process.exit(code);
  };
  const signals = [
    ['SIGTERM', stop(143)],
    ['SIGHUP', stop(129)],
    ['SIGINT', stop(130)],
  ] as const;
  for (const [name, end] of signals) process.on(name, end);
  const released = (): void => {
    for (const [name, end] of signals) process.off(name, end);
  };
  const looks = {
    unicode: hasUnicode(env),
    ...(hasColors(env) ? { promptCodes: ['\x1b[36m', '\x1b[39m'] as const } : {}),
  };
  let frame: FirstFrame | null = paintFirstFrame(stdin, stdout, looks);
  return {
    take: () => {
      const taken = frame;
      frame = null;
      released();
      return taken;
    },
    show: (...rows) => {
      frame?.show(...rows);
    },
    withdraw: () => {
      if (!frame) return [];
      const keys = frame.takeKeys();
      frame.erase();
      frame = null;
      released();
      leaveTerminal(stdin, stdout);
      return keys;
    },
  };
}

/** Returns what shows a message above the prompt until the session opens; undefined without a frame. */
export function rowAbove(early: EarlyFrame | null): ((message: string) => void) | undefined {
  if (early === null) return undefined;
  return (message) => {
    early.show([message.slice(0, screenStreams().output.columns - 1)]);
  };
}

export function isPlainTerminal(env: NodeJS.ProcessEnv): boolean {
  return env.TERM === 'dumb' || env.AGENT_PLAIN === '1';
}

/** Returns whether the locale says that the terminal shows Unicode. Without a locale it counts as one that does. */
export function hasUnicode(env: NodeJS.ProcessEnv): boolean {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  return locale === '' || /utf-?8/i.test(locale);
}

export function hasColors(env: NodeJS.ProcessEnv): boolean {
  return (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
}
