import { hasEffects } from '../core/effects.js';
import { errorEnvelope, type ErrorEnvelope } from '../core/envelope.js';
import type { ApprovalData, ToolCallData } from '../core/event.js';
import type { HookAnswer } from '../core/hooks.js';
import { type PermissionAnswer, type Question, type Rule, ruleKey, type Verdict } from '../core/policy.js';
import type { BoundCall } from '../core/tool.js';
import { answerOfHooks, type Denied, applyHookDecision } from './apply-hooks.js';
import { contextOf } from './call-context.js';
import type { DispatchDeps } from './dependencies.js';
import { addEffects, type CallDecision, rehearseCall, type RehearsedCall } from './rehearse-call.js';
import { askedAboutLoop } from './loop-detection.js';

/** The outcome of a call that the user cancelled before it ran. */
export const cancelledBefore = errorEnvelope('cancelled', 'Cancelled by the user before it was run.');

/** A call that policy, hooks and the user allow. */
export interface AllowedCall {
  readonly bound: BoundCall;
  readonly verdict: Verdict;
  readonly approved: boolean;
  /** The rehearsal whose result counts, or whose changes are kept; null: the call is run. */
  readonly rehearsed: RehearsedCall | null;
  readonly decision: CallDecision;
}

/** A call as it is judged and run, and as the user is shown it, with placeholders. */
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
  readonly decision: CallDecision;
}

/** Decides whether a call may run: by its rules and mode, by a rehearsal, or by asking the user. */
export async function requestApproval(
  d: DispatchDeps,
  call: ToolCallData,
  judged: Judged,
  signal: AbortSignal,
): Promise<Permitted | Refused> {
  const { bound, said } = judged;
  const assessed = await unlessAborted(d.tools.policy.assess(bound, d.cwd, d.record), signal);
  if (assessed === null) return { error: cancelledBefore, denied: null, decision: {} };
  const { repeated, ...verdict } = askedAboutLoop(d, call, applyHookDecision(assessed, said));
  if (verdict.decision === 'allow') {
    const decidedBy = assessed.decision === 'allow' ? (verdict.decidedBy ?? 'mode') : 'hook';
    return { error: null, bound, verdict, approved: false, rehearsed: null, decision: { decidedBy } };
  }
  const rehearsed = repeated === undefined ? await rehearseFirst(d, call, { bound, verdict }, signal) : null;
  if (signal.aborted) {
    await rehearsed?.rehearsal.discard();
    return { error: cancelledBefore, denied: null, decision: {} };
  }
  if (rehearsed && !hasEffects(rehearsed.rehearsal)) {
    const decision = { decidedBy: 'rehearsal', effects: rehearsed.summary.effects, kept: false } as const;
    return { error: null, bound, verdict, approved: false, rehearsed, decision };
  }
  if (verdict.decision === 'deny') {
    await rehearsed?.rehearsal.discard();
    return deniedAs(verdict, rehearsed);
  }
  return await askUser(d, call, judged, { verdict, repeated, rehearsed }, signal);
}

/** Rehearses a call that would be asked about or denied, where the rehearsal may answer instead. */
async function rehearseFirst(
  d: DispatchDeps,
  call: ToolCallData,
  { bound, verdict }: Pick<AllowedCall, 'bound' | 'verdict'>,
  signal: AbortSignal,
): Promise<RehearsedCall | null> {
  const isUpToMode = verdict.everyMode !== true && verdict.ruled !== true;
  const isGranted = d.approval.grants.has(grantFor(d, call, bound, undefined)) || isRuled(d, verdict);
  if (verdict.rehearsable !== true || !isUpToMode || isGranted) return null;
  const rehearsed = await rehearseCall(d, bound, contextOf(d, { id: call.id, bound, verdict }, signal));
  return typeof rehearsed === 'string' ? null : rehearsed;
}

interface AskedCall {
  readonly verdict: Verdict;
  readonly repeated: number | undefined;
  readonly rehearsed: RehearsedCall | null;
}

/** The answer to a question about a call, with the verdict and the rehearsal it was given on. */
interface AnsweredCall extends AskedAnswer {
  readonly verdict: Verdict;
  readonly rehearsed: RehearsedCall | null;
}

async function askUser(
  d: DispatchDeps,
  call: ToolCallData,
  judged: Judged,
  asked: AskedCall,
  signal: AbortSignal,
): Promise<Permitted | Refused> {
  const answered = await askUntilAnswered(d, call, judged, asked, signal);
  const { approved, verdict, rehearsed } = answered;
  const keeps = answered.answer.answer === 'keep' && rehearsed?.summary.keepProblem === null;
  // Changes that cannot be kept are dropped: the command is not run instead.
  const answer: PermissionAnswer = answered.answer.answer === 'keep' && !keeps ? { answer: 'deny' } : answered.answer;
  const error = denial(answer, verdict, signal);
  await recordAnswer(d, call, asked, { ...answered, answer }, error);
  const decision: CallDecision = {
    decidedBy: answered.hooked ? 'hook' : answer.answer === 'unavailable' ? 'mode' : 'user',
    ...effectsField(rehearsed),
    ...(rehearsed ? { kept: keeps } : {}),
  };
  if (!keeps) await rehearsed?.rehearsal.discard();
  return error
    ? { error, denied: deniedBy(answer, verdict, error, rehearsed), decision }
    : { error: null, bound: judged.bound, verdict, approved, rehearsed: keeps ? rehearsed : null, decision };
}

/** Asks until the user answers. Where the user wants a preview, shows it and asks again. */
async function askUntilAnswered(
  d: DispatchDeps,
  call: ToolCallData,
  { bound, shown }: Judged,
  { verdict: judged, repeated, rehearsed: first }: AskedCall,
  signal: AbortSignal,
): Promise<AnsweredCall> {
  let rehearsed = first;
  let verdict = rehearsed ? addEffects(judged, rehearsed) : judged;
  let canPreview = rehearsed === null && bound.tool.rehearse !== undefined && judged.sandbox === 'off';
  for (let round = 0; ; round++) {
    const asked = {
      ...question(d, call, shown, verdict, repeated === undefined),
      ...(await placeOf(d, bound, verdict)),
      ...(canPreview ? { canPreview: true as const } : {}),
      ...(rehearsed ? { effects: rehearsed.summary } : {}),
    };
    const given =
      round > 0
        ? await askedAgain(d, asked, signal)
        : await askedOnce(d, asked, grantFor(d, call, bound, repeated), signal);
    if (given.answer.answer !== 'preview') return { ...given, verdict, rehearsed };
    canPreview = false;
    const preview = await rehearseCall(d, bound, contextOf(d, { id: call.id, bound, verdict }, signal));
    if (typeof preview === 'string') notifyNoPreview(d, preview);
    else {
      rehearsed = preview;
      verdict = addEffects(judged, preview);
    }
  }
}

async function recordAnswer(
  d: DispatchDeps,
  call: ToolCallData,
  { repeated }: AskedCall,
  { answer, granted, hooked, verdict, rehearsed }: AnsweredCall,
  error: ErrorEnvelope | null,
): Promise<void> {
  await d.record.append({
    kind: 'approval',
    content: `${error ? 'denied' : 'allowed'}: ${verdict.reasons.join('; ')}`,
    data: {
      tool_call_id: call.id,
      decision: error ? 'deny' : 'allow',
      by: hooked ? 'hook' : granted ? 'session_grant' : answer.answer === 'unavailable' ? 'headless' : 'user',
      ...(answer.source === undefined || granted ? {} : { source: answer.source }),
      risk: verdict.risk,
      reasons: verdict.reasons,
      call_sha256: hashOf(d, call),
      ...(repeated === undefined ? {} : { repeated }),
      ...effectsField(rehearsed),
      ...rulesMade(verdict, answer),
    },
  });
}

function effectsField(rehearsed: RehearsedCall | null): Pick<CallDecision, 'effects'> {
  return rehearsed ? { effects: rehearsed.summary.effects } : {};
}

function hashOf(d: DispatchDeps, { function: { name, arguments: text } }: ToolCallData): string {
  return d.host.sha256(`${name}\0${text}`);
}

/** The key of a yes to this call for the rest of the session. One to a repeated call is another. */
function grantFor(d: DispatchDeps, call: ToolCallData, bound: BoundCall, repeated: number | undefined): string {
  const hash = hashOf(d, call);
  return grantOf(repeated === undefined ? hash : `repeated ${hash}`, bound);
}

function notifyNoPreview(d: DispatchDeps, why: string): void {
  d.emit({ type: 'notice', level: 'warn', code: 'no_preview', message: `No preview: ${why}.` });
}

/** Asks a question again, with the effects that a preview showed. */
async function askedAgain(d: DispatchDeps, question: Question, signal: AbortSignal): Promise<AskedAnswer> {
  return { answer: await d.approval.ask(question, signal), granted: false, approved: true };
}

/** Returns the denial of a call that policy denies without a question. */
function deniedAs({ reasons, decidedBy = 'mode' }: Verdict, rehearsed: RehearsedCall | null): Refused {
  const seen = rehearsed ? `; it ${rehearsed.summary.text}, and was not run` : '';
  const reason = `Denied by policy: ${reasons.join('; ')}${seen}`;
  const effects = effectsField(rehearsed);
  const remedy = 'Use /permissions or `agent permissions` to see the rules.';
  return {
    error: errorEnvelope('permission_denied', reason),
    denied: { reason, remedy, unasked: false, ...effects },
    decision: { decidedBy, ...effects, ...(rehearsed ? { kept: false } : {}) },
  };
}

function deniedBy(
  { answer }: PermissionAnswer,
  verdict: Verdict,
  { code, error }: ErrorEnvelope,
  rehearsed: RehearsedCall | null,
): Denied | null {
  const effects = effectsField(rehearsed);
  if (answer === 'unavailable')
    return { reason: verdict.reasons.join('; '), remedy: remedyForUser(verdict), unasked: true, ...effects };
  return code === 'cancelled' ? null : { reason: error.replace(/\.$/, ''), remedy: '', unasked: false, ...effects };
}

function rulesMade({ rules = [] }: Verdict, answer: PermissionAnswer): Pick<ApprovalData, 'rules' | 'lasts'> {
  return answer.answer === 'rules' ? { rules, lasts: answer.lasts } : {};
}

/** Returns the key of a grant. A grant for a tool of a server holds for the definition that it had then. */
function grantOf(call: string, { target }: BoundCall): string {
  return target ? `${call} ${target.schema_sha256}` : call;
}

/** `approved`: the user gave it to exactly this call. */
interface AskedAnswer {
  readonly answer: PermissionAnswer;
  readonly granted: boolean;
  readonly approved: boolean;
  readonly hooked?: true;
}

/** Returns the user's answer, or an earlier answer that holds for the session: a grant with the key `grant`, or rules. */
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

/** Returns whether rules that the user made in this session allow the call. */
function isRuled({ approval: { rules: made } }: DispatchDeps, { rules = [] }: Verdict): boolean {
  return rules.length > 0 && rules.every((rule) => made.has(ruleKey(rule)));
}

/** Adds rules to the session and, where the user wants it, to their own. A rule that cannot be saved holds for the session. */
async function makeRules(d: DispatchDeps, rules: readonly Rule[], lasts: 'session' | 'always'): Promise<void> {
  for (const rule of rules) d.approval.rules.set(ruleKey(rule), rule);
  if (lasts === 'session' || rules.length === 0) return;
  const kept = await d.tools.policy.allow?.(rules);
  if (kept) d.emit({ type: 'notice', level: kept.done ? 'info' : 'warn', code: 'rule_kept', message: kept.said });
}

/** Number of identical answers after which a notice shows how to make a rule. */
const tiresomeQuestions = 3;

function suggestRule(d: DispatchDeps, key: string, rules: readonly Rule[]): void {
  const times = (d.approval.asked.get(key) ?? 0) + 1;
  d.approval.asked.set(key, times);
  if (times !== tiresomeQuestions) return;
  const how = rules.length > 0 ? 'the next prompt offers a rule for them' : 'add a rule with /permissions add';
  d.emit({
    type: 'notice',
    level: 'info',
    code: 'rule_suggested',
    message:
      `You allowed this ${tiresomeQuestions} times: ${how}. ` +
      '`agent audit suggest-rules` lists other calls that you often allow.',
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

/** Returns where in its file a call changes something, with the lines around it. */
async function placeOf(
  { cwd, secrets }: DispatchDeps,
  { tool, args }: BoundCall,
  { landings, everyMode }: Verdict,
): Promise<Pick<Question, 'lines' | 'surroundings' | 'cwd'>> {
  const place = { cwd, ...(landings ? { landings } : {}) };
  const lines = (await tool.linesOf?.(args, place)) ?? [];
  // Of a guarded file nothing is shown that the call itself does not name.
  const surroundings = everyMode ? null : ((await tool.surroundingsOf?.(args, place)) ?? null);
  return {
    cwd,
    ...(lines.length > 0 ? { lines } : {}),
    ...(surroundings ? { surroundings: secrets?.deep(surroundings) ?? surroundings } : {}),
  };
}

/** Returns a sentence for the user about how such a call can run. */
function remedyForUser(verdict: Verdict): string {
  if (verdict.everyMode)
    return 'No --approval mode allows such calls without a prompt: run agent in a terminal and allow them there.';
  const patterns = allowedBy(verdict);
  const ways = [...(patterns === null ? [] : [`--allowed-tools "${patterns.join(', ')}"`]), '--approval never'];
  return `Allow such calls with ${ways.join(' or ')}, or run agent in a terminal and allow them there.`;
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

/** Returns a sentence for the model about how the user can allow such calls. */
function remedy(verdict: Verdict): string {
  return verdict.everyMode
    ? 'No --approval mode allows such calls without asking; the user can allow them when agent runs in a terminal.'
    : 'The user can allow such calls with --approval never, or when agent runs in a terminal.';
}

function denial(answer: PermissionAnswer, verdict: Verdict, signal: AbortSignal): ErrorEnvelope | null {
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
        `Not run: it needs approval, and this run cannot ask the user: ${verdict.reasons.join('; ')}. ` +
          remedy(verdict),
      );
    case 'deny':
      if (signal.aborted) return cancelledBefore;
      return errorEnvelope(
        'denied_by_user',
        answer.message ? `The user denied this: ${answer.message}` : 'The user denied this.',
      );
    default:
      return answer satisfies never;
  }
}
