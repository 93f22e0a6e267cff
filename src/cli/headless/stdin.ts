import { CliError, exit } from '../../commands/cli-error.js';

/** No model takes a prompt of this size; more is not kept in memory. */
const maxBytes = 32 * 1024 * 1024;

/** All of standard input as text; a `CliError` where it is longer than any prompt can be. After `noticeMs` without an
 * end it says on stderr what it waits for. */
export async function readStdin(
  input: NodeJS.ReadStream,
  notice: (text: string) => void,
  noticeMs = 2000,
): Promise<string> {
  const timer = setTimeout(() => {
    notice('agent: still reading standard input; it is not a terminal. Close it (or run with </dev/null) to go on.\n');
  }, noticeMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input) {
      const part = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
      bytes += part.length;
      if (bytes > maxBytes)
        throw new CliError(
          exit.usage,
          `standard input has more than ${maxBytes} bytes; no model takes that`,
          'Put it into a file and say where it is: the model reads what it needs.',
        );
      chunks.push(part);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EISDIR')) throw error;
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString('utf8').toWellFormed();
}

/** The prompt of a headless run: the words, and below a blank line what was piped in. */
export function joinPrompt(words: readonly string[], piped: string): string {
  return [words.join(' ').trim(), piped.trim() === '' ? '' : piped.replace(/\n+$/, '')]
    .filter((part) => part !== '')
    .join('\n\n');
}
