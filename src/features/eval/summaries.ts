import type { RunResult } from './eval-runs.js';
import { wilson } from './scores.js';

/** The figures of one model. `low`, `high`: the Wilson interval of its share, 95 %. */
export interface ModelSummary {
  readonly model: string;
  readonly passed: number;
  readonly total: number;
  readonly low: number;
  readonly high: number;
  /** Null where a price is not known. */
  readonly cost_usd: number | null;
}

export function summaries(results: readonly RunResult[]): readonly ModelSummary[] {
  return [...new Set(results.map(({ model }) => model))].map((model) => {
    const own = results.filter((result) => result.model === model);
    const passed = own.filter(({ status }) => status === 'passed').length;
    return { model, passed, total: own.length, ...wilson(passed, own.length), cost_usd: costOf(own) };
  });
}

function costOf(results: readonly RunResult[]): number | null {
  const costs = results.map(({ cost_usd: cost }) => cost);
  return costs.some((cost) => cost === null) ? null : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0);
}
