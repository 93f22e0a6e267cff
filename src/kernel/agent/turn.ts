import { addAll } from '../core/lists.js';
import { type Envelope, errorEnvelope, type ErrorEnvelope, isError } from '../core/envelope.js';
import { changesData } from './file-history.js';
import type { CallExtra, ToolCallData, ToolResultData } from '../core/event.js';
import type { Fault, ReceivedCall } from '../core/provider.js';
import type { QueuedMessage, TurnEnd } from '../core/session-port.js';
import { firstLine, withoutEnd } from '../core/text.js';
import type { Binding, Denial } from '../core/tool.js';
import { keepAttached } from './attached-files.js';
import { allowanceOf, tokensOf } from './budget.js';
import { compactionRules, warnOfSize, windowIsFull } from './compaction-rules.js';
import type { PendingLimit } from './limit-wait.js';
import { loadCompaction } from './load-compaction.js';
import { dispatch, type Dispatched, type PreparedCall } from './dispatch.js';
import {
  afterBatch,
  type BatchedCall,
  askAboutPrompt,
  mustGoOn,
  stopFault,
  tellChanges,
  tellDisplayed,
  tellInstructions,
} from './apply-hooks.js';
import { withRepeats, timesOf } from './loop-detection.js';
import { type Reply, request, requestSearch } from './request.js';
import { waitAgain, waitOut } from './stopped-turn.js';
import type { DispatchDeps, FallbackRef, TurnDeps } from './dependencies.js';

/** After so many responses in a row whose every call failed, the model is asked for an answer instead. */
const maxFailedResponses = 3;

interface TurnState extends RequestState {
  /** The most calls of the turn. */
  readonly allowed: number;
  turns: number;
  toolCalls: number;
  readonly denials: Denial[];
  failedInRow: number;
  looped: boolean;
  /** The reason why a hook wants the turn to end here. */
  halt: string | null;
  /** The number of times in a row that a hook has kept the turn from ending. */
  extended: number;
}
type Status = TurnEnd['status'];

/** Runs one user turn: sends a request, runs the calls of the answer one at a time and in order, and sends the next
 * request, until an answer has no calls. The only loop there is. Source: contracts 5. */
export async function runTurn(d: TurnDeps, signal: AbortSignal): Promise<TurnEnd> {
  return await runLoop(d, countFor(d), signal);
}

/** Runs the rest of a turn that a usage limit has stopped. */
export async function continueTurn(d: TurnDeps, pending: PendingLimit, signal: AbortSignal): Promise<TurnEnd> {
  const count = countFor(d);
  if (!(await waitAgain(d, pending, signal)) || signal.aborted) return end('interrupted', '', count);
  await afterWait(d, signal);
  return await runLoop(d, count, signal);
}

async function runLoop(d: TurnDeps, count: TurnState, signal: AbortSignal): Promise<TurnEnd> {
  if (count.allowed === 0) return await lastAnswer(d, 'completed', count, signal);
  for (;;) {
    const reply = await ask(d, 'auto', count, signal);
    await tellDisplayed(d, reply, signal);
    const status = ended(reply, signal);
    if (status) return end(status, reply.text, count, reply);
    if (reply.calls.length === 0 && reply.stop !== 'pause') {
      const late = d.takeLate();
      if (late.length > 0) {
        await recordWaiting(d, late, signal);
        continue;
      }
      if (!(await mustGoOn(d, reply.text, count.extended, signal))) return end('completed', reply.text, count, reply);
      count.extended += 1;
      continue;
    }
    await takeStep(d, reply, count, signal);
    const over = endedMeanwhile(count, signal);
    if (over) return end(over.status, reply.text, count, over);
    // After a pause the provider sends the rest of the answer, so no message may come between.
    if (reply.calls.length > 0) await deliver(d, signal);
    if (isSpent(d, count)) return await lastAnswer(d, 'limit_reached', count, signal);
    if (count.failedInRow >= maxFailedResponses) return await lastAnswer(d, 'completed', count, signal);
  }
}

/** Records what came meanwhile: notes for the model, those about the files of the calls among them, then messages of the
 * user. */
async function deliver(d: TurnDeps, signal: AbortSignal): Promise<void> {
  await tellChanges(d, signal);
  const notes = [...(d.tools.fileNotes?.(d.record.recent()) ?? []), ...d.takeNotes()];
  for (const note of notes) await d.record.append({ kind: 'user', content: note, data: { note: true } });
  await tellInstructions(d, signal);
  await recordWaiting(d, d.takeSteering(), signal);
}

/** Records messages that waited in the queue, unless a hook holds them back. */
export async function recordWaiting(
  d: TurnDeps,
  messages: readonly QueuedMessage[],
  signal: AbortSignal,
): Promise<void> {
  for (const message of messages) await steer(d, message, signal);
}

/** Records a message that came meanwhile, unless a hook holds it back. */
async function steer(d: TurnDeps, message: QueuedMessage, signal: AbortSignal): Promise<void> {
  const held = await askAboutPrompt(d, message.text, false, signal);
  const heldMessage = message.id === undefined ? {} : { heldMessage: message.id };
  if (held) d.emit({ type: 'notice', level: 'warn', code: 'hook', message: held.message, ...heldMessage });
  else await d.recordWaiting(message, signal);
}

/** Runs the calls of a response, or counts a response without calls that the provider wants to continue. */
async function takeStep(d: TurnDeps, reply: Reply, count: TurnState, signal: AbortSignal): Promise<void> {
  if (reply.calls.length > 0) await runCalls(d, reply, count, signal);
  else count.turns += 1;
}

/** Returns the end of a turn that was interrupted or halted by a hook while calls ran, or null. */
function endedMeanwhile(
  { halt }: TurnState,
  signal: AbortSignal,
): { readonly status: Status; readonly fault?: Fault } | null {
  if (signal.aborted) return { status: 'interrupted' };
  return halt === null ? null : { status: 'failed', fault: stopFault(halt) };
}

function countFor({ limits }: TurnDeps): TurnState {
  const none = { turns: 0, toolCalls: 0, denials: [], failedInRow: 0 };
  const allowed = limits.turnCalls?.() ?? Number.POSITIVE_INFINITY;
  return {
    ...none,
    allowed,
    looped: false,
    halt: null,
    extended: 0,
    compactionRest: 0,
    askedForText: false,
  };
}

/** Returns true if the turn repeats itself, or has reached its limit of calls or responses with calls. */
function isSpent(d: TurnDeps, count: TurnState): boolean {
  const { maxToolTurns, usedUp } = d.limits;
  return count.looped || count.turns >= maxToolTurns || count.toolCalls >= count.allowed || Boolean(usedUp?.());
}

/** The status of a turn that this reply ends, or null. */
function ended(reply: Reply, signal: AbortSignal): Status | null {
  if (signal.aborted) return 'interrupted';
  if (reply.fault || reply.stop === 'refusal' || reply.stop === 'content_filter') return 'failed';
  return null;
}

function end(status: Status, text: string, count: TurnState, reply: Partial<Reply> = {}): TurnEnd {
  const { turns, toolCalls, denials } = count;
  if (status === 'completed' && text.trim() === '')
    return { status: 'failed', text: '', turns, toolCalls, denials, fault: emptyFault(reply.stop) };
  const fault = reply.fault ?? (status === 'failed' ? refusalFault(reply.stop) : undefined);
  const limit = status === 'limit_reached' && count.looped ? ({ limit: 'repeated_calls' } as const) : {};
  return { status, text, turns, toolCalls, denials, ...limit, ...(fault ? { fault } : {}) };
}

function emptyFault(stop: Reply['stop'] | undefined): NonNullable<TurnEnd['fault']> {
  if (stop === 'length')
    return {
      code: 'protocol',
      message: 'The answer was cut at the output limit before it had any text.',
      hint: 'Set a larger max_output_tokens or a lower reasoning effort, or use another model.',
    };
  const hint = 'Try again with `agent -c`, or use another model.';
  return { code: 'protocol', message: emptyAnswer, hint };
}

function refusalFault(stop: Reply['stop'] | undefined): NonNullable<TurnEnd['fault']> {
  const message =
    stop === 'content_filter' ? "The provider's content filter stopped the answer." : 'The model refused to answer.';
  return { code: 'bad_request', message, hint: 'Rephrase the request or use another model.' };
}

/** Sends one request that forbids calls. Calls that come back all the same are answered and not run. */
async function lastAnswer(
  d: TurnDeps,
  status: 'limit_reached' | 'completed',
  count: TurnState,
  signal: AbortSignal,
): Promise<TurnEnd> {
  const reply = await ask(d, 'none', count, signal);
  const calls = await recordCalls(d, reply);
  if (calls.length > 0) count.turns += 1;
  for (const { call } of calls)
    await answer(d, call, fixed(errorEnvelope('limit_reached', limitMessage(d, status, count))));
  return end(ended(reply, signal) ?? status, reply.text, count, reply);
}

function limitMessage(d: TurnDeps, status: 'limit_reached' | 'completed', count: TurnState): string {
  if (count.looped) return 'The same call gave the same result again and again. Stopping tool loop.';
  if (count.allowed === 0) return 'Tools are not allowed here. Answer without tools.';
  const used = d.limits.usedUp?.() ?? null;
  if (used !== null) return used;
  return status === 'limit_reached'
    ? `Tool call limit reached (${Math.min(d.limits.maxToolTurns, count.allowed)}). Stopping tool loop.`
    : `Every call of the last ${maxFailedResponses} responses failed. Answer without tools.`;
}

/** Stores all calls of a response before any of them runs; then runs or refuses each one and records its result. */
async function runCalls(d: TurnDeps, reply: Reply, count: TurnState, signal: AbortSignal): Promise<void> {
  const calls = await recordCalls(d, reply);
  count.turns += 1;
  let failed = 0;
  const results: BatchedCall[] = [];
  const ahead = await runAhead(d, calls, { count, reply }, signal);
  for (const [index, prepared] of calls.entries()) {
    const { call } = prepared;
    const wasLooped = count.looped;
    const done = count.looped
      ? fixed(errorEnvelope('limit_reached', limitMessage(d, 'limit_reached', count)))
      : repeated(d, call, count, ahead[index] ?? (await runCall(d, prepared, { index, count, reply }, signal)));
    count.toolCalls += 1;
    const last = index === calls.length - 1 && isSpent(d, count);
    await answer(d, call, last ? withLimit(d, done, count) : done);
    tellLoop(d, call, count.looped !== wasLooped);
    addAll(count.denials, done.denials);
    count.halt ??= done.halt ?? null;
    const { envelope } = done.outcome;
    results.push({ call, binding: prepared.binding, envelope });
    if (isError(envelope)) failed += 1;
  }
  count.halt ??= await afterBatch(d, results, signal);
  count.failedInRow = failed === calls.length ? count.failedInRow + 1 : 0;
}

/** The most agents that run at once. */
const mostTogether = 4;

/** Runs calls that may run side by side. Returns their outcomes in order; none where each has to wait for the one
 * before. */
async function runAhead(
  d: TurnDeps,
  calls: readonly PreparedCall[],
  { count, reply }: { readonly count: TurnState; readonly reply: Reply },
  signal: AbortSignal,
): Promise<readonly Dispatched[]> {
  const bound = calls.map(({ binding }) => (binding.ok ? binding.bound : null));
  if (calls.length < 2 || !(await d.tools.agents?.runTogether(bound))) return [];
  const done: Dispatched[] = [];
  const waiting = [...calls.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, prepared] = next;
      const before = { ...count, toolCalls: count.toolCalls + index };
      done[index] = await runCall(d, prepared, { index, count: before, reply }, signal);
    }
  };
  await Promise.all(Array.from({ length: mostTogether }, work));
  return done;
}

async function runCall(
  d: TurnDeps,
  prepared: PreparedCall,
  { index, count, reply }: { readonly index: number; readonly count: TurnState; readonly reply: Reply },
  signal: AbortSignal,
): Promise<Dispatched> {
  if (reply.stop === 'length') {
    return fixed(
      errorEnvelope(
        'invalid_args',
        'Not run: the response was cut at the output limit, so its arguments may be incomplete. Send less at once.',
        { reason: 'output_limit' },
      ),
    );
  }
  if (count.halt !== null) return fixed(errorEnvelope('cancelled', `Not run: ${stopFault(count.halt).message}`));
  if (index >= d.limits.maxToolCalls)
    return fixed(
      errorEnvelope('limit_reached', `Not run: a response may make at most ${d.limits.maxToolCalls} calls.`),
    );
  if (count.toolCalls >= count.allowed)
    return fixed(errorEnvelope('limit_reached', `Not run: a request may make at most ${count.allowed} calls here.`));
  const forCalls: DispatchDeps = { ...withAgents(d), searchWeb: (search) => requestSearch(d, search) };
  return await dispatch(forCalls, prepared, signal);
}

/** Lets calls start agents. */
export function withAgents(d: TurnDeps): DispatchDeps {
  const { agents } = d.tools;
  if (!agents) return d;
  return {
    ...d,
    runAgent: (order, call) => agents.run(order, d, call),
    mergeAgent: (number, call) => agents.merge(number, d, call),
  };
}

/** Gives each call an id that is unique within the session, binds it, and records it. */
async function recordCalls(d: TurnDeps, reply: Reply): Promise<readonly PreparedCall[]> {
  const prepared: PreparedCall[] = [];
  for (const [index, received] of reply.calls.entries()) {
    const call = callData(d, received, reply.responseId, index);
    const binding: Binding =
      received.refused === undefined
        ? await d.tools.registry.bind(call.function)
        : { ok: false, error: refusedByServer(received.refused, received.arguments) };
    const content = binding.ok
      ? binding.bound.tool.describe(d.secrets?.deep(binding.bound.args) ?? binding.bound.args)
      : `${firstLine(received.name, 64)}(${firstLine(d.secrets?.json(received.arguments) ?? received.arguments, 160)})`;
    const recorded = await d.record.note({
      kind: 'tool_call',
      content,
      data: binding.ok && binding.bound.target ? { ...call, target: binding.bound.target } : call,
    });
    prepared.push({ call: recorded.data as ToolCallData, content: String(recorded.content), binding });
  }
  return prepared;
}

/** Returns what is recorded of a call, under an id that is unique within the session. */
function callData(d: TurnDeps, received: ReceivedCall, responseId: string, index: number): ToolCallData {
  const isOwnId = received.id !== '' && received.id.length <= maxIdChars;
  const extra = extraOf(d, received);
  return {
    id: uniqueId(d, isOwnId ? received.id : `call_${responseId}_${index + 1}`),
    type: 'function',
    function: { name: received.name, arguments: received.arguments },
    response_id: responseId,
    ...(received.received === undefined ? {} : { received: received.received }),
    ...(extra === null ? {} : { extra }),
  };
}

/** An id is in every event of its call, so a longer one is kept beside it. */
const maxIdChars = 64;

/** Returns what the provider wants back with a call, or null. Its id counts where other servers would not accept it. */
function extraOf(d: TurnDeps, { id, fields }: ReceivedCall): CallExtra | null {
  const hasSignedId = id !== '' && !/^[\w:.-]{1,40}$/.test(id);
  if (fields === undefined && !hasSignedId) return null;
  const { provider, api, model } = d.model().ref;
  return { provider, api, model, ...(fields ? { fields } : {}), ...(hasSignedId ? { signed_id: id } : {}) };
}

/** The error for a call that the model's server could not read. The model may make it again. */
function refusedByServer(why: string, written: string): ErrorEnvelope {
  return errorEnvelope('invalid_args', `Not run: the server rejected this call: ${why} Make it again as a tool call.`, {
    written: firstLine(written, 2000),
  });
}

export function uniqueId(d: TurnDeps, id: string): string {
  let unique = id;
  for (let n = 2; d.record.projection.hasCall(unique); n++) unique = `${id}_${n}`;
  return unique;
}

function fixed(envelope: ReturnType<typeof errorEnvelope>): Dispatched {
  return { outcome: { envelope, summary: envelope.error }, denials: [], durationMs: 0 };
}

/** Adds to a result how often it was repeated, and ends the turn where nobody can be asked about it. */
function repeated(d: TurnDeps, call: ToolCallData, count: TurnState, done: Dispatched): Dispatched {
  const { envelope, looped } = withRepeats(d, call, done.outcome.envelope);
  if (looped) count.looped = true;
  return envelope === done.outcome.envelope ? done : { ...done, outcome: { ...done.outcome, envelope } };
}

/** Notifies the user that the turn ends because of a call. The result of the call already informs the model. */
function tellLoop(d: TurnDeps, { function: { name } }: ToolCallData, isNew: boolean): void {
  if (!isNew) return;
  const message =
    `Stopped: ${name} was called with the same arguments and gave the same result ${timesOf(d.limits.loopLimit)}. ` +
    'loop_limit sets how often.';
  d.emit({ type: 'notice', level: 'warn', code: 'repeated_calls', message });
}

function withLimit(d: TurnDeps, done: Dispatched, count: TurnState): Dispatched {
  if (count.looped) return done;
  const envelope: Envelope = {
    ...done.outcome.envelope,
    limit_reached: true,
    limit_message: limitMessage(d, 'limit_reached', count),
  };
  return { ...done, outcome: { ...done.outcome, envelope } };
}

/** Records the result of a call. */
export async function answer(d: TurnDeps, call: ToolCallData, done: Dispatched): Promise<void> {
  const { captured } = done;
  const { outcome, kept } = await keepAttached(d.attachments, done.outcome);
  const { envelope, summary: content, files, diff, answerSource } = outcome;
  d.host.log({
    at: 'call',
    message: 'a call ended',
    detail: true,
    tool: call.function.name,
    ms: done.durationMs,
    ...(isError(envelope) ? { err: envelope.code } : { ok: true }),
  });
  await d.record.append(
    {
      kind: 'tool_result',
      content,
      data: {
        tool_call_id: call.id,
        name: call.function.name,
        output: JSON.stringify(envelope),
        success: !isError(envelope),
        duration_ms: done.durationMs,
        ...(files && files.length > 0 ? { files } : {}),
        ...(diff ? { diff } : {}),
        ...changesData(captured),
        ...decisionData(done),
        ...(answerSource === undefined ? {} : { answer_source: answerSource }),
        ...(kept && kept.attachments.length > 0 ? { attachments: kept.attachments } : {}),
      },
    },
    [...(captured?.blobs ?? []), ...(kept?.blobs ?? [])],
  );
}

function decisionData({ decision = {} }: Dispatched): Pick<ToolResultData, 'decided_by' | 'effects' | 'kept'> {
  const { decidedBy, effects, kept } = decision;
  return {
    ...(decidedBy === undefined ? {} : { decided_by: decidedBy }),
    ...(effects === undefined ? {} : { effects }),
    ...(kept === undefined ? {} : { kept }),
  };
}

/** The state that one turn keeps between its requests. */
interface RequestState {
  /** Answers to come before a compaction that failed is tried again. */
  compactionRest: number;
  /** The model was asked once more after an answer without text. */
  askedForText: boolean;
}

const restAfterFailure = 5;
const emptyAnswerNote = '[Note: your last response had no text and no tool call. Answer the user now.]';

/** Asks the model for one answer, and once in a turn again where it has neither text nor calls. Source: contracts 10,
 * "A response with reasoning alone is asked for once more". */
async function ask(
  d: TurnDeps,
  toolChoice: 'auto' | 'none',
  asking: RequestState,
  signal: AbortSignal,
): Promise<Reply> {
  const reply = await askOnce(d, toolChoice, asking, signal);
  if (asking.askedForText || !isEmpty(reply) || ended(reply, signal)) return reply;
  asking.askedForText = true;
  d.emit({ type: 'notice', level: 'warn', code: 'empty_answer', message: `${emptyAnswer} Retrying once.` });
  await d.record.append({ kind: 'user', content: emptyAnswerNote, data: { note: true } });
  return await askOnce(d, toolChoice, asking, signal);
}

const emptyAnswer = 'The model ended its answer without any text.';

function isEmpty({ text, calls, stop }: Reply): boolean {
  return text.trim() === '' && calls.length === 0 && stop !== 'pause';
}

/** Asks the model for one answer. Compacts the conversation before a request that would come near the end of the
 * window, and after a request that was refused as too long. Where the budget forbids the request, the reply has that
 * fault. */
async function askOnce(
  d: TurnDeps,
  toolChoice: 'auto' | 'none',
  asking: RequestState,
  signal: AbortSignal,
): Promise<Reply> {
  await d.followPlanMode?.();
  if (asking.compactionRest > 0) asking.compactionRest -= 1;
  else if (windowIsFull(d)) await compactInTime(d, asking, signal);
  warnOfSize(d);
  const reply = await requestInTime(d, toolChoice, signal);
  return reply.fault?.code === 'context_overflow' && !signal.aborted
    ? await afterOverflow(d, toolChoice, { ...reply, fault: reply.fault }, signal)
    : reply;
}

/** Asks the model, and after a usage limit that is waited for again. */
async function requestInTime(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Reply> {
  for (let again = 0; ; again++) {
    const reply = await requestOrStepIn(d, toolChoice, signal);
    if (reply.fault === undefined || signal.aborted) return reply;
    const isOver = await waitOut(d, reply.fault, again, signal);
    if (signal.aborted) return withoutFault(reply);
    if (!isOver) return reply;
    await comeBack(d);
    await afterWait(d, signal);
  }
}

/** The user has ended the wait, or left it: the turn is interrupted, and has not failed. */
function withoutFault(reply: Reply): Reply {
  const { fault: _, ...rest } = reply;
  return rest;
}

/** Records what came meanwhile. An answer that the limit has cut is not part of a request without a message behind it. */
async function afterWait(d: TurnDeps, signal: AbortSignal): Promise<void> {
  const last = d.record.conversation().messages.at(-1);
  if (last?.role === 'assistant' && last.calls.length === 0)
    await d.record.append({ kind: 'user', content: cutNote, data: { note: true, source: 'limit' } });
  await deliver(d, signal);
}

const cutNote = '[Note: a usage limit of the provider interrupted your last message. Continue where it stopped.]';

/** Leaves a fallback model: the limit of the session's own model is over. */
async function comeBack(d: TurnDeps): Promise<void> {
  const own = d.ownModel();
  const { ref } = d.model();
  if (own.provider !== ref.provider || own.model !== ref.model) await d.useFallbackModel(own);
}

/** Makes room after a refusal and asks again: without the output of old results where that should be enough, then with
 * a summary. */
async function afterOverflow(
  d: TurnDeps,
  toolChoice: 'auto' | 'none',
  refused: Reply & { readonly fault: Fault },
  signal: AbortSignal,
): Promise<Reply> {
  if (compactionRules(d).atShare === null) return { ...refused, fault: tooLongWithoutCompaction(refused.fault) };
  const windowTokens = windowInRefusal(refused.fault.message);
  const named = windowTokens === null ? {} : { windowTokens };
  const { compact } = await loadCompaction();
  let reply: Reply = refused;
  for (const summarise of [false, true]) {
    const compacted = await compact(d, { trigger: 'overflow', focus: '', summarise, ...named }, signal);
    if (signal.aborted) return reply;
    if (!compacted.done) break;
    reply = await requestUnlessRefused(d, toolChoice, signal);
    if (compacted.summarised || reply.fault?.code !== 'context_overflow' || signal.aborted) break;
  }
  return reply.fault?.code === 'context_overflow' ? { ...reply, fault: tooLong(d, reply.fault) } : reply;
}

/** Adds to the server's refusal what the user can do where automatic compaction is switched off. */
function tooLongWithoutCompaction(fault: Fault): Fault {
  return {
    ...fault,
    message: `${withoutEnd(fault.message, '. \t\r\n')}. Automatic compaction is off (compaction.at_percent).`,
    hint: 'Make room with /compact or /compact --results (headless: agent -c -p /compact), then send the message again.',
  };
}

/** Asks the model, and where that cannot answer, all its retries included, each fallback model in order. */
async function requestOrStepIn(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Reply> {
  let reply = await requestUnlessRefused(d, toolChoice, signal);
  if (reply.fault === undefined || signal.aborted || !isUnavailable(reply)) return reply;
  let limit = reply.fault;
  for (const other of await modelsToStepIn(d)) {
    if (reply.fault === undefined || signal.aborted || !isUnavailable(reply)) break;
    if (!(await stepIn(d, other, reply.fault))) continue;
    reply = await requestUnlessRefused(d, toolChoice, signal);
    limit = earlierLimit(limit, reply.fault);
  }
  return reply.fault === undefined || limit.retryAt === undefined ? reply : { ...reply, fault: limit };
}

/** Returns the usage limit that ends first. */
function earlierLimit(one: Fault, other: Fault | undefined): Fault {
  return other !== undefined && (other.retryAt ?? Infinity) < (one.retryAt ?? Infinity) ? other : one;
}

/** Returns the models that may continue the turn, in order: that of the session where it is not in use, then its
 * fallback models. */
async function modelsToStepIn(d: TurnDeps): Promise<readonly FallbackRef[]> {
  const own = d.ownModel();
  const fallbacks = (await d.models.fallbacks?.(d.model().ref, own)) ?? [];
  return (await d.followPlanMode?.()) === true ? [own, ...fallbacks] : fallbacks;
}

/** Continues the turn with another model and says so. Returns false where that model cannot be opened. */
async function stepIn(d: TurnDeps, other: FallbackRef, fault: Fault): Promise<boolean> {
  const { ref } = d.model();
  const problem = await d.useFallbackModel(other);
  const names = `${other.provider}/${other.model}`;
  const then = problem === null ? `${names} continues this turn.` : `${names} cannot replace it: ${problem}`;
  const message = `${ref.provider}/${ref.model} cannot answer: ${withoutEnd(fault.message, '. \t\r\n')}. ${then}`;
  d.emit({ type: 'notice', level: 'warn', code: 'fallback_model', message });
  return problem === null;
}

const unavailable: readonly Fault['code'][] = ['rate_limited', 'network', 'stream_incomplete'];

/** The model is overloaded, cannot be reached or is not there any more, and nothing of its answer is on record. */
function isUnavailable({ fault, text }: Reply): boolean {
  return fault !== undefined && text === '' && (unavailable.includes(fault.code) || fault.status === 404);
}

/** A compaction that fails is reported and tried again some answers later; the turn continues. */
async function compactInTime(d: TurnDeps, asking: RequestState, signal: AbortSignal): Promise<void> {
  const { compact, settleWindow } = await loadCompaction();
  if (!(await settleWindow(d))) return;
  const compacted = await compact(d, { trigger: 'auto', focus: '' }, signal);
  if (compacted.done || signal.aborted) return;
  asking.compactionRest = restAfterFailure;
  d.emit({
    type: 'notice',
    level: 'warn',
    code: 'compaction_failed',
    message: `The context window is nearly full and the conversation could not be compacted: ${compacted.reason}.`,
  });
}

async function requestUnlessRefused(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Reply> {
  const allowance = signal.aborted ? null : allowanceOf(d);
  if (allowance?.allowed === false)
    return { responseId: '', text: '', calls: [], stop: 'interrupted', fault: allowance.fault };
  return await request(d, toolChoice, signal);
}

/** Reads the window's tokens from the server's refusal (llama-server, vLLM, OpenAI, Anthropic). */
function windowInRefusal(message: string): number | null {
  const tokens =
    /context (?:size|length|window|limit)\D{0,20}(\d{3,8})\b/i.exec(message) ??
    /> (\d{3,8}) maximum/i.exec(message) ??
    /maximum prompt length is (\d{3,8})/i.exec(message);
  return tokens === null ? null : Number(tokens[1]);
}

/** The prompt and the tools are too long by themselves where they are more than this share of a request. */
const fixedShare = 0.75;

/** Adds to the server's refusal why it is final and what the user can do. */
function tooLong(d: TurnDeps, fault: Fault): Fault {
  const { system, tools, messages } = d.record.conversation();
  const fixed = tokensOf(system) + tokensOf(tools);
  const refusal = `${withoutEnd(fault.message, '. \t\r\n')}.`;
  if (fixed > (fixed + tokensOf(messages)) * fixedShare) {
    return {
      ...fault,
      message: `${refusal} The system prompt and the tools, sent with every request, take about ${fixed} tokens of it.`,
      hint:
        'Give the model a larger context window (on a local server, its context size), or send less with every request: ' +
        '--tools, --no-tools, shorter instructions.',
    };
  }
  const last = messages.at(-1);
  const alone = last?.role === 'user' ? ` The last message alone has ${last.content.length} characters.` : '';
  return {
    ...fault,
    message: `${refusal} Compacting the conversation does not help.${alone}`,
    hint: 'Send less, start a new session, or use a model with a larger context window.',
  };
}
