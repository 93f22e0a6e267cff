import type { OutputPort } from './ports.js';
import { sanitize } from './sanitize.js';

type Output = Pick<OutputPort, 'write'>;

/** What stands in the title of a terminal now; the user's own waits on its stack meanwhile. */
const shown = new WeakMap<Output, string>();

/** Sets the terminal's title. Before the first time its own one is put on the terminal's stack. A title that stands
 * already costs nothing.
 * Source: xterm ctlseqs, "Operating System Commands" 0 and "Window manipulation" 22 and 23. */
export function setTitle(output: Output, text: string): void {
  const title = sanitize(text).replace(/\s+/g, ' ');
  const before = shown.get(output);
  if (before === title) return;
  output.write(`${before === undefined ? '\x1b[22;0t' : ''}\x1b]0;${title}\x07`);
  shown.set(output, title);
}

export function hasTitle(output: Output): boolean {
  return shown.has(output);
}

/** Takes the user's own title back from the stack, where another one was set. */
export function restoreTitle(output: Output): void {
  if (shown.delete(output)) output.write('\x1b[23;0t');
}
