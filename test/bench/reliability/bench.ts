import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Event } from '../../../src/kernel/core/event.js';
import type { SessionRow } from '../../../src/kernel/core/store.js';

/** Runs `work` in a folder that is removed afterwards, prints the line it gives, and ends with 1 where it says that
 * something is broken. */
export async function measure(
  work: (folder: string) => Promise<{ readonly line: string; readonly ok: boolean }>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-reliability-'));
  const start = performance.now();
  try {
    const { line, ok } = await work(folder);
    console.log(`${line} (${((performance.now() - start) / 1000).toFixed(0)} s)`);
    process.exitCode = ok ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How often: the first argument, or `usual`. */
export function rounds(usual: number): number {
  return Number(process.argv[2] ?? usual);
}

export function row(id: string, cwd = '/work'): SessionRow {
  return {
    id,
    parentId: null,
    cwd,
    title: null,
    provider: 'offline',
    model: 'offline',
    createdAt: 1_800_000_000_000,
    updatedAt: 1_800_000_000_000,
  };
}

export function event(seq: number, text: string): Event {
  return { seq, kind: 'user', content: `${seq} ${text}`, data: { seq }, createdAt: 1_800_000_000_000 + seq };
}
