import { type Envelope, errorEnvelope, type ErrorEnvelope, isError } from '../core/envelope.js';
import { type HookData, knownEvent, type ToolCallData } from '../core/event.js';
import type { HookedForm, ServerQuestion } from '../core/form.js';
import type { HookAnswer, HookedCall, Occasion } from '../core/hooks.js';
import type { PermissionAnswer, Question, Verdict } from '../core/policy.js';
import type { Fault } from '../core/provider.js';
import { firstLine } from '../core/text.js';
import type { Binding, BoundCall, Denial, ToolOutcome } from '../core/tool.js';
import type { DispatchDeps, TurnDeps } from './dependencies.js';

/** Runs the hooks of an occasion, records each one that ran, and shows their messages to the user. Returns null if no
 * hook listens. */
export async function askHooks(d: DispatchDeps, occasion: Occasion, signal: AbortSignal): Promise<HookAnswer | null> {
  const { hooks } = d.tools;
  if (!hooks?.listens(occasion.event)) return null;
  const answer = await hooks.ask(
    occasion,
    {
      session: d.record.id,
      cwd: d.cwd,
      prompt: currentPrompt(d),
      events: () => d.record.events(),
      later: (report) => {
        takeReport(d, report).catch((error: unknown) => {
          d.host.log({ at: 'hook', message: 'a background hook was not recorded', error: String(error) });
        });
      },
      ...(d.askModel ? { askModel: d.askModel } : {}),
      ...(d.askAgent ? { askAgent: d.askAgent } : {}),
    },
    signal,
  );
  await reportAnswer(d, answer);
  return answer;
}

async function reportAnswer(d: DispatchDeps, answer: HookAnswer): Promise<void> {
  for (const run of answer.runs) await recordRun(d, run);
  for (const { level, message } of answer.messages)
    d.emit({ type: 'notice', level, code: 'hook', message: d.secrets?.text(message) ?? message });
}

/** A hook in the background has ended: the model reads its report with its next request. */
async function takeReport(d: DispatchDeps, report: HookAnswer): Promise<void> {
  for (const note of report.context) d.tell?.(d.secrets?.text(note) ?? note);
  await reportAnswer(d, report);
}

/** A run that decided something is on the disk before anything acts on it. */
async function recordRun(d: DispatchDeps, run: HookData): Promise<void> {
  const reason = run.reason === undefined ? '' : ` (${firstLine(run.reason, 120)})`;
  const content = `${run.event} ${firstLine(run.command, 80)}: ${run.decision}${reason}`;
  const isPlain = run.decision === 'none' && run.updated_input === undefined && run.original_output === undefined;
  await d.record[isPlain ? 'note' : 'append']({ kind: 'hook', content, data: run });
}

function currentPrompt({ record }: DispatchDeps): string {
  const last = record.recent().findLast((raw) => {
    const event = raw.kind === 'user' ? knownEvent(raw) : null;
    return event?.kind === 'user' && event.data?.note !== true;
  });
  return last ? `${record.id}:${last.seq}` : '';
}

async function noteContext(d: DispatchDeps, answer: HookAnswer | null): Promise<void> {
  for (const content of answer?.context ?? []) await d.record.append({ kind: 'user', content, data: { note: true } });
}

/** Asks about a message of the user before it is recorded; hooks on the start of the session come before its first
 * one. Returns why it is not sent, or null. */
export async function askAboutPrompt(
  d: TurnDeps,
  prompt: string,
  isFirst: boolean,
  signal: AbortSignal,
): Promise<Fault | null> {
  const { hooks } = d.tools;
  await tellBegun(d, isFirst, signal);
  if (hooks?.agent) return null;
  const answer = await askHooks(d, { event: 'UserPromptSubmit', prompt: d.secrets?.text(prompt) ?? prompt }, signal);
  if (typeof answer?.stop === 'string') return stopFault(answer.stop);
  if (answer?.decision === 'deny')
    return { code: 'hook', message: `A hook blocked the message${because(answer.reason)}` };
  await noteContext(d, answer);
  return null;
}

/** Notifies hooks of what has changed, and of the first turn. */
export async function tellBegun(d: TurnDeps, isFirst: boolean, signal: AbortSignal): Promise<void> {
  const { hooks } = d.tools;
  await tellChanges(d, signal);
  if (hooks?.agent) {
    if (isFirst) await noteContext(d, await askHooks(d, { event: 'SubagentStart' }, signal));
    return;
  }
  await tellInstructions(d, signal);
  if (!isFirst || !hooks) return;
  const begun = { event: 'SessionStart', source: hooks.source, model: d.model().ref.model } as const;
  await noteContext(d, await askHooks(d, begun, signal));
}

/** The fault of a turn that a hook ended. */
export function stopFault(reason: string): Fault {
  return { code: 'hook', message: `A hook stopped the turn${because(reason)}` };
}

function because(reason: string): string {
  return reason.trim() === '' ? '.' : `: ${reason.trim()}`;
}

/** The reason why a call was not allowed. */
export type Denied = Pick<Denial, 'reason' | 'remedy' | 'unasked' | 'effects'>;

/** A call after its hooks: as they want it, or why it is not run. `denied`: null where that is not a denial. */
export type HookedBinding =
  | { readonly error: null; readonly call: ToolCallData; readonly bound: BoundCall; readonly said: HookAnswer | null }
  | { readonly error: ErrorEnvelope; readonly denied: Denied | null; readonly said: HookAnswer };

/** Asks about a call before policy does. Arguments that a hook gives instead are bound like those of the model. */
export async function beforeCall(
  d: DispatchDeps,
  call: ToolCallData,
  bound: BoundCall,
  signal: AbortSignal,
): Promise<HookedBinding> {
  const said = await askHooks(d, { event: 'PreToolUse', call: hookedCall(call, bound) }, signal);
  if (said === null) return { error: null, call, bound, said };
  if (said.stop !== null)
    return { error: errorEnvelope('cancelled', `Not run: ${stopFault(said.stop).message}`), denied: null, said };
  if (said.decision === 'deny') {
    const reason = `Denied by a hook${because(said.reason)}`;
    const remedy = '`agent hooks` lists your hooks; --no-hooks runs without them.';
    const denied = { reason: reason.replace(/\.$/, ''), remedy, unasked: false };
    return { error: errorEnvelope('permission_denied', reason), denied, said };
  }
  if (said.args === null) return { error: null, call, bound, said };
  const rewritten = { name: call.function.name, arguments: JSON.stringify(said.args) };
  const again = await d.tools.registry.bind(rewritten);
  if (again.ok) return { error: null, call: { ...call, function: rewritten }, bound: again.bound, said };
  const error = `A hook changed this call and made it invalid: ${again.error.error}`;
  return { error: { ...again.error, error }, denied: null, said };
}

function hookedCall({ id }: ToolCallData, { tool, args }: BoundCall): HookedCall {
  return { id, tool: tool.name, args };
}

/** Puts the word of a hook beside the verdict. Its `allow` takes back what the approval mode alone would ask, unless
 * the hook has made a dangerous call of this one; its `ask` is asked in every mode. A denial stays. */
export function applyHookDecision(verdict: Verdict, said: HookAnswer | null): Verdict {
  const madeDangerous = said?.args != null && verdict.risk === 'dangerous';
  if (said?.decision === 'allow' && verdict.decision === 'ask' && isUpToMode(verdict) && !madeDangerous)
    return { ...verdict, decision: 'allow' };
  if (said?.decision === 'ask' && verdict.decision !== 'deny')
    return {
      ...verdict,
      decision: 'ask',
      // Neither a mode nor a rule answers a hook.
      everyMode: true,
      rules: [],
      reasons: [`a hook asks for approval${because(said.reason)}`, ...verdict.reasons],
    };
  return verdict;
}

function isUpToMode({ everyMode, ruled }: Verdict): boolean {
  return everyMode !== true && ruled !== true;
}

interface Finished {
  readonly outcome: ToolOutcome;
  readonly durationMs: number;
}

/** Asks about a call that has run, and puts what its hooks say into the result. */
export async function afterCall<Done extends Finished>(
  d: DispatchDeps,
  { call, bound, said }: Extract<HookedBinding, { readonly error: null }>,
  done: Done,
  signal: AbortSignal,
): Promise<Done & { readonly halt?: string }> {
  const { envelope } = done.outcome;
  const event = isError(envelope) ? 'PostToolUseFailure' : 'PostToolUse';
  const occasion = { event, call: hookedCall(call, bound), envelope, durationMs: done.durationMs } as const;
  const after = signal.aborted ? null : await askHooks(d, occasion, signal);
  const texts = [...(said?.context ?? []), ...(after ? feedback(after) : [])];
  const told = texts.length === 0 ? {} : { hook_message: texts.join('\n') };
  return {
    ...done,
    outcome: { ...done.outcome, envelope: { ...replaced(envelope, after), ...told } },
    ...(typeof after?.stop === 'string' ? { halt: after.stop } : {}),
  };
}

function feedback({ decision, reason, context }: HookAnswer): readonly string[] {
  return decision === 'deny' ? [reason, ...context] : context;
}

function replaced(envelope: Envelope, after: HookAnswer | null): Envelope {
  const output = after?.output ?? null;
  return output === null || isError(envelope) ? envelope : { ...envelope, output };
}

/** Runs the hooks for a call that was not allowed. They cannot allow it; the model reads what they add. */
export async function afterDenial(
  d: DispatchDeps,
  { call, bound }: { readonly call: ToolCallData; readonly bound: BoundCall },
  { error, reason, by }: { readonly error: ErrorEnvelope; readonly reason: string; readonly by: string | null },
  signal: AbortSignal,
): Promise<{ readonly error: ErrorEnvelope; readonly halt?: string }> {
  const occasion = { event: 'PermissionDenied', call: hookedCall(call, bound), reason, by } as const;
  const said = signal.aborted ? null : await askHooks(d, occasion, signal);
  return {
    error: said === null || said.context.length === 0 ? error : { ...error, hook_message: said.context.join('\n') },
    ...(typeof said?.stop === 'string' ? { halt: said.stop } : {}),
  };
}

/** A call of a response, and its result. */
export interface BatchedCall {
  readonly call: ToolCallData;
  readonly binding: Binding;
  readonly envelope: Envelope;
}

/** Runs the hooks after all calls of a response have their results. Returns why the turn has to end, or null. */
export async function afterBatch(
  d: TurnDeps,
  done: readonly BatchedCall[],
  signal: AbortSignal,
): Promise<string | null> {
  if (signal.aborted || !d.tools.hooks?.listens('PostToolBatch')) return null;
  const calls = done.map(({ call, binding, envelope }) => ({
    call: binding.ok ? hookedCall(call, binding.bound) : { id: call.id, tool: call.function.name, args: {} },
    envelope,
  }));
  await d.record.settle();
  const answer = await askHooks(d, { event: 'PostToolBatch', calls: d.secrets?.deep(calls) ?? calls }, signal);
  await noteContext(d, answer);
  if (answer === null || (answer.stop === null && answer.decision !== 'deny')) return null;
  return answer.stop ?? answer.reason;
}

/** Runs the hooks for a text of the model that the user sees. Texts of sub-agents are results of calls. */
export async function tellDisplayed(
  d: TurnDeps,
  { responseId, text }: { readonly responseId: string; readonly text: string },
  signal: AbortSignal,
): Promise<void> {
  if (text === '' || signal.aborted || d.tools.hooks?.agent) return;
  await askHooks(d, { event: 'MessageDisplay', message: `${d.record.id}:${responseId}`, text }, signal);
}

/** Runs the hooks for files that have changed since the last look. */
export async function tellChanges(d: TurnDeps, signal: AbortSignal): Promise<void> {
  for (const changed of d.tools.hooks?.changes?.(d.record.knownFiles) ?? [])
    if (!signal.aborted) await noteContext(d, await askHooks(d, changed, signal));
}

/** Asks hooks a question of a server before the user. Null: none of them answers. */
export async function answerOfServer(
  d: DispatchDeps,
  question: ServerQuestion,
  signal: AbortSignal,
): Promise<HookedForm | null> {
  const said = await askHooks(d, { event: 'Elicitation', question: d.secrets?.deep(question) ?? question }, signal);
  return said?.decision === 'deny' ? { action: 'decline', content: {} } : (said?.form ?? null);
}

/** Runs the hooks for files of instructions that the model reads from now on. */
export async function tellInstructions(d: TurnDeps, signal: AbortSignal): Promise<void> {
  if (!d.tools.hooks?.listens('InstructionsLoaded')) return;
  for (const file of d.tools.loadedInstructions?.(d.record.conversation()) ?? [])
    if (!signal.aborted) await askHooks(d, { event: 'InstructionsLoaded', file }, signal);
}

/** The most times in a row that a hook may keep a turn from ending. */
const maxExtensions = 8;

/** Asks the hooks whether a turn may end with this answer. Returns true if it must continue; the reason is then
 * recorded for the model. */
export async function mustGoOn(d: TurnDeps, text: string, before: number, signal: AbortSignal): Promise<boolean> {
  const event = d.tools.hooks?.agent ? 'SubagentStop' : 'Stop';
  if (!d.tools.hooks?.listens(event)) return false;
  await d.record.settle();
  const answer = await askHooks(d, { event, again: before > 0, text }, signal);
  if (answer?.decision !== 'deny' || answer.stop !== null || signal.aborted) return false;
  if (before >= maxExtensions) {
    const message = `A hook on ${event} extended the turn ${maxExtensions} times in a row; the turn ends here.`;
    d.emit({ type: 'notice', level: 'warn', code: 'hook', message });
    return false;
  }
  const content = answer.reason.trim() === '' ? 'A hook wants you to continue.' : answer.reason;
  await d.record.append({ kind: 'user', content, data: { note: true } });
  return true;
}

/** Asks hooks a question before the user. Null: none of them answers. A yes never covers what no mode allows unasked
 * and what a rule of the user wants asked. */
export async function answerOfHooks(
  d: DispatchDeps,
  question: Question,
  signal: AbortSignal,
): Promise<PermissionAnswer | null> {
  const { callId, call, verdict } = question;
  const asked = { id: callId, tool: call.tool.name, args: call.args };
  const answer = await askHooks(d, { event: 'PermissionRequest', call: asked }, signal);
  if (answer?.decision === 'deny') return { answer: 'deny', message: answer.reason || 'a hook answered' };
  return answer?.decision === 'allow' && isUpToMode(verdict) ? { answer: 'once' } : null;
}

/** Notifies hooks that the program waits for the user. */
export async function tellWaiting(d: DispatchDeps, { title }: Question, signal: AbortSignal): Promise<void> {
  const message = `agent needs your permission to use ${title}`;
  await askHooks(d, { event: 'Notification', type: 'permission_prompt', message }, signal);
}

/** The kinds of failure that hooks match, by our codes. Source: code.claude.com/docs/en/hooks, "StopFailure". */
const failureKinds: Readonly<Partial<Record<Fault['code'], string>>> = {
  auth: 'authentication_failed',
  quota: 'billing_error',
  rate_limited: 'rate_limit',
  bad_request: 'invalid_request',
  network: 'server_error',
  protocol: 'server_error',
  stream_incomplete: 'server_error',
};

/** Notifies hooks that a turn ended because the model could not answer. */
export async function tellFailed(d: DispatchDeps, { code, message }: Fault, signal: AbortSignal): Promise<void> {
  if (code === 'hook' || signal.aborted) return;
  await askHooks(d, { event: 'StopFailure', error: failureKinds[code] ?? 'unknown', message }, signal);
}

/** Runs the hooks after a compaction and for the start of a session after it. Their context is recorded after the
 * summary. */
export async function tellCompacted(
  d: TurnDeps,
  { trigger, summary }: { readonly trigger: 'manual' | 'auto' | 'overflow'; readonly summary: string },
  signal: AbortSignal,
): Promise<void> {
  const kind = trigger === 'manual' ? 'manual' : 'auto';
  await noteContext(d, await askHooks(d, { event: 'PostCompact', trigger: kind, summary }, signal));
  const begun = { event: 'SessionStart', source: 'compact', model: d.model().ref.model } as const;
  await noteContext(d, await askHooks(d, begun, signal));
}

/** Asks whether the conversation may be compacted. Returns why not, or null. */
export async function askAboutCompaction(
  d: DispatchDeps,
  { trigger, focus }: { readonly trigger: 'manual' | 'auto' | 'overflow'; readonly focus: string },
  signal: AbortSignal,
): Promise<string | null> {
  const kind = trigger === 'manual' ? 'manual' : 'auto';
  const answer = await askHooks(d, { event: 'PreCompact', trigger: kind, instructions: focus }, signal);
  if (answer === null || (answer.decision !== 'deny' && answer.stop === null)) return null;
  return `a hook denied it${because(answer.stop ?? answer.reason).replace(/\.$/, '')}`;
}
