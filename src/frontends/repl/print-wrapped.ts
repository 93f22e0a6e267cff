import { errorsAreTerminal, outputColumns, print, printError } from '../../kernel/console/print.js';
import { wrapWords } from '../../ui/terminal/rows.js';

/** Prints lines that break at blanks where the terminal is narrower. */
export function printWrapped(text: string): void {
  print(`${wrapped(text)}\n`);
}

/** Prints lines on standard error that break at blanks where the terminal is narrower. */
export function printErrorWrapped(text: string): void {
  printError(`${errorsAreTerminal() ? wrapped(text) : text}\n`);
}

function wrapped(text: string): string {
  const columns = outputColumns();
  if (columns === undefined) return text;
  return text
    .split('\n')
    .flatMap((line) => wrapWords(line, columns))
    .join('\n');
}
