/** Runs a program of the user's choice on the terminal itself (an editor) and waits for its end. Gives its exit code;
 * null where a signal ended it or it could not be started. The caller has given the terminal back before. */
export async function runInteractive(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  const { execa } = await import('execa');
  const { exitCode } = await execa(file, args, { cwd, stdio: 'inherit', reject: false });
  return exitCode ?? null;
}
