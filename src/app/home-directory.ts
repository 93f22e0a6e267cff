import { CliError, exit } from '../kernel/console/command.js';
import { accountHome } from '../kernel/config/account-home.js';
import type { Environment } from '../kernel/config/settings-file.js';

/** Returns the home directory: HOME, or that of the account where HOME is empty or relative, as in cron jobs and
 * containers. Throws a `CliError` where neither is an absolute path. */
export function homeDirectory(env: Environment): string {
  const home = accountHome(env);
  if (home !== null) return home;
  const given = env['HOME'];
  throw new CliError(
    exit.usage,
    given === undefined ? 'HOME is not set' : `HOME is ${JSON.stringify(given)}, which is not an absolute path`,
    'The account has no home directory either. Set HOME to the absolute path of a directory.',
  );
}
