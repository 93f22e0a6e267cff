import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { type Records, type SessionRow, ulid } from '../../../src/kernel/core/store.js';
import type { Task } from '../../../src/features/scheduled-tasks/tasks.js';

/** A clock that moves one millisecond with every look. */
export function tickingClock(start = 1_800_000_000_000): () => number {
  let time = start;
  return () => time++;
}

export const clock = tickingClock();

export function sessionRow(change: Partial<SessionRow> = {}): SessionRow {
  const createdAt = change.createdAt ?? clock();
  return {
    id: ulid(createdAt, crypto.getRandomValues(new Uint8Array(16))),
    parentId: null,
    cwd: '/work/project',
    title: null,
    provider: 'offline',
    model: 'offline',
    createdAt,
    updatedAt: createdAt,
    ...change,
  };
}

export function event(seq: number, change: Partial<Event> = {}): Event {
  return { seq, kind: 'user', content: `prompt ${seq}`, data: null, createdAt: clock(), ...change };
}

export function usage(seq: number, costUsd: number | null): Event {
  return event(seq, {
    kind: 'usage',
    content: null,
    data: { response_id: 'r', input_tokens: 1, output_tokens: 1, cost_usd: costUsd },
  });
}

export const noon = Date.UTC(2026, 0, 27, 12);

/** A reminder that comes every day. */
export function task(id: string, change: Partial<Task> = {}): Task {
  return {
    id,
    type: 'reminder',
    description: 'check the oven',
    scheduleType: 'recurring',
    schedule: { cron: '0 9 * * *', tz: 'Europe/Berlin', source: 'daily 9am' },
    execution: null,
    enabled: true,
    createdAt: noon,
    lastRun: null,
    nextRun: noon,
    tz: 'Europe/Berlin',
    cwd: '/work/project',
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
    ...change,
  };
}

/** The rows of an answer as objects. */
export async function answered(records: Records, sql: string, parameters: readonly unknown[] = []): Promise<object[]> {
  const { columns, rows } = (await records.ask?.(sql, parameters)) ?? { columns: [], rows: [] };
  const found: object[] = [];
  for await (const row of rows) found.push(Object.fromEntries(columns.map((name, index) => [name, row[index]])));
  return found;
}

/** A folder that is removed after the file's tests. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-store-'));
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
