import type { CallTotal, RecordTotals, RequestTotal, SpendingRow, Spent, TurnTotal } from '../core/store.js';
import type { CountedCall } from './recorded-calls.js';

/** Days of every time zone begin with such a period. */
export const periodMs = 900_000;

/** A total and the period of its calls, requests, or the prompts of its turns. */
type InPeriod<T> = T & { readonly at: number };

const nothing: Spent = { requests: 0, inputTokens: 0, outputTokens: 0, costUsd: 0, unpriced: 0 };

function periodOf(unixMs: number): number {
  return Math.floor(unixMs / periodMs) * periodMs;
}

/** Adds up a record that is read whole. `rows` are in the order of `Records.spending`. */
export function addUp(calls: readonly CountedCall[], rows: readonly SpendingRow[]): RecordTotals {
  return { calls: addCalls(calls), requests: addRequests(rows), turns: addTurns(rows) };
}

export function addCalls(calls: readonly CountedCall[]): readonly InPeriod<CallTotal>[] {
  const totals = new Map<string, InPeriod<CallTotal> & { calls: number; readonly durations: number[] }>();
  for (const { tool, status, createdAt, started, durationMs } of calls) {
    const at = periodOf(createdAt);
    const key = JSON.stringify([at, tool, status]);
    const total = totals.get(key) ?? { at, tool, status, calls: 0, durations: [] };
    totals.set(key, total);
    total.calls++;
    if (started && durationMs !== null) total.durations.push(durationMs);
  }
  return [...totals.values()];
}

export function addRequests(rows: readonly SpendingRow[]): readonly RequestTotal[] {
  const totals = new Map<string, RequestTotal>();
  for (const row of rows) {
    if (row.kind !== 'usage') continue;
    const { cwd, provider, model, role } = row;
    const at = periodOf(row.createdAt);
    const key = JSON.stringify([at, cwd, provider, model, role]);
    totals.set(key, { at, cwd, provider, model, role, ...plus(totals.get(key) ?? nothing, spentOn(row)) });
  }
  return [...totals.values()];
}

/** A user turn is a prompt and everything up to the next one. */
export function addTurns(rows: readonly SpendingRow[]): readonly InPeriod<TurnTotal>[] {
  const totals = new Map<string, InPeriod<TurnTotal>>();
  for (const { at, responses, spent } of turnsOf(rows)) {
    const key = JSON.stringify([at, responses.size]);
    const total = totals.get(key);
    totals.set(key, {
      at,
      responses: responses.size,
      turns: (total?.turns ?? 0) + 1,
      ...plus(total ?? nothing, spent),
    });
  }
  return [...totals.values()];
}

interface Turn {
  readonly at: number;
  readonly responses: Set<string>;
  spent: Spent;
}

function turnsOf(rows: readonly SpendingRow[]): readonly Turn[] {
  const turns: Turn[] = [];
  let session = '';
  let turn: Turn | null = null;
  for (const row of rows) {
    if (row.sessionId !== session) turn = null;
    session = row.sessionId;
    if (row.kind === 'user') {
      turn = { at: periodOf(row.createdAt), responses: new Set(), spent: nothing };
      turns.push(turn);
    }
    if (row.kind === 'tool_call') turn?.responses.add(row.responseId ?? '');
    if (row.kind === 'usage' && turn) turn.spent = plus(turn.spent, spentOn(row));
  }
  return turns;
}

function spentOn({ inputTokens, outputTokens, costUsd }: SpendingRow): Spent {
  return { requests: 1, inputTokens, outputTokens, costUsd: costUsd ?? 0, unpriced: costUsd === null ? 1 : 0 };
}

/** Adds amounts; whatever else the two have is left out. */
function plus(one: Spent, other: Spent): Spent {
  return {
    requests: one.requests + other.requests,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    costUsd: one.costUsd + other.costUsd,
    unpriced: one.unpriced + other.unpriced,
  };
}
