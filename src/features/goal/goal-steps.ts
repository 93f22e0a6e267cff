import type { OwnWork, Session } from '../../kernel/agent/session.js';
import { money } from '../../kernel/agent/budget.js';
import { clampText, type Envelope, isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { type Event, type GoalCause, type GoalData, knownEvent, type ToolCallData } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import type { Fault } from '../../kernel/core/provider.js';
import type { SentBy, TurnEnd } from '../../kernel/core/session-port.js';
import { firstLine } from '../../kernel/core/text.js';
import { evidenceList, evidenceQuestion, type Listed, parseGoalJudgement } from './evidence.js';
import { failureHash, printedText } from './failure-text.js';
import type { GoalLimits } from './goal-parts.js';
import { type GoalState, isActive, type ReadGoal } from './goal-state.js';

/** Turns towards a goal that sets no limit of its own. */
export const usualTurns = 30;
/** A goal that fails so often in the same way stops. */
const mostSameFailures = 3;
/** Most bytes of a check's output in a message. */
const maxMessageOutput = 8 * 1024;

interface Judging extends GoalLimits {
  readonly read: ReadGoal;
  /** The end of a goal that only the user can help: it is paused where there is one. */
  readonly stops: 'paused' | 'ended';
}

type GoalEvent = Partial<Omit<GoalData, 'state' | 'turns'>> & Pick<GoalData, 'state'>;

/** Records an event of a goal, with the facts of it that stay. */
export async function recordGoal(session: Session, goal: GoalState, event: GoalEvent, content: string): Promise<void> {
  const { condition, check, max_turns, max_cost_usd } = goal.data;
  const data = { condition, check, max_turns, max_cost_usd, turns: goal.turns, ...event };
  await session.append({ kind: 'goal', content, data });
}

/** Judges the goal after a turn: runs its check, or asks the model for evidence. Records the outcome. Runs like a
 * turn. */
export async function judgeGoal(session: Session, state: GoalState, judging: Judging): Promise<void> {
  await session.workAlone(async (own) => {
    const stop = await (state.data.check === null
      ? askModel(session, state, own)
      : runCheck(session, state, own, judging));
    const now = judging.read(session.recent());
    if (now !== null && isActive(now) && stop !== null) await stopFor(session, now, judging, stop);
  });
}

/** Stops a judged goal that is at a limit, or failed again and again in the same way. Returns true if it stopped. The
 * program may have died between the judgement and the stop, so it is called before each turn. */
export async function stopAtLimit(
  session: Session,
  state: GoalState,
  judging: Pick<Judging, 'stops'>,
): Promise<boolean> {
  const stop = limitOf(state);
  if (stop !== null) await stopFor(session, state, judging, stop);
  return stop !== null;
}

async function stopFor(
  session: Session,
  state: GoalState,
  { stops }: Pick<Judging, 'stops'>,
  stop: Stop,
): Promise<void> {
  const isFinal = stop.cause === 'turns' || stop.cause === 'cost';
  // The user interrupted it, and says how it continues.
  const kind = isFinal ? 'ended' : stop.cause === 'user' ? 'paused' : stops;
  await stopGoal(session, state, { kind, inRepl: stops === 'paused' }, stop);
}

interface Stop {
  readonly cause: GoalCause;
  /** A sentence. */
  readonly why: string;
}

const interrupted: Stop = { cause: 'user', why: 'Interrupted.' };

interface StopKind {
  readonly kind: 'paused' | 'ended';
  /** The user can type what continues it. */
  readonly inRepl: boolean;
}

async function stopGoal(session: Session, state: GoalState, kind: StopKind, stop: Stop): Promise<void> {
  await recordGoal(session, state, { state: kind.kind, cause: stop.cause }, stopText(state, kind, stop));
}

function stopText({ data }: GoalState, { kind, inRepl }: StopKind, { cause, why }: Stop): string {
  const subject = data.check === null ? firstLine(data.condition, 200) : `\`${firstLine(data.check, 200)}\``;
  if (kind === 'ended' && !inRepl) return `Goal not met: ${subject}. ${why}`;
  if (kind === 'paused') return `Goal paused: ${subject}. ${why} /goal resume continues it, /goal off ends it.`;
  const more =
    cause === 'turns'
      ? ` /goal resume --max-turns ${data.max_turns * 2} continues it.`
      : cause === 'cost' && data.max_cost_usd !== null
        ? ` /goal resume --max-cost ${data.max_cost_usd * 2} continues it.`
        : '';
  return `Goal not met: ${subject}. ${why}${more}`;
}

/** Returns why the goal stops after it was judged; null where the next turn may begin. */
function limitOf({ data, phase, turns, spentUsd, sameFailures }: GoalState): Stop | null {
  if (phase !== 'unmet') return null;
  if (data.max_cost_usd !== null && spentUsd >= data.max_cost_usd)
    return {
      cause: 'cost',
      why: `Stopped at its cost limit of ${money(data.max_cost_usd)}: ${money(spentUsd)} is spent.`,
    };
  if (turns >= data.max_turns) return { cause: 'turns', why: `Stopped at its limit of ${turnsText(data.max_turns)}.` };
  if (sameFailures < mostSameFailures) return null;
  return { cause: 'same_failure', why: `It failed ${sameFailures} times in a row in the same way.` };
}

/** Stops the goal after a turn that was interrupted or failed. */
export async function stopAfter(session: Session, state: GoalState, end: TurnEnd): Promise<void> {
  const stop = end.fault ? faultStop(end.fault) : interrupted;
  await stopGoal(session, state, { kind: stop.cause === 'cost' ? 'ended' : 'paused', inRepl: true }, stop);
}

function faultStop({ code, message }: Fault): Stop {
  return code === 'max_cost' ? { cause: 'cost', why: message } : { cause: 'turn_failed', why: `It failed: ${message}` };
}

/** Runs the check through policy, as a call of the user. Returns why the goal stops at once, or null. */
async function runCheck(
  session: Session,
  state: GoalState,
  own: OwnWork,
  { timeoutS }: GoalLimits,
): Promise<Stop | null> {
  const { check, max_turns } = state.data;
  const args = JSON.stringify({ command: check, timeout_seconds: timeoutS });
  const { id, envelope } = finishedCheck(session.recent(), args) ?? (await freshCheck(own, args));
  if (own.signal.aborted) return interrupted;
  const refused = refusalOf(envelope);
  if (refused !== null) return { cause: 'denied', why: `The check did not run: ${refused}` };
  const exitCode = !isError(envelope) && typeof envelope['exit_code'] === 'number' ? envelope['exit_code'] : null;
  const facts = { tool_call_id: id, exit_code: exitCode };
  const named = `\`${firstLine(check ?? '', 200)}\``;
  if (exitCode === 0) {
    await recordGoal(
      session,
      state,
      { state: 'met', ...facts },
      `Goal met after ${turnsText(state.turns)}: ${named} ended with exit code 0.`,
    );
    return null;
  }
  const how = exitCode === null ? 'was ended before it finished' : `ended with exit code ${exitCode}`;
  const failure = { ...facts, failure_sha256: failureHash(exitCode, printedText(envelope)) };
  const content = `Goal not met after turn ${state.turns} of ${max_turns}: ${named} ${how}.`;
  await recordGoal(session, state, { state: 'checked', ...failure }, content);
  return null;
}

interface CheckResult {
  readonly id: string;
  readonly envelope: Envelope;
}

async function freshCheck(own: OwnWork, args: string): Promise<CheckResult> {
  const { id, done } = await own.run({ name: 'bash', arguments: args });
  return { id, envelope: done.outcome.envelope };
}

/** Returns the check of this turn whose result is in the log: the program died before it recorded what follows from
 * it. Null for one whose result is not known. */
function finishedCheck(events: readonly Event[], args: string): CheckResult | null {
  const turnAt = events.findLastIndex(({ kind, data }) => kind === 'assistant' || (kind === 'user' && !isNote(data)));
  const since = events.slice(turnAt + 1).map(knownEvent);
  const call = since.findLast((event) => event?.kind === 'tool_call' && isCheckCall(event.data, args));
  if (call?.kind !== 'tool_call') return null;
  const { id } = call.data;
  const result = since.findLast((event) => event?.kind === 'tool_result' && event.data.tool_call_id === id);
  if (result?.kind !== 'tool_result' || result.data.synthetic === true) return null;
  const envelope = parseEnvelope(result.data.output);
  return isError(envelope) && (envelope.code === 'cancelled' || envelope.code === 'interrupted')
    ? null
    : { id, envelope };
}

function isCheckCall(call: ToolCallData, args: string): boolean {
  return call.by === 'command' && call.function.name === 'bash' && call.function.arguments === args;
}

function isNote(data: unknown): boolean {
  return isRecord(data) && data['note'] === true && data['source'] === undefined;
}

const refusals: ReadonlySet<string> = new Set(['permission_denied', 'denied_by_user', 'unknown_tool', 'invalid_args']);

function refusalOf(envelope: Envelope): string | null {
  return isError(envelope) && refusals.has(envelope.code) ? envelope.error : null;
}

/** Asks the model to show that the goal is met. Returns why the goal stops at once, or null. */
async function askModel(session: Session, state: GoalState, own: OwnWork): Promise<Stop | null> {
  const events = session.recent();
  const listed = evidenceList(events, state);
  const { text, fault } = await own.ask(evidenceQuestion(state.data.condition, listed));
  if (own.signal.aborted) return interrupted;
  if (fault) return faultStop(fault);
  const { met, evidence, reason, blocked } = parseGoalJudgement(text, listed);
  const shown = evidenceLines(listed, evidence);
  const said = reason === '' ? '' : ` ${reason}`;
  if (met) {
    const content = [`Goal met after ${turnsText(state.turns)}.${said} Shown by:`, ...shown].join('\n');
    await recordGoal(session, state, { state: 'met', evidence, reason }, content);
    return null;
  }
  // A turn that did nothing failed like another that did nothing, whatever the model said about it.
  const failure_sha256 = failureHash(null, hasCalled(events, state) ? reason : 'no calls');
  const content = `Goal not met after turn ${state.turns} of ${state.data.max_turns}.${said}`;
  await recordGoal(session, state, { state: 'checked', reason, evidence, failure_sha256 }, content);
  return blocked ? { cause: 'blocked', why: 'Only you can help, the model says.' } : null;
}

function evidenceLines(listed: readonly Listed[], evidence: readonly number[]): readonly string[] {
  return listed.filter(({ seq }) => evidence.includes(seq)).map(({ seq, text }) => `event ${seq}: ${text}`);
}

/** Returns true if the turns since the goal was judged last, or set, have run calls. */
function hasCalled(events: readonly Event[], { setSeq }: GoalState): boolean {
  const from = Math.max(setSeq, events.findLast(isCheck)?.seq ?? 0);
  return events.some(({ seq, kind }) => seq > from && kind === 'tool_result');
}

function isCheck(raw: Event): boolean {
  const event = raw.kind === 'goal' ? knownEvent(raw) : null;
  return event?.kind === 'goal' && event.data.state === 'checked';
}

/** The message that begins the next turn, and a note for the model before it. */
interface NextMessage {
  readonly text: string;
  readonly sentBy: SentBy;
  readonly note: string | null;
}

export function nextMessage(session: Session, state: GoalState): NextMessage {
  const { condition } = state.data;
  if (state.phase === 'first')
    return { text: condition, sentBy: { source: 'goal', note: false }, note: goalNote(state.data) };
  const head = `[The goal is not met yet, after turn ${state.turns} of ${state.data.max_turns}: ${condition}]`;
  return {
    text: [head, ...failureLines(session.recent(), state), 'Continue until it is met.'].join('\n\n'),
    sentBy: { source: 'goal', note: true },
    note: null,
  };
}

/** Returns the note that explains a goal to the model. */
export function goalNote({ condition, check }: Pick<GoalData, 'condition' | 'check'>): string {
  const how =
    check === null
      ? 'After each turn you are asked whether it is met, with the events that show it. Run what shows it.'
      : `After each turn the program runs \`${check}\`: exit code 0 meets it. Do not change the check or what it tests just to make it pass.`;
  return `[Note: the user has set a goal, and your turns continue until it is met: ${condition}\n${how}]`;
}

function failureLines(events: readonly Event[], { data, judged }: GoalState): readonly string[] {
  if (judged === null) return [];
  if (data.check === null) return [judged.reason ?? ''].filter((reason) => reason !== '');
  const output = outputOf(events, judged.tool_call_id);
  const code = judged.exit_code ?? null;
  const end = code === null ? [] : [`[exit code ${code}]`];
  return [[`$ ${data.check}`, clampText(output, maxMessageOutput).text.trimEnd(), ...end].join('\n')];
}

function outputOf(events: readonly Event[], callId: string | undefined): string {
  const raw = events.findLast(
    (event) =>
      event.kind === 'tool_result' && (event.data as { readonly tool_call_id?: unknown }).tool_call_id === callId,
  );
  const event = raw ? knownEvent(raw) : null;
  return event?.kind === 'tool_result' ? printedText(parseEnvelope(event.data.output)) : '';
}

export function turnsText(count: number): string {
  return count === 1 ? '1 turn' : `${count} turns`;
}
