import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Enough to tell a process from a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** On Linux the boot and the process-number space (`<boot id> <namespace>`); elsewhere null. */
  readonly machine: string | null;
  /** On Linux the start time in clock ticks since boot, from /proc/<pid>/stat; elsewhere null. */
  readonly started: string | null;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, host: hostname(), machine: machineId(), started: startTime(process.pid) };
}

/** Whether `other` still runs, as far as it can be seen from `me`. `unknown`: it is on another machine or in another
 * container. */
export function isRunning(other: ProcessIdentity, me: ProcessIdentity): 'yes' | 'no' | 'unknown' {
  if (other.machine !== me.machine) return rebooted(other, me) ? 'no' : 'unknown';
  if (other.host !== me.host && me.machine === null) return 'unknown';
  if (!isAlive(other.pid)) return 'no';
  const started = startTime(other.pid);
  return started === null || other.started === null || started === other.started ? 'yes' : 'no';
}

/** The same host after another boot: whatever ran then is gone. */
function rebooted(other: ProcessIdentity, me: ProcessIdentity): boolean {
  if (other.machine === null || me.machine === null) return false;
  return other.host === me.host && other.machine.split(' ')[0] !== me.machine.split(' ')[0];
}

/** True where a process has this number, whoever it is. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && Reflect.get(error, 'code') === 'EPERM';
  }
}

function machineId(): string | null {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** Field 22 of /proc/<pid>/stat; the command in field 2 may hold spaces and brackets. Source: proc(5). A zombie counts
 * as gone. */
function startTime(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? 'dead' : (fields[19] ?? null);
  } catch {
    return null;
  }
}
