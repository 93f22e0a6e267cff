import { type Decider, effectLines, type Effects, effectsText, hasEffects } from '../core/effects.js';
import { errorEnvelope } from '../core/envelope.js';
import { type EffectsSummary, unlistedReason, type Verdict } from '../core/policy.js';
import type { BoundCall, Rehearsal, ToolContext, ToolOutcome } from '../core/tool.js';
import type { DispatchDeps } from './dependencies.js';

/** A call that ran on a copy-on-write view of the files, and what it did there as a person is shown it. */
export interface RehearsedCall {
  readonly rehearsal: Rehearsal;
  readonly summary: EffectsSummary;
}

/** The decision about a call, as its result records it. */
export interface CallDecision {
  readonly decidedBy?: Decider;
  readonly effects?: Effects;
  readonly kept?: boolean;
}

const maxDiffBytes = 64 * 1024;

/** Rehearses a call. Null, or a sentence without its end, where it cannot be rehearsed. Never rejects. */
export async function rehearseCall(
  d: DispatchDeps,
  bound: BoundCall,
  ctx: ToolContext,
): Promise<RehearsedCall | string> {
  const rehearsal = (await bound.tool.rehearse?.(bound.args, ctx)) ?? 'it cannot be rehearsed';
  if (typeof rehearsal === 'string') {
    d.host.log({ at: 'rehearsal', message: 'a call was not rehearsed', tool: bound.tool.name, reason: rehearsal });
    return rehearsal;
  }
  return { rehearsal, summary: await summarizeEffects(d, rehearsal) };
}

async function summarizeEffects(d: DispatchDeps, rehearsal: Rehearsal): Promise<EffectsSummary> {
  const { effects, keepProblem } = rehearsal;
  if (!hasEffects(rehearsal))
    return {
      effects,
      text: effectsText(rehearsal),
      lines: [],
      diff: '',
      keepProblem: 'there is nothing to save',
      dangers: [],
    };
  const shown = (path: string): string => (path.startsWith(`${d.cwd}/`) ? path.slice(d.cwd.length + 1) : path);
  const touched = [...effects.deleted, ...effects.written.map(({ path }) => path)];
  const dangers = (await d.tools.policy.dangersOf?.(touched)) ?? [];
  const hidden = <T>(value: T): T => d.secrets?.deep(value) ?? value;
  return hidden({
    effects,
    text: effectsText(rehearsal, shown),
    lines: effectLines(effects, shown),
    diff: await rehearsal.diff(maxDiffBytes),
    keepProblem: keepProblem ?? (dangers.length > 0 ? 'it changes protected files' : null),
    dangers,
  });
}

/** The verdict on a call whose effects are known. */
export function addEffects(verdict: Verdict, { summary }: RehearsedCall): Verdict {
  const { dangers, text } = summary;
  return {
    ...verdict,
    risk: dangers.length > 0 ? 'dangerous' : verdict.risk,
    reasons: [...dangers, `it ${text}`, ...verdict.reasons.filter((reason) => !reason.endsWith(unlistedReason))],
    // A rule for the command would also allow the danger that the rehearsal showed.
    ...(dangers.length > 0 ? { rules: [] } : {}),
  };
}

/** Keeps what a rehearsal did. */
export async function keepRehearsal({ rehearsal }: RehearsedCall): Promise<ToolOutcome> {
  const kept = await rehearsal.keep();
  if (kept.ok) return { ...kept.outcome, summary: `${kept.outcome.summary} · kept` };
  const error = `Nothing was changed, because the changes could not be kept: ${kept.problem}. Make the call again.`;
  return { envelope: errorEnvelope('execution_failed', error), summary: error };
}
