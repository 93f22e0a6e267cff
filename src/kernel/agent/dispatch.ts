import { startCallClock } from '../core/call-clock.js';
import { clampEnvelope, errorEnvelope, isError, type ErrorEnvelope } from '../core/envelope.js';
import type { EventDraft, ToolCallData } from '../core/event.js';
import type { FormAnswer } from '../core/form.js';
import type { WatchReport } from '../core/file-changes.js';
import type { Verdict } from '../core/policy.js';
import {
  type Denial,
  type Binding,
  type BoundCall,
  expandCall,
  type ToolContext,
  type ToolOutcome,
} from '../core/tool.js';
import { captureChanges, type CapturedChanges } from './file-history.js';
import { afterCall, afterDenial, beforeCall, type Denied } from './apply-hooks.js';
import { contextOf } from './call-context.js';
import { type AllowedCall, cancelledBefore, requestApproval } from './call-permission.js';
import type { DispatchDeps } from './dependencies.js';
import { type CallDecision, keepRehearsal, type RehearsedCall } from './rehearse-call.js';
import { missingPart } from '../core/missing-part.js';

/** The outcome of one call. */
export interface Dispatched {
  readonly outcome: ToolOutcome;
  /** This call, where it was not allowed, or the calls of the sub-agent that it started. */
  readonly denials: readonly Denial[];
  readonly durationMs: number;
  readonly captured?: CapturedChanges;
  /** The reason why a hook wants the turn to end here. */
  readonly halt?: string;
  readonly decision?: CallDecision;
}

/** A read that takes longer is shown while it runs. */
const quickReadMs = 20;

/** A recorded call and what the registry made of it. */
export interface PreparedCall {
  readonly call: ToolCallData;
  /** The content of its event. */
  readonly content: string;
  readonly binding: Binding;
}

/** Takes one call from its binding through policy and the tool to a clamped outcome. Never throws: every call has an
 * outcome. Source: contracts 3, seed 000. */
export async function dispatch(d: DispatchDeps, prepared: PreparedCall, signal: AbortSignal): Promise<Dispatched> {
  const { call, binding } = prepared;
  if (signal.aborted) return refused(cancelledBefore);
  if (!binding.ok) return refused(binding.error);
  const hooked = await beforeCall(d, call, await expandCall(binding.bound, signal), signal);
  if (hooked.error)
    return {
      ...refused(hooked.error, hooked.denied === null ? [] : [denialOf(prepared, hooked.denied)]),
      ...(hooked.said.stop === null ? {} : { halt: hooked.said.stop }),
    };
  const filled = withSecrets(d, hooked.bound);
  if (filled.error) return refused(filled.error);
  const { bound } = filled;
  bound.tool.prepare?.();
  const permission = await requestApproval(d, hooked.call, { bound, shown: hooked.bound, said: hooked.said }, signal);
  if (permission.error) return await notPermitted(d, prepared, { ...hooked, ...permission }, signal);
  const { verdict, approved, rehearsed, decision } = permission;
  if (signal.aborted) {
    await rehearsed?.rehearsal.discard();
    return refused(cancelledBefore);
  }
  const done = await runPermitted(d, hooked.call, { bound, verdict, approved, rehearsed, decision }, signal);
  return await afterCall(d, hooked, { ...done, decision }, signal);
}

/** Returns the result of a call that was not allowed, or that was cancelled before it ran. */
async function notPermitted(
  d: DispatchDeps,
  prepared: PreparedCall,
  { error: given, denied, decision, call, bound }: RefusedCall,
  signal: AbortSignal,
): Promise<Dispatched> {
  if (denied === null) return { ...refused(given), decision };
  const facts = { error: given, reason: denied.reason, by: decision.decidedBy ?? null };
  const { error, ...more } = await afterDenial(d, { call, bound }, facts, signal);
  return { ...refused(error, [denialOf(prepared, denied)]), ...more, decision };
}

interface RefusedCall {
  readonly error: ErrorEnvelope;
  readonly denied: Denied | null;
  readonly decision: CallDecision;
  readonly call: ToolCallData;
  readonly bound: BoundCall;
}

/** Runs a call that policy and the user allowed, and clamps its output. */
async function runPermitted(
  d: DispatchDeps,
  call: ToolCallData,
  allowed: AllowedCall,
  signal: AbortSignal,
): Promise<Dispatched> {
  const { bound, rehearsed } = allowed;
  const limited = d.tools.registry.admit(bound.tool.name);
  if (limited) {
    await rehearsed?.rehearsal.discard();
    return refused(limited);
  }
  const { verdict } = allowed;
  if (verdict.risk !== 'read-only') await d.tools.beforeChanges?.();
  if (rehearsed) return await useRehearsal(d, call, { ...allowed, rehearsed }, signal);
  const started = await start(d, call, bound, verdict);
  if (signal.aborted) return refused(cancelledBefore);
  const lookAgain = await watched(d, call, bound, verdict);
  const startedAt = d.host.now();
  const outcome = await run(d, { id: call.id, ...started }, allowed, signal);
  started.end();
  const durationMs = Math.max(0, Math.round(d.host.now() - startedAt));
  return finishCall(d, { bound, outcome, durationMs }, await lookAgain());
}

/** A call that ran. */
interface FinishedRun {
  readonly bound: BoundCall;
  readonly outcome: ToolOutcome;
  readonly durationMs: number;
}

/** Clamps the output of a call, and captures what it changed. */
function finishCall(d: DispatchDeps, { bound, outcome, durationMs }: FinishedRun, seen: WatchReport): Dispatched {
  const said = { ...outcome.envelope, ...bound.facts };
  const envelope = clampEnvelope(d.secrets?.envelope(said) ?? said, bound.limits.maxOutputBytes);
  const captured = d.tools.capture ? captureChanges(d.tools.capture, outcome, seen) : undefined;
  const { denials = [] } = outcome;
  return { outcome: { ...outcome, envelope }, denials, durationMs, ...(captured ? { captured } : {}) };
}

/** Returns the result of a rehearsal, or keeps its changes. The command does not run again. */
async function useRehearsal(
  d: DispatchDeps,
  call: ToolCallData,
  { bound, verdict, rehearsed, decision }: AllowedCall & { readonly rehearsed: RehearsedCall },
  signal: AbortSignal,
): Promise<Dispatched> {
  const started = await start(d, call, bound, decision.kept === true ? verdict : { ...verdict, risk: 'read-only' });
  started.end();
  if (signal.aborted) {
    await rehearsed.rehearsal.discard();
    return refused(cancelledBefore);
  }
  const startedAt = d.host.now();
  const outcome = await rehearsedOutcome(rehearsed, decision);
  const durationMs = Math.max(0, Math.round(d.host.now() - startedAt));
  return finishCall(d, { bound, outcome, durationMs }, nothingSeen);
}

async function rehearsedOutcome(rehearsed: RehearsedCall, { kept }: CallDecision): Promise<ToolOutcome> {
  if (kept === true) return await keepRehearsal(rehearsed);
  await rehearsed.rehearsal.discard();
  const { outcome } = rehearsed.rehearsal;
  return { ...outcome, summary: `${outcome.summary} · rehearsed` };
}

/** A call whose start is recorded. */
interface StartedCall {
  /** Shows what the call prints, never before the call itself. */
  readonly progress: (chunk: string) => void;
  readonly end: () => void;
}

/** Records the start of a call, which is on the disk before the call acts. A call that only reads, by its tool or by
 * the verdict on its command, is committed and reaches the disk with its result, or after `quickReadMs`. */
async function start(d: DispatchDeps, { id }: ToolCallData, bound: BoundCall, verdict: Verdict): Promise<StartedCall> {
  const started: EventDraft = { kind: 'tool_started', content: null, data: { tool_call_id: id } };
  const show = (chunk: string): void => {
    d.emit({ type: 'tool_output', callId: id, chunk });
  };
  const { effect } = bound.tool;
  if (effect !== 'read' && !(effect === 'execute' && verdict.risk === 'read-only')) {
    await d.record.append(started);
    return { progress: show, end: () => undefined };
  }
  await d.record.note(started);
  let held: string[] | null = [];
  const cancel = d.host.schedule(() => {
    void d.record.settle().then(() => {
      held?.forEach(show);
      held = null;
    });
  }, quickReadMs);
  return {
    progress: (chunk) => {
      if (held) held.push(chunk);
      else show(chunk);
    },
    end: () => {
      cancel();
      held = null;
    },
  };
}

const nothingSeen: WatchReport = { changes: [], folders: [] };

/** Looks at the files before a call that may change some, and returns how to look again. */
async function watched(
  d: DispatchDeps,
  call: ToolCallData,
  bound: BoundCall,
  verdict: Verdict,
): Promise<() => Promise<WatchReport>> {
  const watch = d.tools.capture?.watch;
  if (!watch || verdict.risk === 'read-only') return () => Promise.resolve(nothingSeen);
  return await watch.begin({
    effect: bound.tool.effect,
    cwd: d.cwd,
    verdict,
    commandText: bound.given ? JSON.stringify(bound.args) : call.function.arguments,
    knownPaths: d.record.knownFiles.keys(),
  });
}

function refused(error: ErrorEnvelope, denials: readonly Denial[] = []): Dispatched {
  return { outcome: { envelope: error, summary: error.error }, denials, durationMs: 0 };
}

function denialOf({ call, content }: PreparedCall, denied: Denied): Denial {
  const { name, arguments: text } = call.function;
  return { tool_call_id: call.id, name, arguments: text, content, ...denied };
}

type Filled = { readonly error: null; readonly bound: BoundCall } | { readonly error: ErrorEnvelope };

/** Puts the values of secrets in the place of their placeholders, for tools of this machine only. A call with a
 * placeholder whose value it may not have does not run. */
function withSecrets(d: DispatchDeps, bound: BoundCall): Filled {
  const { placeholders: wanted } = bound.tool;
  if (!d.secrets || !wanted) return { error: null, bound };
  const restored = d.secrets.restore(bound.args, wanted === 'shell');
  if (restored.ok) return { error: null, bound: { ...bound, args: restored.value } };
  const { placeholders, reason } = restored;
  return {
    error: errorEnvelope('execution_failed', `Not run: ${placeholders.join(', ')} ${whyNot[reason]}`, {
      reason: `secret_${reason}`,
      placeholders,
    }),
  };
}

/** The end of a sentence that begins with the placeholders. */
const whyNot = {
  unknown:
    'is a placeholder for a secret that is no longer in memory. Read the file that contains it again, or rerun the command that printed it, and repeat the call with the new placeholder.',
  key: 'is a placeholder for a provider key, which no call can use. Leave that part of the file unchanged and edit other lines.',
  shell:
    'is a placeholder for a value with shell metacharacters. Put it in single quotes, or write it to a file that the command reads.',
} as const;

async function run(
  d: DispatchDeps,
  { id, progress }: Pick<ToolCallData, 'id'> & StartedCall,
  { bound, verdict, approved }: AllowedCall,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const deadline = new AbortController();
  const { timeoutMs } = bound.limits;
  const clock =
    timeoutMs === null
      ? null
      : startCallClock({ timeoutMs, maxMs: timeoutMs }, d.host, () => {
          deadline.abort();
        });
  let answerSource: ToolOutcome['answerSource'];
  const onAnswer = ({ source }: FormAnswer): void => {
    answerSource = source ?? answerSource;
  };
  const ctx: ToolContext = {
    ...contextOf(d, { id, bound, verdict, approved, clock, progress, onAnswer }, signal),
    signal: clock === null ? signal : AbortSignal.any([signal, deadline.signal]),
  };
  try {
    const outcome = await bound.tool.run(bound.args, ctx);
    const ended = deadline.signal.aborted && !signal.aborted ? timedOut(outcome, timeoutMs ?? 0) : outcome;
    return answerSource === undefined ? ended : { ...ended, answerSource };
  } catch (error) {
    d.host.log({
      at: 'tool',
      message: 'a tool threw',
      tool: bound.tool.name,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    const missing = missingPart(error);
    const why = missing
      ? `: ${missing.message}. ${missing.hint}`
      : ' inside the program; see the log file for details.';
    const envelope = errorEnvelope('internal', `${bound.tool.name} failed${why}`);
    return { envelope, summary: envelope.error };
  } finally {
    clock?.stop();
  }
}

/** Makes a time-out of a call that its deadline cancelled. A tool that had finished all the same keeps its result. */
function timedOut(outcome: ToolOutcome, timeoutMs: number): ToolOutcome {
  if (!isError(outcome.envelope) || outcome.envelope.code !== 'cancelled') return outcome;
  const envelope = errorEnvelope(
    'timeout',
    `Stopped after ${timeoutMs} ms, the limit for this tool.`,
    outcome.envelope.details,
  );
  return { ...outcome, envelope, summary: envelope.error };
}
