import { enterTerminal } from './modes.js';
import type { InputPort, OutputPort } from './streams.js';

/** Lines, and the place of the cursor among the rows that the terminal makes of them. */
export interface Painted {
  readonly lines: readonly string[];
  readonly row: number;
  readonly column: number;
}

/** The screen before the rest of the program is loaded, and the keys typed since. */
export interface FirstFrame {
  readonly painted: Painted;
  /** Stops collecting keys and returns those typed so far, in order. */
  takeKeys(): readonly (Uint8Array | string)[];
  /** Erases the frame. */
  erase(): void;
}

/** Paints the prompt below an empty row for the status, in plain escape codes. It depends on nothing, so it is there
 * within the first milliseconds; the screen takes it over without writing it again. Not for plain mode. */
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
