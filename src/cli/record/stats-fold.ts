/** A row of the record that statistics are made of, in order of session and seq. */
export interface StatsRow {
  readonly session_id: string;
  readonly kind: string;
  readonly response_id: string | null;
  readonly created_at: number;
  readonly cwd: string;
  readonly provider: string | null;
  readonly model: string | null;
  readonly input: number | null;
  readonly output: number | null;
  readonly cost: number | null;
}

/** Tokens and cost of some requests; `cost_usd` counts what is known, `unpriced` how many requests have no known
 * price. */
export interface Spending {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_usd: number;
  readonly unpriced: number;
}

export interface TurnStats {
  /** User turns, and those with at least one response that asked for tools. */
  readonly with_tools: Spending & { readonly turns: number };
  readonly without_tools: Spending & { readonly turns: number };
  /** Responses that asked for tools, in a user turn that had any. */
  readonly depth: { readonly p50: number; readonly p95: number; readonly most: number };
  readonly per_day: readonly (Spending & { readonly day: string })[];
  readonly per_model: readonly (Spending & { readonly model: string })[];
  readonly per_project: readonly (Spending & { readonly cwd: string })[];
}

interface Turn {
  readonly responses: Set<string>;
  spent: Spending;
}

const nothing: Spending = { requests: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0, unpriced: 0 };

/** Folds the rows; a user turn is a user event and all that follows it up to the next. */
export function foldTurns(rows: readonly StatsRow[], dayOf: (unixMs: number) => string): TurnStats {
  const turns = turnsOf(rows);
  const requests = rows.filter((row) => row.kind === 'usage');
  const depths = turns
    .map((turn) => turn.responses.size)
    .filter((size) => size > 0)
    .sort((a, b) => a - b);
  return {
    with_tools: sum(turns.filter((turn) => turn.responses.size > 0)),
    without_tools: sum(turns.filter((turn) => turn.responses.size === 0)),
    depth: { p50: percentile(depths, 0.5), p95: percentile(depths, 0.95), most: depths.at(-1) ?? 0 },
    per_day: grouped(requests, (row) => dayOf(row.created_at))
      .map(([day, spent]) => ({ day, ...spent }))
      .sort((one, other) => one.day.localeCompare(other.day)),
    per_model: byRequests(
      grouped(requests, (row) => `${row.provider ?? '?'}/${row.model ?? '?'}`).map(([model, spent]) => ({
        model,
        ...spent,
      })),
    ),
    per_project: byRequests(grouped(requests, (row) => row.cwd).map(([cwd, spent]) => ({ cwd, ...spent }))),
  };
}

function turnsOf(rows: readonly StatsRow[]): readonly Turn[] {
  const turns: Turn[] = [];
  let session = '';
  let turn: Turn | null = null;
  for (const row of rows) {
    if (row.session_id !== session) turn = null;
    session = row.session_id;
    if (row.kind === 'user') {
      turn = { responses: new Set(), spent: nothing };
      turns.push(turn);
    }
    if (row.kind === 'tool_call') turn?.responses.add(row.response_id ?? '');
    if (row.kind === 'usage' && turn) turn.spent = plus(turn.spent, row);
  }
  return turns;
}

function grouped(
  requests: readonly StatsRow[],
  keyOf: (row: StatsRow) => string,
): readonly (readonly [string, Spending])[] {
  const groups = new Map<string, Spending>();
  for (const row of requests) groups.set(keyOf(row), plus(groups.get(keyOf(row)) ?? nothing, row));
  return [...groups];
}

function byRequests<T extends Spending>(groups: readonly T[]): readonly T[] {
  return [...groups].sort((one, other) => other.requests - one.requests);
}

/** The value below which `share` of the sorted values lie (nearest rank); 0 where there are none. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

function plus(spent: Spending, row: StatsRow): Spending {
  return {
    requests: spent.requests + 1,
    input_tokens: spent.input_tokens + (row.input ?? 0),
    output_tokens: spent.output_tokens + (row.output ?? 0),
    cost_usd: spent.cost_usd + (row.cost ?? 0),
    unpriced: spent.unpriced + (row.cost === null ? 1 : 0),
  };
}

function sum(turns: readonly Turn[]): Spending & { readonly turns: number } {
  const all = turns.reduce<Spending>(
    (total, { spent }) => ({
      requests: total.requests + spent.requests,
      input_tokens: total.input_tokens + spent.input_tokens,
      output_tokens: total.output_tokens + spent.output_tokens,
      cost_usd: total.cost_usd + spent.cost_usd,
      unpriced: total.unpriced + spent.unpriced,
    }),
    nothing,
  );
  return { turns: turns.length, ...all };
}
