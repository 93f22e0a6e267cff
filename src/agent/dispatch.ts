import { type CallClock, startCallClock } from '../core/call-clock.js';
import { clampEnvelope, errorEnvelope, isError, parseEnvelope, type ErrorEnvelope } from '../core/envelope.js';
import type { ApprovalData, EventDraft, ToolCallData } from '../core/event.js';
import type { WatchReport } from '../core/file-changes.js';
import type { Form } from '../core/form.js';
import type { HookAnswer } from '../core/hooks.js';
import { isRecord } from '../core/json.js';
import { type Answer, type Question, type Rule, ruleKey, type Verdict } from '../core/policy.js';
import { hasEffects } from '../core/effects.js';
import type { Denial, AgentOrder, Binding, BoundCall, CallSession, ToolContext, ToolOutcome } from '../core/tool.js';
import { captureChanges, type CapturedChanges } from './file-history.js';
import { afterCall, answerOfHooks, beforeCall, type Denied, heeded } from './ask-hooks.js';
import { askedAboutLoop } from './repeats.js';
import type { DispatchDeps } from './dependencies.js';
import { type DecidedCall, keptOutcome, rehearseCall, type TriedCall, withEffects } from './rehearse-call.js';

/** The outcome of one call. */
export interface Dispatched {
  readonly outcome: ToolOutcome;
  /** This call, where it was not allowed, or the calls of the sub-agent that it started. */
  readonly denials: readonly Denial[];
  readonly durationMs: number;
  readonly captured?: CapturedChanges;
  /** Why a hook wants the turn to end here. */
  readonly halt?: string;
  readonly decision?: DecidedCall;
}

/** A read that takes longer is shown while it runs. */
const quickReadMs = 20;
const cancelledBefore = errorEnvelope('cancelled', 'Cancelled by the user before it was run.');

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
  const hooked = await beforeCall(d, call, binding.bound, signal);
  if (hooked.error)
    return {
      ...refused(hooked.error, hooked.denied === null ? [] : [denialOf(prepared, hooked.denied)]),
      ...(hooked.said.stop === null ? {} : { halt: hooked.said.stop }),
    };
  const filled = withSecrets(d, hooked.bound);
  if (filled.error) return refused(filled.error);
  const { bound } = filled;
  bound.tool.prepare?.();
  const permission = await permit(d, hooked.call, { bound, shown: hooked.bound, said: hooked.said }, signal);
  if (permission.error)
    return {
      ...refused(permission.error, permission.denied === null ? [] : [denialOf(prepared, permission.denied)]),
      decision: permission.decision,
    };
  const { verdict, approved, tried, decision } = permission;
  if (signal.aborted) {
    await tried?.rehearsal.discard();
    return refused(cancelledBefore);
  }
  const done = await runPermitted(d, hooked.call, { bound, verdict, approved, tried, decision }, signal);
  return await afterCall(d, hooked, { ...done, decision }, signal);
}

interface AllowedCall {
  readonly bound: BoundCall;
  readonly verdict: Verdict;
  readonly approved: boolean;
  /** The rehearsal whose result counts, or whose changes are kept; null: the call is run. */
  readonly tried: TriedCall | null;
  readonly decision: DecidedCall;
}

/** Runs a call that policy and the person allowed, and clamps its output. */
async function runPermitted(
  d: DispatchDeps,
  call: ToolCallData,
  allowed: AllowedCall,
  signal: AbortSignal,
): Promise<Dispatched> {
  const { bound, tried } = allowed;
  const limited = d.tools.registry.admit(bound.tool.name);
  if (limited) {
    await tried?.rehearsal.discard();
    return refused(limited);
  }
  if (tried) return await runTried(d, call, { ...allowed, tried }, signal);
  const { verdict } = allowed;
  const started = await start(d, call, bound, verdict);
  if (signal.aborted) return refused(cancelledBefore);
  const lookAgain = await watched(d, call, bound, verdict);
  const startedAt = d.host.now();
  const outcome = await run(d, { id: call.id, ...started }, allowed, signal);
  started.end();
  const durationMs = Math.max(0, Math.round(d.host.now() - startedAt));
  return finished(d, { bound, outcome, durationMs }, await lookAgain());
}

interface Ran {
  readonly bound: BoundCall;
  readonly outcome: ToolOutcome;
  readonly durationMs: number;
}

/** Clamps the output of a call, and captures what it changed. */
function finished(d: DispatchDeps, { bound, outcome, durationMs }: Ran, seen: WatchReport): Dispatched {
  const envelope = clampEnvelope(
    d.secrets?.envelope(outcome.envelope) ?? outcome.envelope,
    bound.limits.maxOutputBytes,
  );
  const captured = d.tools.capture ? captureChanges(d.tools.capture, outcome, seen) : undefined;
  const { denials = [] } = outcome;
  return { outcome: { ...outcome, envelope }, denials, durationMs, ...(captured ? { captured } : {}) };
}

/** Takes the result of a rehearsal, or keeps its changes. Nothing runs again, and it reports its own changes. */
async function runTried(
  d: DispatchDeps,
  call: ToolCallData,
  { bound, verdict, tried, decision }: AllowedCall & { readonly tried: TriedCall },
  signal: AbortSignal,
): Promise<Dispatched> {
  const started = await start(d, call, bound, decision.kept === true ? verdict : { ...verdict, risk: 'read-only' });
  started.end();
  if (signal.aborted) {
    await tried.rehearsal.discard();
    return refused(cancelledBefore);
  }
  const startedAt = d.host.now();
  const outcome = await triedOutcome(tried, decision);
  const durationMs = Math.max(0, Math.round(d.host.now() - startedAt));
  return finished(d, { bound, outcome, durationMs }, nothingSeen);
}

async function triedOutcome(tried: TriedCall, { kept }: DecidedCall): Promise<ToolOutcome> {
  if (kept === true) return await keptOutcome(tried);
  await tried.rehearsal.discard();
  const { outcome } = tried.rehearsal;
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
    commandText: call.function.arguments,
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
    'stands for a secret whose value is not in memory (it was seen before the session was resumed, or never). ' +
    'Read the file it stands in again, or run the command that printed it, and repeat the call with the placeholder ' +
    'you are given then.',
  key:
    'stands for the key of a provider, which is never given to a call. Leave that part of the file as it is and ' +
    'change other lines.',
  shell:
    'stands for a value with characters that a shell would obey. Put the placeholder in single quotes, or write ' +
    'it to a file and let the command read that.',
} as const;

/** A call as it is judged and run, and with placeholders as the person is shown it. */
interface Judged {
  readonly bound: BoundCall;
  readonly shown: BoundCall;
  /** The word of its hooks. */
  readonly said: HookAnswer | null;
}

interface Permitted extends AllowedCall {
  readonly error: null;
}

interface Refused {
  readonly error: ErrorEnvelope;
  /** Null where the call was cancelled. */
  readonly denied: Denied | null;
  readonly decision: DecidedCall;
}

async function permit(
  d: DispatchDeps,
  call: ToolCallData,
  judged: Judged,
  signal: AbortSignal,
): Promise<Permitted | Refused> {
  const { bound, said } = judged;
  const assessed = await unlessAborted(d.tools.policy.assess(bound, d.cwd, d.record), signal);
  if (assessed === null) return { error: cancelledBefore, denied: null, decision: {} };
  const { repeated, ...verdict } = askedAboutLoop(d, call, heeded(assessed, said));
  if (verdict.decision === 'allow') {
    const decidedBy = assessed.decision === 'allow' ? (verdict.decidedBy ?? 'mode') : 'hook';
    return { error: null, bound, verdict, approved: false, tried: null, decision: { decidedBy } };
  }
  const tried = repeated === undefined ? await triedFirst(d, call, { bound, verdict }, signal) : null;
  if (signal.aborted) {
    await tried?.rehearsal.discard();
    return { error: cancelledBefore, denied: null, decision: {} };
  }
  if (tried && !hasEffects(tried.rehearsal)) {
    const decision = { decidedBy: 'rehearsal', effects: tried.seen.effects, kept: false } as const;
    return { error: null, bound, verdict, approved: false, tried, decision };
  }
  if (verdict.decision === 'deny') {
    await tried?.rehearsal.discard();
    return deniedAs(verdict, tried);
  }
  return await askAbout(d, call, judged, { verdict, repeated, tried }, signal);
}

/** Rehearses a call that would be asked about or denied, where the rehearsal may answer instead. */
async function triedFirst(
  d: DispatchDeps,
  call: ToolCallData,
  { bound, verdict }: Pick<AllowedCall, 'bound' | 'verdict'>,
  signal: AbortSignal,
): Promise<TriedCall | null> {
  const isUpToMode = verdict.everyMode !== true && verdict.ruled !== true;
  const isGranted = d.approval.grants.has(grantFor(d, call, bound, undefined)) || isRuled(d, verdict);
  if (verdict.rehearsable !== true || !isUpToMode || isGranted) return null;
  const tried = await rehearseCall(d, bound, contextOf(d, { id: call.id, bound, verdict }, signal));
  return typeof tried === 'string' ? null : tried;
}

interface AskedCall {
  readonly verdict: Verdict;
  readonly repeated: number | undefined;
  readonly tried: TriedCall | null;
}

/** A question about a call, and what is known of it when the person answers. */
interface Answered extends AskedAnswer {
  readonly verdict: Verdict;
  readonly tried: TriedCall | null;
}

async function askAbout(
  d: DispatchDeps,
  call: ToolCallData,
  judged: Judged,
  asked: AskedCall,
  signal: AbortSignal,
): Promise<Permitted | Refused> {
  const answered = await answerTo(d, call, judged, asked, signal);
  const { approved, verdict, tried } = answered;
  const keeps = answered.answer.answer === 'keep' && tried?.seen.keepProblem === null;
  // What cannot be kept is not run instead.
  const answer: Answer = answered.answer.answer === 'keep' && !keeps ? { answer: 'deny' } : answered.answer;
  const error = denial(answer, verdict, signal);
  await recordAnswer(d, call, asked, { ...answered, answer }, error);
  const decision: DecidedCall = {
    decidedBy: answered.hooked ? 'hook' : answer.answer === 'unavailable' ? 'mode' : 'user',
    ...seenOf(tried),
    ...(tried ? { kept: keeps } : {}),
  };
  if (!keeps) await tried?.rehearsal.discard();
  return error
    ? { error, denied: deniedBy(answer, verdict, error, tried), decision }
    : { error: null, bound: judged.bound, verdict, approved, tried: keeps ? tried : null, decision };
}

/** Asks until there is an answer. One that wants a preview is followed by the same question with what that showed. */
async function answerTo(
  d: DispatchDeps,
  call: ToolCallData,
  { bound, shown }: Judged,
  { verdict: judged, repeated, tried: first }: AskedCall,
  signal: AbortSignal,
): Promise<Answered> {
  let tried = first;
  let verdict = tried ? withEffects(judged, tried) : judged;
  let canPreview = tried === null && bound.tool.rehearse !== undefined && judged.sandbox === 'off';
  for (let round = 0; ; round++) {
    const asked = {
      ...question(d, call, shown, verdict, repeated === undefined),
      ...(await linesOf(d, bound, verdict)),
      ...(canPreview ? { canPreview: true as const } : {}),
      ...(tried ? { effects: tried.seen } : {}),
    };
    const given =
      round > 0
        ? await askedAgain(d, asked, signal)
        : await askedOnce(d, asked, grantFor(d, call, bound, repeated), signal);
    if (given.answer.answer !== 'preview') return { ...given, verdict, tried };
    canPreview = false;
    const preview = await rehearseCall(d, bound, contextOf(d, { id: call.id, bound, verdict }, signal));
    if (typeof preview === 'string') tellNoPreview(d, preview);
    else {
      tried = preview;
      verdict = withEffects(judged, preview);
    }
  }
}

async function recordAnswer(
  d: DispatchDeps,
  call: ToolCallData,
  { repeated }: AskedCall,
  { answer, granted, hooked, verdict, tried }: Answered,
  error: ErrorEnvelope | null,
): Promise<void> {
  await d.record.append({
    kind: 'approval',
    content: `${error ? 'denied' : 'allowed'}: ${verdict.reasons.join('; ')}`,
    data: {
      tool_call_id: call.id,
      decision: error ? 'deny' : 'allow',
      by: hooked ? 'hook' : granted ? 'session_grant' : answer.answer === 'unavailable' ? 'headless' : 'user',
      risk: verdict.risk,
      reasons: verdict.reasons,
      call_sha256: hashOf(d, call),
      ...(repeated === undefined ? {} : { repeated }),
      ...seenOf(tried),
      ...rulesMade(verdict, answer),
    },
  });
}

function seenOf(tried: TriedCall | null): Pick<DecidedCall, 'effects'> {
  return tried ? { effects: tried.seen.effects } : {};
}

function hashOf(d: DispatchDeps, { function: { name, arguments: text } }: ToolCallData): string {
  return d.host.sha256(`${name}\0${text}`);
}

/** The key of a yes to this call for the rest of the session. One to a repeated call is another. */
function grantFor(d: DispatchDeps, call: ToolCallData, bound: BoundCall, repeated: number | undefined): string {
  const hash = hashOf(d, call);
  return grantOf(repeated === undefined ? hash : `repeated ${hash}`, bound);
}

function tellNoPreview(d: DispatchDeps, why: string): void {
  d.emit({ type: 'notice', level: 'warn', code: 'no_preview', message: `No preview: ${why}.` });
}

/** Puts a question again, with what a preview showed. */
async function askedAgain(d: DispatchDeps, question: Question, signal: AbortSignal): Promise<AskedAnswer> {
  return { answer: await d.approval.ask(question, signal), granted: false, approved: true };
}

/** A denial that nothing else than policy decided. */
function deniedAs({ reasons, decidedBy = 'mode' }: Verdict, tried: TriedCall | null): Refused {
  const seen = tried ? `; it ${tried.seen.text}, and was not run` : '';
  const reason = `Denied by policy: ${reasons.join('; ')}${seen}`;
  const effects = seenOf(tried);
  const remedy = 'Use /permissions or `agent permissions` to see the rules.';
  return {
    error: errorEnvelope('permission_denied', reason),
    denied: { reason, remedy, unasked: false, ...effects },
    decision: { decidedBy, ...effects, ...(tried ? { kept: false } : {}) },
  };
}

function deniedBy(
  { answer }: Answer,
  verdict: Verdict,
  { code, error }: ErrorEnvelope,
  tried: TriedCall | null,
): Denied | null {
  const effects = seenOf(tried);
  if (answer === 'unavailable')
    return { reason: verdict.reasons.join('; '), remedy: remedyForUser(verdict), unasked: true, ...effects };
  return code === 'cancelled' ? null : { reason: error.replace(/\.$/, ''), remedy: '', unasked: false, ...effects };
}

function rulesMade({ rules = [] }: Verdict, answer: Answer): Pick<ApprovalData, 'rules' | 'lasts'> {
  return answer.answer === 'rules' ? { rules, lasts: answer.lasts } : {};
}

/** A yes to a tool of a server is one to the tool as it was then. */
function grantOf(call: string, { target }: BoundCall): string {
  return target ? `${call} ${target.schema_sha256}` : call;
}

/** `approved`: the user gave it to exactly this call. */
interface AskedAnswer {
  readonly answer: Answer;
  readonly granted: boolean;
  readonly approved: boolean;
  readonly hooked?: true;
}

/** Returns the person's answer, or the one they gave for the rest of the session under this `grant` or as rules. */
async function askedOnce(
  d: DispatchDeps,
  question: Question,
  grant: string,
  signal: AbortSignal,
): Promise<AskedAnswer> {
  const { grants } = d.approval;
  const rules = question.verdict.rules ?? [];
  if (grants.has(grant)) return { answer: { answer: 'once' }, granted: true, approved: true };
  if (isRuled(d, question.verdict)) return { answer: { answer: 'once' }, granted: true, approved: false };
  const said = await answerOfHooks(d, question, signal);
  if (said) return { answer: said, granted: false, approved: false, hooked: true };
  await d.record.settle();
  const answer = await d.approval.ask(question, signal);
  if (answer.answer === 'session') grants.add(grant);
  if (answer.answer === 'once') suggestRule(d, rules.length > 0 ? JSON.stringify(rules) : grant, rules);
  if (answer.answer === 'rules') await makeRules(d, rules, answer.lasts);
  return { answer, granted: false, approved: true };
}

/** Whether rules that the person made in this session allow the call. */
function isRuled({ approval: { rules: made } }: DispatchDeps, { rules = [] }: Verdict): boolean {
  return rules.length > 0 && rules.every((rule) => made.has(ruleKey(rule)));
}

/** A rule that could not be kept counts for the session all the same. */
async function makeRules(d: DispatchDeps, rules: readonly Rule[], lasts: 'session' | 'always'): Promise<void> {
  for (const rule of rules) d.approval.rules.set(ruleKey(rule), rule);
  if (lasts === 'session' || rules.length === 0) return;
  const kept = await d.tools.policy.allow?.(rules);
  if (kept) d.emit({ type: 'notice', level: kept.done ? 'info' : 'warn', code: 'rule_kept', message: kept.said });
}

/** After so many times the person is told how to be asked no more. */
const tiresomeQuestions = 3;

function suggestRule(d: DispatchDeps, key: string, rules: readonly Rule[]): void {
  const times = (d.approval.asked.get(key) ?? 0) + 1;
  d.approval.asked.set(key, times);
  if (times !== tiresomeQuestions) return;
  const how =
    rules.length > 0
      ? 'the next such question offers a rule for them'
      : 'no rule is offered for such a call, but /permissions add makes one';
  d.emit({
    type: 'notice',
    level: 'info',
    code: 'rule_suggested',
    message:
      `You said yes to this ${tiresomeQuestions} times: ${how}. ` +
      '`agent audit suggest-rules` shows what else you allow again and again.',
  });
}

/** Waits for `work`, or returns null as soon as the signal is aborted: policy may wait for a file system that does not
 * answer. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<null>((resolve) => {
    onAbort = () => {
      resolve(null);
    };
  });
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    const done = await Promise.race([work, aborted]);
    return signal.aborted ? null : done;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function question(
  { secrets }: DispatchDeps,
  { id, function: { name, arguments: text } }: ToolCallData,
  shown: BoundCall,
  { rules = [], ...verdict }: Verdict,
  mayLast: boolean,
): Question {
  const asked = { callId: id, title: name };
  // A rule is shown as it will be kept, so one with a secret in it is not offered.
  const isPlain = secrets === undefined || JSON.stringify(secrets.deep(rules)) === JSON.stringify(rules);
  const lasting = mayLast && rules.length > 0 && isPlain ? { rules } : {};
  if (!secrets) return { ...asked, call: shown, argumentsText: text, verdict: { ...verdict, ...lasting } };
  return {
    ...asked,
    call: { ...shown, args: secrets.deep(shown.args) },
    argumentsText: secrets.json(text),
    verdict: { ...secrets.deep(verdict), ...lasting },
  };
}

async function linesOf(
  { cwd }: DispatchDeps,
  { tool, args }: BoundCall,
  { landings }: Verdict,
): Promise<Pick<Question, 'lines'>> {
  const lines = (await tool.linesOf?.(args, { cwd, ...(landings ? { landings } : {}) })) ?? [];
  return lines.length > 0 ? { lines } : {};
}

/** Tells the user how such a call can run. */
function remedyForUser(verdict: Verdict): string {
  if (verdict.everyMode)
    return 'No --approval mode allows such calls without a prompt: run agent in a terminal and answer yes.';
  const patterns = allowedBy(verdict);
  const ways = [...(patterns === null ? [] : [`--allowed-tools "${patterns.join(', ')}"`]), '--approval never'];
  return `Allow such calls with ${ways.join(' or ')}, or run agent in a terminal and answer yes.`;
}

/** Returns the patterns of `--allowed-tools` that allow a command like this; null where there are none, or where a word
 * would be read as something else. */
function allowedBy({ rules = [] }: Verdict): readonly string[] | null {
  const patterns = rules.flatMap(({ tool, argv, path, exact }) =>
    tool !== undefined && argv && path === undefined && argv.every((word) => /^[\w./:@%+=-]+$/.test(word))
      ? [`${tool}(${argv.join(' ')}${exact ? '' : ' *'})`]
      : [],
  );
  return rules.length > 0 && patterns.length === rules.length ? patterns : null;
}

/** Says what the person can do so that such a call runs. */
function remedy(verdict: Verdict): string {
  return verdict.everyMode
    ? 'No --approval mode allows such calls unasked; the user can say yes to them when agent runs in a terminal.'
    : 'The user can allow such calls with --approval never, or say yes to them when agent runs in a terminal.';
}

function denial(answer: Answer, verdict: Verdict, signal: AbortSignal): ErrorEnvelope | null {
  switch (answer.answer) {
    case 'once':
    case 'keep':
    case 'preview':
    case 'session':
    case 'rules':
      return null;
    case 'unavailable':
      return errorEnvelope(
        'permission_denied',
        `Not run, because it needs a yes and nobody can be asked here: ${verdict.reasons.join('; ')}. ` +
          remedy(verdict),
      );
    case 'deny':
      if (signal.aborted) return cancelledBefore;
      return errorEnvelope(
        'denied_by_user',
        answer.message ? `The user said no: ${answer.message}` : 'The user said no.',
      );
    default:
      return answer satisfies never;
  }
}

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
  const ctx: ToolContext = {
    ...contextOf(d, { id, bound, verdict, approved, clock, progress }, signal),
    signal: clock === null ? signal : AbortSignal.any([signal, deadline.signal]),
  };
  try {
    const outcome = await bound.tool.run(bound.args, ctx);
    return deadline.signal.aborted && !signal.aborted ? timedOut(outcome, timeoutMs ?? 0) : outcome;
  } catch (error) {
    d.host.log({
      at: 'tool',
      message: 'a tool threw',
      tool: bound.tool.name,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    const envelope = errorEnvelope(
      'internal',
      `${bound.tool.name} failed inside the program; the log file has the details.`,
    );
    return { envelope, summary: envelope.error };
  } finally {
    clock?.stop();
  }
}

interface CallContext extends Pick<AllowedCall, 'bound' | 'verdict'> {
  readonly id: string;
  readonly approved?: boolean;
  readonly clock?: CallClock | null;
  readonly progress?: (chunk: string) => void;
}

function contextOf(
  d: DispatchDeps,
  { id, bound, verdict, approved = false, clock = null, progress = () => undefined }: CallContext,
  signal: AbortSignal,
): ToolContext {
  return {
    cwd: d.cwd,
    session: callSession(d, id, signal, clock),
    sandbox: verdict.sandbox,
    readsOnly: verdict.risk === 'read-only',
    approved,
    ...(verdict.landings ? { landings: verdict.landings } : {}),
    limits: bound.limits,
    knownFiles: d.record.knownFiles,
    signal,
    eventOutput: (seq) => storedOutput(d, seq),
    progress,
    ...(d.secrets ? { outputMask: d.secrets.stream() } : {}),
  };
}

/** The session of a call, and whom it may ask. While a person answers, its clock stands still. */
function callSession(d: DispatchDeps, id: string, signal: AbortSignal, clock: CallClock | null): CallSession {
  const { record, searchWeb, runAgent, approval } = d;
  const { putForm } = approval;
  const whileAsking: CallClock['whileAsking'] = (asking) => (clock ? clock.whileAsking(asking) : asking());
  return {
    id: record.id,
    events: () => record.events(),
    ...(searchWeb ? { searchWeb } : {}),
    ...(putForm ? { putForm: (form: Form) => whileAsking(() => putForm(form, signal)) } : {}),
    ...(runAgent
      ? { runAgent: (order: AgentOrder, stop: AbortSignal) => runAgent(order, { id, signal: stop, whileAsking }) }
      : {}),
  };
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

function storedOutput(d: DispatchDeps, seq: number): string | null {
  const event = d.record.events().find((item) => item.seq === seq);
  if (event?.kind === 'user' || event?.kind === 'assistant') return event.content;
  if (event?.kind !== 'tool_result' || !isRecord(event.data) || typeof event.data.output !== 'string') return null;
  const envelope = parseEnvelope(event.data.output);
  if (!isError(envelope)) return envelope.output;
  return isRecord(envelope.details) && typeof envelope.details.output === 'string'
    ? envelope.details.output
    : envelope.error;
}
