import { readdirSync, readFileSync } from 'node:fs';
import { signalGroup } from '../process-group.js';

/** Signals what runs in the sandbox that process `pid` keeps. Not bubblewrap's own two processes: with either of them
 * everything inside would end at once and by KILL. */
export function signalConfined(pid: number, signal: NodeJS.Signals): void {
  const children = childrenByParent();
  const inside: number[] = (children.get(pid) ?? []).flatMap((keeper) => children.get(keeper) ?? []);
  for (let index = 0; index < inside.length; index++) inside.push(...(children.get(inside[index] ?? 0) ?? []));
  if (inside.length === 0) signalGroup(pid, signal);
  for (const id of inside) {
    try {
      process.kill(id, signal);
    } catch {
      /* ended meanwhile */
    }
  }
}

/** Source: proc(5), /proc/PID/stat; the command in parentheses may hold anything. */
function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'latin1');
      const parent = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      /* ended meanwhile */
    }
  }
  return children;
}
