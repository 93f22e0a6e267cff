import { readFileSync } from 'node:fs';

export interface BoundedRun {
  /** The path of a program of our own: it reads standard input to its end and prints its result. */
  readonly program: string;
  readonly input: Uint8Array;
  readonly timeoutMs: number;
  /** The most memory of its objects. */
  readonly maxHeapMb: number;
  /** The most memory that it may take beyond what Node itself needs; Linux alone says how much that is. */
  readonly maxGrowthMb: number;
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

/** `memory`: it needed more than `limitMb`. */
export type BoundedEnd =
  | { readonly ended: 'exit'; readonly output: Uint8Array }
  | { readonly ended: 'memory'; readonly limitMb: number }
  | { readonly ended: 'timeout' | 'cancelled' | 'failed' };

/** What an idle Node takes, rounded up. */
const nodeMb = 96;
const watchMs = 20;

/** Runs a program of our own in a process of its own, and kills it at a limit: what it takes is never our memory. Never
 * rejects. */
export async function runBounded(run: BoundedRun): Promise<BoundedEnd> {
  if (run.signal.aborted) return { ended: 'cancelled' };
  const { startApart } = await import('./start-child.js');
  const child = startApart(run.program, run.input, run);
  let stopped: BoundedEnd | null = null;
  const stop = (end: BoundedEnd): void => {
    stopped ??= end;
    child.kill();
  };
  const cancel = (): void => {
    stop({ ended: 'cancelled' });
  };
  const timer = setTimeout(() => {
    stop({ ended: 'timeout' });
  }, run.timeoutMs);
  const watch = setInterval(() => {
    if (residentMb(child.pid) > nodeMb + run.maxGrowthMb) stop({ ended: 'memory', limitMb: run.maxGrowthMb });
  }, watchMs);
  run.signal.addEventListener('abort', cancel, { once: true });
  const { code, signal, output } = await child.ended;
  clearTimeout(timer);
  clearInterval(watch);
  run.signal.removeEventListener('abort', cancel);
  if (stopped !== null) return stopped;
  if (code === 0) return { ended: 'exit', output };
  // V8 aborts the process at its limit.
  return signal === 'SIGABRT' || code === 134 ? { ended: 'memory', limitMb: run.maxHeapMb } : { ended: 'failed' };
}

const pageBytes = 4096;

/** Returns the resident memory of a process; 0 where the system does not say. */
function residentMb(pid: number | undefined): number {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    return (pages * pageBytes) / (1024 * 1024);
  } catch {
    return 0;
  }
}
