import { appendFileSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';
import type { Log } from '../../kernel/core/runtime.js';
import { visible } from './foreign-tools.js';

/** Takes what the program of a server writes to its standard error, cut anywhere; null at its end. */
export type KeepErrors = (server: string, chunk: Buffer | null) => void;

export interface ErrorLogsOptions {
  /** The folder of `<server>.log`; the log before it has `.1` after its name. */
  readonly folder: string;
  /** Hides secrets. */
  readonly mask: (text: string) => string;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
  readonly log: Log;
}

const maxFileBytes = 1024 * 1024;
/** A longer line is written in parts. */
const maxLineBytes = 8192;
/** More is dropped: a program that floods its standard error must not keep us, or the disk, busy. */
const maxBytesAMinute = 1024 * 1024;

interface Kept {
  rest: Buffer;
  minuteEnds: number;
  bytesLeft: number;
}

/** Keeps the standard error of servers, line by line, masked and without what nobody sees. At most 1 MiB a file. */
export function createErrorLogs({ folder, mask, now, log }: ErrorLogsOptions): KeepErrors {
  const servers = new Map<string, Kept>();
  const write = (server: string, text: string): void => {
    const file = join(folder, `${server}.log`);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const size = statsAt(file)?.size ?? 0;
      if (size + Buffer.byteLength(text) > maxFileBytes) renameSync(file, `${file}.1`);
      appendFileSync(file, text, { mode: 0o600 });
    } catch (error) {
      log({ at: 'mcp', message: 'standard error could not be kept', server, error: String(error), detail: true });
    }
  };
  const take = (server: string, kept: Kept, lines: Buffer): void => {
    if (lines.length === 0) return;
    if (now() >= kept.minuteEnds) Object.assign(kept, { minuteEnds: now() + 60_000, bytesLeft: maxBytesAMinute });
    if (kept.bytesLeft <= 0) return;
    const part = lines.subarray(0, kept.bytesLeft);
    kept.bytesLeft -= lines.length;
    const cut = kept.bytesLeft <= 0 ? '\n[more than 1 MiB in a minute; the rest is dropped]' : '';
    write(server, `${mask(visible(part.toString('utf8')))}${cut}\n`);
  };
  return (server, chunk) => {
    const kept = servers.get(server) ?? { rest: Buffer.alloc(0), minuteEnds: 0, bytesLeft: 0 };
    servers.set(server, kept);
    if (chunk === null) {
      take(server, kept, kept.rest);
      kept.rest = Buffer.alloc(0);
      return;
    }
    const all = Buffer.concat([kept.rest, chunk]);
    const end = all.lastIndexOf(10);
    const isLong = all.length - end > maxLineBytes;
    take(server, kept, isLong ? all : all.subarray(0, Math.max(end, 0)));
    kept.rest = isLong ? Buffer.alloc(0) : Buffer.from(all.subarray(end + 1));
  };
}
