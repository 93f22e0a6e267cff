import type { OutputPort } from './ports.js';

export type Notify = 'bell' | 'osc9' | 'off';

/** The terminal's own sign that somebody is waited for: BEL, or OSC 9 (iTerm2, kitty, Windows Terminal). Nothing of the
 * conversation goes into it. */
export function notify(output: Pick<OutputPort, 'write'>, how: Notify = 'off'): void {
  if (how === 'bell') output.write('\x07');
  else if (how === 'osc9') output.write('\x1b]9;agent waits for you\x07');
}
