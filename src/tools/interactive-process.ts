import { spawn } from 'node:child_process';

/** Runs a program of the user's choice on the terminal itself (an editor) and waits for its end. Gives its exit code; null where a signal ended it
 *  or it could not be started. The caller has given the terminal back before. */
export function runInteractive(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, stdio: 'inherit' });
    child.once('error', () => { resolve(null); });
    child.once('exit', (code) => { resolve(code); });
  });
}
