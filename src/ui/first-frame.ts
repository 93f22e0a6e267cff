import type { InputPort, OutputPort } from './ports.js';
import { enterTerminal } from './terminal-modes.js';

/** The prompt as it stands on the terminal before anything else of the program is loaded, and the keys typed since. */
export interface FirstFrame {
  readonly painted: { readonly lines: readonly string[]; readonly line: number; readonly column: number };
  /** Stops collecting; everything typed so far, in order. */
  takeKeys(): readonly (Uint8Array | string)[];
}

/** Paints the prompt, an empty row above it for the status, in plain escape codes. Depends on nothing, so that it stands within the first milliseconds; the screen takes over
 *  what is painted without writing it again. Not for plain mode. */
export function paintFirstFrame(input: InputPort, output: Pick<OutputPort, 'write'>, looks: { readonly unicode: boolean; readonly promptCodes?: readonly [open: string, close: string] }): FirstFrame {
  const keys: (Uint8Array | string)[] = [];
  const collect = (chunk: Uint8Array | string): void => { keys.push(chunk); };
  const sign = looks.unicode ? '❯ ' : '> ';
  const [open, close] = looks.promptCodes ?? ['', ''];
  const prompt = open + sign + close;
  input.on('data', collect);
  enterTerminal(input, output);
  output.write(`\r\n${prompt}`);
  return {
    painted: { lines: ['', prompt], line: 1, column: 2 },
    takeKeys: () => { input.off('data', collect); return keys; },
  };
}
