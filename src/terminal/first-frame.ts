import { enterTerminal } from './modes.js';
import type { InputPort, OutputPort } from './streams.js';

/** Lines, and where the cursor stands among the rows that the terminal makes of them. */
export interface Painted {
  readonly lines: readonly string[];
  readonly row: number;
  readonly column: number;
}

/** The screen as it stands on the terminal before anything else of the program is loaded, and the keys typed since. */
export interface FirstFrame {
  readonly painted: Painted;
  /** Stops collecting; everything typed so far, in order. */
  takeKeys(): readonly (Uint8Array | string)[];
  /** Clears what was painted. */
  erase(): void;
}

/** Paints the prompt with an empty row above it for the status, in plain escape codes. Depends on nothing, so that it
 * stands within the first milliseconds; the screen takes over what is painted without writing it again. Not for plain
 * mode. */
export function paintFirstFrame(
  input: InputPort,
  output: Pick<OutputPort, 'write'>,
  {
    unicode,
    promptCodes: [open, close] = ['', ''],
  }: { readonly unicode: boolean; readonly promptCodes?: readonly [open: string, close: string] },
): FirstFrame {
  const keys: (Uint8Array | string)[] = [];
  const collect = (chunk: Uint8Array | string): void => {
    keys.push(chunk);
  };
  const painted: Painted = { lines: ['', `${open}${unicode ? '❯' : '>'} ${close}`], row: 1, column: 2 };
  input.on('data', collect);
  enterTerminal(input, output);
  output.write(painted.lines.join('\r\n'));
  return {
    painted,
    takeKeys: () => {
      input.off('data', collect);
      return keys;
    },
    erase: () => {
      output.write(`\r\x1b[${painted.row}A\x1b[J`);
    },
  };
}
