import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The shell of commands: the bash that the path leads to, else that of the system, else `sh`. */
export function shellOf({ PATH = '' }: Readonly<Record<string, string | undefined>>): string {
  if (PATH.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'bash')))) return 'bash';
  return ['/bin/bash', '/usr/bin/bash'].find((file) => existsSync(file)) ?? 'sh';
}
