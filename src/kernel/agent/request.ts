import {
  type AssistantData,
  type Event,
  knownEvent,
  type Stop,
  type TokenUsage,
  type UsageData,
} from '../core/event.js';
import type { ModelAnswer } from '../core/hooks.js';
import type { Json } from '../core/json.js';
import { type Conversation, type Message, type ModelRef, project } from '../core/projection.js';
import type { Fault, ModelChunk, ReceivedCall, SearchAnswer, SearchRequest } from '../core/provider.js';
import { firstLine } from '../core/text.js';
import { withdrawRefused, withFiles } from './attached-files.js';
import { allowanceOf, budgetOf, cutFault, spendingWarning } from './budget.js';
import type { TurnDeps } from './dependencies.js';
import { askForRole } from './model-roles.js';
import { sideConversation } from './side-question.js';
import { askAboutAnswer, hooksBefore } from './hooked-requests.js';

/** The number of calls beyond `max_tool_calls` that are still read, recorded and refused, so that the model sees
 * them fail. The answer is not read any further. */
const refusedCalls = 20;

/** One recorded answer of a model. `calls` is empty after a fault and after an interrupt: no call of an unfinished
 * answer may run. */
export interface Reply {
  readonly responseId: string;
  readonly text: string;
  readonly calls: readonly ReceivedCall[];
  readonly stop: Stop;
  readonly fault?: Fault;
}

interface Draft {
  text: string;
  calls: ReceivedCall[];
  usage: TokenUsage | null;
  costUsd: number | null;
  stop: Stop;
  reasoning: readonly Json[];
  fault: Fault | null;
  /** Money set the limit of the answer. */
  isShort: boolean;
}

/** Sends the conversation, shows the answer as it comes, and records usage and text. The only caller of a provider. */
export async function request(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Reply> {
  const { ref } = d.model();
  const responseId = `r${d.record.lastSeq() + 1}`;
  const draft = await answerTo(d, toolChoice, signal);
  const stop: Stop = signal.aborted || draft.fault ? 'interrupted' : draft.stop;
  const calls = stop === 'interrupted' ? [] : draft.calls;
  await recordUsage(d, ref, responseId, draft);
  const data = assistantData(ref, responseId, draft, stop);
  const answer = { kind: 'assistant', content: draft.text, data } as const;
  if (needsEvent(draft, calls, stop)) await (calls.length > 0 ? d.record.note(answer) : d.record.append(answer));
  const fault = draft.fault ?? (stop === 'length' && calls.length === 0 ? cutOff(d, draft) : null);
  warnOfManyCalls(d, calls);
  return { responseId, text: draft.text, calls, stop, ...(fault ? { fault } : {}) };
}

/** Asks again where the model refused a file, without it: first without those that are new, then without any. */
async function answerTo(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Draft> {
  let draft = await listen(d, d.record.conversation(), toolChoice, signal);
  for (let again = 0; again < 2 && draft.fault && !signal.aborted; again++) {
    if (!(await withdrawRefused(d, draft.fault))) break;
    draft = await listen(d, d.record.conversation(), toolChoice, signal);
  }
  const fault = draft.fault ?? (await askAboutAnswer(d, d.model().ref, draft, signal));
  return { ...draft, fault };
}

function assistantData(
  { provider, api, model }: ModelRef,
  responseId: string,
  { reasoning }: Draft,
  stop: Stop,
): AssistantData {
  return {
    response_id: responseId,
    provider,
    api,
    model,
    stop,
    ...(stop === 'interrupted' ? { interrupted: true } : {}),
    ...(reasoning.length > 0 && stop !== 'interrupted' ? { reasoning } : {}),
  };
}

function cutByMoney(d: TurnDeps, { stop, isShort }: Draft): Fault | null {
  const budget = budgetOf(d);
  return stop === 'length' && isShort && budget !== null && 'maxCostUsd' in budget
    ? cutFault(budget.maxCostUsd, d.record.totals().spentUsd)
    : null;
}

/** Handles a cut answer without calls: returns the fault that ends the turn where money set the limit, and otherwise
 * gives a notice. */
function cutOff(d: TurnDeps, draft: Draft): Fault | null {
  const fault = cutByMoney(d, draft);
  if (fault === null)
    d.emit({
      type: 'notice',
      level: 'warn',
      code: 'output_limit',
      message: 'The answer was cut at the output limit of the model. Ask it to continue, or raise max_output_tokens.',
    });
  return fault;
}

function warnOfManyCalls(d: TurnDeps, calls: readonly ReceivedCall[]): void {
  const { maxToolCalls } = d.limits;
  if (calls.length < maxToolCalls + refusedCalls) return;
  d.emit({
    type: 'notice',
    level: 'warn',
    code: 'call_limit',
    message: `The answer asks for ${calls.length} calls or more: ${maxToolCalls} are run (max_tool_calls), the others are refused, and the rest of the answer was not read.`,
  });
}

/** Has the provider of the model search the web, and records what that used. */
export async function requestSearch(d: TurnDeps, request: SearchRequest): Promise<SearchAnswer> {
  const { provider, ref } = d.model();
  if (!provider.search)
    return {
      ok: false,
      reason: 'failed',
      message: `${ref.provider} has no built-in web search. Set web.search.provider to a search service.`,
    };
  const allowance = allowanceOf(d);
  if (!allowance.allowed) return { ok: false, reason: 'failed', message: allowance.fault.message };
  const responseId = `r${d.record.lastSeq() + 1}`;
  const { answer, ...spent } = await provider.search(request, ref);
  await recordUsage(d, ref, responseId, spent, 'web_search');
  return answer;
}

/** Asks for a summary of `conversation`. Only the usage of that request is recorded, and its text is not shown. */
export async function requestSummary(
  d: TurnDeps,
  conversation: Conversation,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly fault: Fault | null }> {
  return await askForRole(d, 'compaction', conversation, (asked) => summaryBy(asked, conversation, signal));
}

async function summaryBy(
  d: TurnDeps,
  conversation: Conversation,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly fault: Fault | null }> {
  const allowance = allowanceOf(d);
  if (!allowance.allowed) return { text: '', fault: allowance.fault };
  const { ref } = d.model();
  const responseId = `r${d.record.lastSeq() + 1}`;
  const quiet: TurnDeps = {
    ...d,
    emit: (event) => {
      if (event.type !== 'text_delta' && event.type !== 'reasoning_delta') d.emit(event);
    },
  };
  const draft = await listen(quiet, conversation, 'none', signal);
  await recordUsage(d, ref, responseId, draft, 'compaction');
  const fault = draft.fault ?? cutByMoney(d, draft);
  return { text: fault ? '' : draft.text.trim(), fault };
}

const titleInstruction =
  'Below is the beginning of a conversation. Answer with a specific title for it: three to six words in the language of the user. No quotes, no full stop, nothing else.';
/** Most characters of each message that a title is made from. */
const titleSource = 2000;
/** Models that think before they answer need more than the title itself. */
const titleTokens = 2048;

/** Asks for a title of the conversation, in a small request beside it. Only its usage is recorded, and nothing of it is
 * shown. The text is '' where none came. */
export async function requestTitle(
  d: TurnDeps,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly fault: Fault | null }> {
  return await askForRole(d, 'title', '', (asked) => titleBy(asked, signal));
}

async function titleBy(
  d: TurnDeps,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly fault: Fault | null }> {
  const { ref } = d.model();
  const allowance = allowanceOf(d);
  if (!allowance.allowed) return { text: '', fault: allowance.fault };
  const { messages, settings } = d.record.conversation();
  const asked = messages.find((message) => message.role === 'user')?.content ?? '';
  const answer = messages.find((message) => message.role === 'assistant' && message.text !== '');
  const said = answer?.role === 'assistant' ? answer.text : '';
  const content = `The user: ${asked.slice(0, titleSource)}\n\nThe assistant: ${said.slice(0, titleSource)}`;
  const responseId = `r${d.record.lastSeq() + 1}t`;
  const draft = await listen(
    { ...d, emit: () => undefined },
    {
      system: titleInstruction,
      tools: [],
      settings: { model_output_size: settings.model_output_size, max_output_tokens: titleTokens },
      messages: [{ role: 'user', seq: 1, content: content.toWellFormed() }],
    },
    'none',
    signal,
  );
  await recordUsage(d, ref, responseId, draft, 'title');
  return { text: draft.fault ? '' : titleOf(draft.text), fault: draft.fault };
}

/** Most tokens of an answer to a hook. */
const hookTokens = 4096;

/** Asks the model a question of a hook, in a small request beside the conversation. Only its usage is recorded. */
export async function requestAnswer(d: TurnDeps, question: string, signal: AbortSignal): Promise<ModelAnswer> {
  const { ref } = d.model();
  const allowance = allowanceOf(d);
  if (!allowance.allowed) return { text: '', problem: allowance.fault.message };
  const { settings } = d.record.conversation();
  const responseId = `r${d.record.lastSeq() + 1}h${d.host.sha256(question).slice(0, 8)}`;
  const draft = await listen(
    { ...d, emit: () => undefined },
    {
      system: '',
      tools: [],
      settings: { model_output_size: settings.model_output_size, max_output_tokens: hookTokens },
      messages: [{ role: 'user', seq: 1, content: question.toWellFormed() }],
    },
    'none',
    signal,
  );
  await recordUsage(d, ref, responseId, draft, 'hook');
  return { text: draft.text, problem: draft.fault?.message ?? null };
}

/** Asks the model a question about the conversation, at its end and without tools: the provider's cache holds. Nothing of
 * it is part of the conversation or shown; only its usage is recorded. */
export async function requestVerdict(
  d: TurnDeps,
  question: string,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly fault: Fault | null }> {
  const { ref } = d.model();
  const allowance = allowanceOf(d);
  if (!allowance.allowed) return { text: '', fault: allowance.fault };
  const conversation = d.record.conversation();
  const seq = d.record.lastSeq() + 1;
  const messages = [...conversation.messages, { role: 'user', seq, content: question.toWellFormed() } as const];
  const draft = await listen({ ...d, emit: () => undefined }, { ...conversation, messages }, 'none', signal);
  await recordUsage(d, ref, `r${seq}g`, draft, 'goal');
  return { text: draft.text, fault: draft.fault ?? cutByMoney(d, draft) };
}

/** The answer to a side question. `usage` is recorded already. */
export interface SideAnswer {
  readonly text: string;
  readonly usage: UsageData | null;
  readonly fault: Fault | null;
}

/** Asks the model a question about the conversation, beside whatever runs, and records what that used. The request
 * begins like those of the conversation, so that it uses their cache, and forbids calls. `onText` gets the whole
 * answer so far. */
export async function requestSideAnswer(
  d: TurnDeps,
  question: string,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<SideAnswer> {
  const { ref } = d.model();
  const allowance = allowanceOf(d);
  if (!allowance.allowed) return { text: '', usage: null, fault: allowance.fault };
  const responseId = `r${d.record.lastSeq() + 1}s${d.host.sha256(question).slice(0, 8)}`;
  let text = '';
  const emit: TurnDeps['emit'] = (event) => {
    if (event.type === 'text_delta') text += event.text;
    else if (event.type === 'retry_scheduled') text = '';
    else return;
    onText(text);
  };
  const conversation = sideConversation(d.record.conversation(), d.record.projection.openCalls(), question);
  const draft = await listen({ ...d, emit }, conversation, 'none', signal);
  await recordUsage(d, ref, responseId, draft, 'side_question');
  return {
    text: draft.text.trim(),
    usage: usageData(ref, responseId, draft, 'side_question'),
    fault: draft.fault ?? cutByMoney(d, draft),
  };
}

/** Returns the first line without what models put around a title. */
function titleOf(text: string): string {
  const [line = ''] = text.trim().split('\n');
  return firstLine(line.replace(/^(?:title:|[#*\s"'`“„«]+)+|[*\s"'`”“».]+$/gi, ''), 60);
}

async function listen(
  d: TurnDeps,
  conversation: Conversation,
  toolChoice: 'auto' | 'none',
  signal: AbortSignal,
): Promise<Draft> {
  const { provider, ref, effort } = d.model();
  const draft = newDraft();
  const asked = effort === undefined ? conversation : withEffort(conversation, effort);
  const { sent, isShort } = withinBudget(d, await withFiles(d, asked));
  d.emit({ type: 'request_started' });
  for await (const chunk of provider.stream({
    conversation: sent,
    ref,
    toolChoice,
    signal,
    maxCalls: d.limits.maxToolCalls + refusedCalls,
    ...hooksBefore(d, ref, signal),
  })) {
    if (signal.aborted) break;
    receive(d, draft, chunk);
  }
  return { ...draft, isShort };
}

function withEffort(conversation: Conversation, effort: string): Conversation {
  return { ...conversation, settings: { ...conversation.settings, effort } };
}

/** Adds the output limit that the remaining money allows. Providers do not cache by that limit. */
function withinBudget(
  d: TurnDeps,
  conversation: Conversation,
): { readonly sent: Conversation; readonly isShort: boolean } {
  const allowance = allowanceOf(d);
  if (!allowance.allowed || allowance.maxOutputTokens === null) return { sent: conversation, isShort: false };
  return {
    sent: { ...conversation, settings: { ...conversation.settings, max_output_tokens: allowance.maxOutputTokens } },
    isShort: allowance.isShort,
  };
}

async function recordUsage(
  d: TurnDeps,
  ref: ModelRef,
  responseId: string,
  spent: Pick<Draft, 'usage' | 'costUsd'>,
  purpose?: UsageData['purpose'],
): Promise<void> {
  const { usage, costUsd } = spent;
  const data = usageData(ref, responseId, spent, purpose);
  if (!usage || !data) return;
  const missed = purpose ? null : cacheMiss(d.record.recent(), ref, usage);
  if (missed !== null) d.emit({ type: 'notice', level: 'info', code: 'cache_miss', message: missed });
  const budget = budgetOf(d);
  const limit = budget !== null && 'maxCostUsd' in budget ? budget.maxCostUsd : null;
  const before = limit === null ? 0 : d.record.totals().spentUsd;
  await d.record.note({ kind: 'usage', content: null, data: { ...data, role: purpose ?? d.role() } });
  const warning = limit === null ? null : spendingWarning(limit, before, before + (costUsd ?? 0));
  if (warning !== null) d.emit({ type: 'notice', level: 'warn', code: 'spend_limit', message: warning });
}

/** Returns what a request used as its event has it; null if the provider reported nothing. */
function usageData(
  { provider, model }: ModelRef,
  responseId: string,
  { usage, costUsd }: Pick<Draft, 'usage' | 'costUsd'>,
  purpose?: UsageData['purpose'],
): UsageData | null {
  if (!usage) return null;
  return {
    response_id: responseId,
    provider,
    model,
    input_tokens: usage.input,
    output_tokens: usage.output,
    cache_read_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    cost_usd: costUsd,
    ...(purpose ? { purpose } : {}),
  };
}

/** False for an answer of calls alone and for one that broke off before its first word: they need no event. */
function needsEvent(draft: Draft, calls: readonly ReceivedCall[], stop: Stop): boolean {
  if (draft.text !== '') return true;
  return stop !== 'interrupted' && (calls.length === 0 || draft.reasoning.length > 0);
}

function newDraft(): Draft {
  return { text: '', calls: [], usage: null, costUsd: null, stop: 'stop', reasoning: [], fault: null, isShort: false };
}

function receive(d: TurnDeps, draft: Draft, chunk: ModelChunk): void {
  switch (chunk.type) {
    case 'text':
      draft.text += chunk.text;
      d.emit({ type: 'text_delta', text: chunk.text });
      break;
    case 'reasoning':
      d.emit({ type: 'reasoning_delta', text: chunk.text });
      break;
    case 'tool_call':
      draft.calls.push(chunk.call);
      break;
    case 'usage':
      draft.usage = chunk.usage;
      draft.costUsd = chunk.costUsd;
      break;
    case 'retry':
      Object.assign(draft, newDraft());
      d.emit({ ...chunk, type: 'retry_scheduled' });
      break;
    case 'notice':
      d.emit({ type: 'notice', level: chunk.level ?? 'info', code: chunk.code, message: chunk.message });
      break;
    case 'end':
      draft.stop = chunk.stop;
      draft.reasoning = chunk.reasoning ?? [];
      break;
    case 'fault':
      draft.fault = chunk.fault;
      break;
    default:
      chunk satisfies never;
  }
}

/** No provider caches prompts shorter than this. Source: the vendors' pages on prompt caching; the largest minimum is
 * Anthropic's. */
const smallestCachedTokens = 4096;

/** The notice for a request that missed the provider's cache: it names the first event that differs from the last
 * request. Null where no hit was expected: after a change of model, for a short prompt, and where the provider reported
 * no cached token for the last request. `events` are those of the request that `usage` is for. */
export function cacheMiss(events: readonly Event[], ref: ModelRef, usage: TokenUsage): string | null {
  if (usage.cacheRead > 0) return null;
  const at = events.findLastIndex((event) => event.kind === 'usage' && isAnswering(event));
  const last = usageOf(events[at]);
  if (last === null || !isSame(last, ref) || promptTokens(last) < smallestCachedTokens) return null;
  if (
    last.cache_read_tokens + last.cache_write_tokens === 0 ||
    events.slice(at).some((event) => event.kind === 'model')
  )
    return null;
  const tokens = usage.input + usage.cacheWrite;
  return `Provider cache miss: ${tokens} tokens were not cached. ${reason(events, at)}`;
}

/** False for a request beside the conversation, which has a prompt of its own. */
function isAnswering(event: Event): boolean {
  const purpose = usageOf(event)?.purpose;
  return purpose === undefined || purpose === 'compaction';
}

function reason(events: readonly Event[], at: number): string {
  const changed = firstChanged(events, at);
  if (changed !== null) return `Event ${changed} is the first that differs from the last request.`;
  const minutes = Math.round(((events.at(-1)?.createdAt ?? 0) - (events[at]?.createdAt ?? 0)) / 60_000);
  const cause =
    minutes >= 5 ? `, which was ${minutes} minutes ago: the cache has expired` : ': the provider dropped it';
  return `No event differs from the last request${cause}.`;
}

/** The `seq` of the first event in which this request differs from the one whose usage is at `at`; null where none
 * does. */
function firstChanged(events: readonly Event[], at: number): number | null {
  const before = project(events.slice(0, at));
  const now = project(events);
  if (before.system !== now.system) return lastOf(events, 'system');
  if (!equal([before.tools, before.settings], [now.tools, now.settings])) return lastOf(events, 'tools');
  return firstMessage(before, now);
}

function firstMessage(before: Conversation, now: Conversation): number | null {
  const index = before.messages.findIndex((message, position) => !equal(message, now.messages[position]));
  const message: Message | undefined = now.messages[index] ?? before.messages[index];
  return index < 0 ? null : (message?.seq ?? null);
}

function equal(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function lastOf(events: readonly Event[], kind: string): number | null {
  return events.findLast((event) => event.kind === kind)?.seq ?? null;
}

function usageOf(event: Event | undefined): UsageData | null {
  const known = event?.kind === 'usage' ? knownEvent(event) : null;
  return known?.kind === 'usage' ? known.data : null;
}

function isSame(usage: UsageData, ref: ModelRef): boolean {
  return usage.provider === ref.provider && usage.model === ref.model;
}

function promptTokens(usage: UsageData): number {
  return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
}
