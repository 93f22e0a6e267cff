import type { Display } from './display.js';
import type { ReplOptions } from './repl-options.js';
import { createSanitizer } from './sanitize.js';

export interface ShellLine { readonly command: string; readonly sendToModel: boolean }

/** `!command` (the model is told) or `!!command` (it is not); null for anything else. */
export function shellLine(text: string): ShellLine | null {
  const match = /^(!{1,2})\s*([^!\s][\s\S]*)$/.exec(text.trim());
  return match ? { command: match[2] ?? '', sendToModel: match[1] === '!' } : null;
}

/** Runs the user's own command; whole lines are printed as they come. `onPrinted` may be called often. */
export async function runShellLine(line: ShellLine, runShell: ReplOptions['runShell'], display: Display, onPrinted: () => void): Promise<void> {
  const sanitizer = createSanitizer({ colors: display.theme.colors });
  let rest = '';
  const onOutput = (chunk: string): void => {
    rest += sanitizer.write(chunk);
    const end = rest.lastIndexOf('\n');
    if (end < 0) return;
    display.print(rest.slice(0, end), { attached: true });
    rest = rest.slice(end + 1);
    onPrinted();
  };
  display.print(`! ${line.command}`);
  onPrinted();
  const { exitCode } = await runShell(line.command, { sendToModel: line.sendToModel, onOutput });
  if (rest !== '') display.print(rest, { attached: true });
  if (exitCode !== 0) display.print(`[exit ${exitCode ?? 'unknown'}]`, { attached: true });
  onPrinted();
}
