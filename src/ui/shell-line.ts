import type { Display } from './display.js';
import type { ReplOptions } from './repl-options.js';

/** `!command` (the model is told) or `!!command` (it is not); null for anything else. */
export function shellLine(text: string): { readonly command: string; readonly sendToModel: boolean } | null {
  const match = /^(!{1,2})\s*([^!\s][\s\S]*)$/.exec(text.trim());
  return match ? { command: match[2] ?? '', sendToModel: match[1] === '!' } : null;
}

/** Runs the user's own command and prints what it gave. */
export async function runShellLine(line: { readonly command: string; readonly sendToModel: boolean }, runShell: ReplOptions['runShell'], display: Display, onPrinted: () => void): Promise<void> {
  let output = '';
  display.print(`! ${line.command}`);
  onPrinted();
  const { exitCode } = await runShell(line.command, { sendToModel: line.sendToModel, onOutput: (chunk) => { output += chunk; } });
  const end = exitCode === 0 ? '' : `[exit ${exitCode ?? 'unknown'}]`;
  const text = [output.replace(/\n$/, ''), end].filter((part) => part !== '').join('\n');
  if (text !== '') display.print(text);
  onPrinted();
}
