import { readFileSync } from 'node:fs';

/** The fields of /proc/PID/stat that say to which job of which terminal a process belongs. */
interface Job {
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The group that has the terminal. */
  readonly foreground: number;
}

/** Returns true if a shell waits for this program, so that it may be stopped: a parent in the same session and another
 * group. A group without one stays stopped for ever. Assumes a shell if there is no /proc.
 * Source: POSIX, "Orphaned Process Group". */
function hasShell(): boolean {
  const own = jobOf('self');
  if (own === null) return true;
  for (let job: Job = own; ;) {
    const parent = jobOf(String(job.parent));
    if (parent === null || parent.session !== own.session) return false;
    if (parent.group !== own.group) return true;
    job = parent;
  }
}

/** Returns true if this program has the terminal. One in the background that changes the terminal is stopped by it,
 * before it sees any other signal. */
export function hasTerminal(): boolean {
  const own = jobOf('self');
  return own === null || own.group === own.foreground;
}

/** Source: proc(5). The name of the program, in brackets, may hold anything. */
function jobOf(pid: string): Job | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [, parent = 0, group = 0, session = 0, , foreground = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    return { parent, group, session, foreground };
  } catch {
    return null;
  }
}

/** The effect of Ctrl-Z. */
export const jobControl = {
  hasShell,
  hasTerminal,
  /** Returns what kill(1) calls our process group; our process alone where the group is not known. */
  group: (): number => {
    const own = jobOf('self');
    return own === null ? process.pid : -own.group;
  },
  stop: (): void => {
    process.kill(0, 'SIGSTOP');
  },
};
