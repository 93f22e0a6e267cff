import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The shell of commands: the bash that the path leads to, else that of the system, else `sh`. */
export function shellOf({ PATH = '' }: Readonly<Record<string, string | undefined>>): string {
  if (PATH.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'bash')))) return 'bash';
  return ['/bin/bash', '/usr/bin/bash'].find((file) => existsSync(file)) ?? 'sh';
}

/** Returns what a model must know of an old shell, or null. The bash of macOS is 3.2 in every version; another one comes
 * before it on PATH. */
export function oldShell(
  { PATH = '' }: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform,
): string | null {
  if (platform !== 'darwin') return null;
  const folder = PATH.split(delimiter).find((name) => name !== '' && existsSync(join(name, 'bash'))) ?? '/bin';
  return ['/bin', '/usr/bin'].includes(folder) ? 'bash 3.2: no associative arrays, mapfile or ${x^^}' : null;
}
