import { userInfo } from 'node:os';
import { isAbsolute } from 'node:path';
import { CliError, exit } from '../commands/command.js';
import type { Environment } from '../config/settings-file.js';

/** Returns the home directory: HOME, or that of the account where HOME is empty or relative, as in cron jobs and
 * containers. Throws a `CliError` where neither is an absolute path. */
export function homeDirectory(env: Environment): string {
  const home = accountHome(env);
  if (home !== null) return home;
  const given = env['HOME'];
  throw new CliError(
    exit.usage,
    given === undefined ? 'HOME is not set' : `HOME is ${JSON.stringify(given)}, which is no absolute path`,
    'The account has no home directory either. Set HOME to the absolute path of a directory.',
  );
}

/** Like `homeDirectory`, but returns null where it throws. */
export function accountHome(env: Environment): string | null {
  const given = env['HOME'] ?? '';
  if (isAbsolute(given)) return given;
  try {
    const { homedir } = userInfo();
    return isAbsolute(homedir) ? homedir : null;
  } catch {
    return null;
  }
}
