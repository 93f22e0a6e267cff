/** All of standard input as text. After `noticeMs` without an end it says on stderr what it waits for. */
export async function readStdin(input: NodeJS.ReadStream, notice: (text: string) => void, noticeMs = 2000): Promise<string> {
  const timer = setTimeout(() => { notice('agent: still reading standard input; it is not a terminal. Close it (or run with </dev/null) to go on.\n'); }, noticeMs);
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of input) chunks.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EISDIR')) throw error;
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString('utf8').toWellFormed();
}

/** The prompt of a headless run: the words, and below a blank line what was piped in. */
export function joinPrompt(words: readonly string[], piped: string): string {
  return [words.join(' ').trim(), piped.trim() === '' ? '' : piped.replace(/\n+$/, '')].filter((part) => part !== '').join('\n\n');
}
