import { enterTerminal } from './modes.js';
import type { InputPort, OutputPort } from './streams.js';

/** Lines, and where the cursor stands among the rows that the terminal makes of them. */
export interface Painted {
  readonly lines: readonly string[];
  readonly row: number;
  readonly column: number;
}

/** A frame that can be painted without knowing how lines wrap. */
export interface KnownFrame extends Painted {
  readonly rowsBelow: number;
  /** What stands in the input. */ readonly draft: string;
}

/** The screen as it stands on the terminal before anything else of the program is loaded, and the keys typed since. */
export interface FirstFrame {
  readonly painted: Painted;
  /** What stood in the input already. */
  readonly draft: string;
  /** Stops collecting; everything typed so far, in order. */
  takeKeys(): readonly (Uint8Array | string)[];
  /** Clears what was painted. */
  erase(): void;
}

/** Paints `known`, else the prompt with an empty row above it for the status, in plain escape codes. Depends on
 * nothing, so that it stands within the first milliseconds; the screen takes over what is painted without writing it
 * again. Not for plain mode. */
export function paintFirstFrame(
  input: InputPort,
  output: Pick<OutputPort, 'write'>,
  looks: { readonly unicode: boolean; readonly promptCodes?: readonly [open: string, close: string] },
  known: KnownFrame | null = null,
): FirstFrame {
  const keys: (Uint8Array | string)[] = [];
  const collect = (chunk: Uint8Array | string): void => {
    keys.push(chunk);
  };
  const frame = known ?? promptAlone(looks);
  input.on('data', collect);
  enterTerminal(input, output);
  output.write(
    frame.lines.join('\r\n') +
      (frame.rowsBelow > 0 ? `\x1b[${frame.rowsBelow}A` : '') +
      (known ? `\x1b[${frame.column + 1}G` : ''),
  );
  return {
    painted: frame,
    draft: frame.draft,
    takeKeys: () => {
      input.off('data', collect);
      return keys;
    },
    erase: () => {
      output.write(`\r${frame.row > 0 ? `\x1b[${frame.row}A` : ''}\x1b[J`);
    },
  };
}

function promptAlone({
  unicode,
  promptCodes: [open, close] = ['', ''],
}: Parameters<typeof paintFirstFrame>[2]): KnownFrame {
  return { lines: ['', `${open}${unicode ? '❯' : '>'} ${close}`], row: 1, column: 2, rowsBelow: 0, draft: '' };
}
