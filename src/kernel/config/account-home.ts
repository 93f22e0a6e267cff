import { userInfo } from 'node:os';
import { isAbsolute } from 'node:path';
import type { Environment } from './settings-file.js';

/** Returns the home directory: HOME, or that of the account where HOME is empty or relative; null where neither is an
 * absolute path. */
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
