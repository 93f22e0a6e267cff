import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { runConfigCommand } from './config-command.js';
import type { RootOptions } from '../options.js';
import { settingFlags, trustedBefore } from '../setup.js';
import { printData, printError } from '../print.js';

/** `agent config …`: `words` are the verb and what follows it, without options. */
export async function configAction(
  words: readonly string[],
  options: RootOptions & { readonly json?: boolean },
): Promise<number> {
  const cwd = resolve(options.cwd ?? '.');
  const { env } = process;
  const home = env.HOME ?? homedir();
  return await runConfigCommand(words, {
    stdout: { write: printData },
    stderr: { write: printError },
    env,
    cwd,
    home,
    projectTrusted: trustedBefore(env, home),
    json: options.json === true,
    set: options.set,
    flags: settingFlags(options, cwd),
  });
}
