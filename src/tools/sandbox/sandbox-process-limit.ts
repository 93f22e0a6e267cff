import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folderName = 'agent-sandbox';

/** The kernel does not count root's processes against `ulimit -u`, so as root a control group does it: one for all our
 * sandboxes, which stays when they are gone. Gives the file that a process joins by, or null where no control group can
 * be made (most containers). Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "PID". */
export function processLimitFile(maxProcesses: number): string | null {
  const bases = ['/sys/fs/cgroup', join('/sys/fs/cgroup/pids', ownGroup())];
  return (
    bases
      .filter((base) => existsSync(join(base, 'cgroup.procs')))
      .map((base) => limited(join(base, folderName), maxProcesses))
      .find((file) => file !== null) ?? null
  );
}

function limited(folder: string, maxProcesses: number): string | null {
  try {
    mkdirSync(folder, { recursive: true });
    try {
      writeFileSync(join(folder, 'pids.max'), String(maxProcesses), { flag: 'r+' });
      return join(folder, 'cgroup.procs');
    } catch {
      rmdirSync(folder); // no such controller here
      return null;
    }
  } catch {
    return null;
  }
}

/** Our own group below the controller's root. Source: cgroups(7), /proc/PID/cgroup. */
function ownGroup(): string {
  try {
    return /^\d+:pids:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
}
