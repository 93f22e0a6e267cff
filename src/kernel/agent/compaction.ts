import { smallestOf } from '../core/lists.js';
import { clampText, isError, parseEnvelope } from '../core/envelope.js';
import { type CompactionData, countingEvents, type Event, knownEvent, type KnownEvent } from '../core/event.js';
import { eventMarker, lineReader } from '../core/model-output.js';
import {
  type AssistantMessage,
  type Conversation,
  createProjection,
  type Message,
  project,
} from '../core/projection.js';
import { utf8Bytes, withoutEnd } from '../core/text.js';
import { todoLines, todoOf } from '../core/projection.js';
import type { Fault } from '../core/provider.js';
import { askAboutCompaction, tellCompacted } from './apply-hooks.js';
import { allowanceOf, contextTokens, leastSummaryTokens, tokensOf } from './budget.js';
import { describeChange, keptTokens, requestCosts, type TokenChange } from './compaction-figures.js';
import { compactionRules, knownWindow, windowIsFull, windowOf } from './compaction-rules.js';
import { type OmissionPlan, planOmission, recordOmission } from './omit-results.js';
import { requestSummary } from './request.js';
import type { TurnDeps } from './dependencies.js';

/** `summarised`: false where the output of old results was left out instead. `message`: what was done, for the user. */
interface Done extends TokenChange {
  readonly done: true;
  readonly seq: number;
  readonly summarised: boolean;
  readonly message: string;
}

export type Compacted =
  | Done
  /** `fault`: of the request for the summary, which failed or was not allowed. */
  | { readonly done: false; readonly reason: string; readonly fault?: Fault };

export interface CompactionOptions {
  readonly trigger: CompactionData['trigger'];
  /** The facts that the summary must keep, in the user's words, or ''. */
  readonly focus: string;
  /** Tokens of the window, where the server has just named them. Absent: those of the model. */
  readonly windowTokens?: number;
  /** True: a summary is made, also where it would be enough to leave out the output of old results. */
  readonly summarise?: boolean;
}

/** Leaving out old results is enough where the next request then fills less than this share of what is allowed. */
const enoughShare = 0.75;
/** The same after an overflow, of the window or of the conversation, if that is smaller. */
const enoughAfterOverflow = 0.5;
/** A compaction is made only if it saves this share of the messages' tokens. */
const leastSaving = 0.05;

/** Plans a compaction of the session; null where there is nothing to compact. */
export function planFor(
  d: Pick<TurnDeps, 'record' | 'model' | 'models' | 'limits'>,
  { trigger, windowTokens }: Pick<CompactionOptions, 'trigger' | 'windowTokens'>,
): CompactionPlan | null {
  return planCompaction(d.record.events(), limitsOf(d, trigger, windowTokens));
}

function limitsOf(
  d: Pick<TurnDeps, 'model' | 'models' | 'limits'>,
  trigger: CompactionOptions['trigger'],
  windowTokens?: number,
): CompactionLimits {
  const window = windowOf(d, windowTokens);
  return { keepTokens: keptTokens(d, trigger, window), keepLast: trigger !== 'manual', windowTokens: window };
}

/** The change by a compaction, without the length of its summary. */
export interface CompactionGain extends TokenChange {
  readonly messages: number;
}

/** Estimates what `/compact` would win; null where there is nothing to compact. Reads no event that is not in memory: an
 * earlier compaction has what it took from them, and the next one has it again. */
export function gainFor(d: Pick<TurnDeps, 'record' | 'model' | 'models' | 'limits'>): CompactionGain | null {
  const events = d.record.recent();
  const plan = planCompaction(events, limitsOf(d, 'manual'));
  if (plan === null) return null;
  const isWhole = events.length === d.record.lastSeq();
  const earlier = isWhole ? undefined : countingEvents(events).findLast(({ kind }) => kind === 'compaction');
  const carried = (earlier?.content ?? '').split(summaryHeading)[0] ?? '';
  return { messages: plan.messages, ...plan.tokens(carried + plan.text(null)) };
}

/** Makes room. Where it is enough, the output of old results is left out of requests. Otherwise asks for a summary and
 * records one event that replaces the messages it covers; their events stay in the log. After an overflow it continues
 * without a summary if none comes: the event then has the user's messages and the files. */
export async function compact(d: TurnDeps, options: CompactionOptions, signal: AbortSignal): Promise<Compacted> {
  const omission = options.trigger === 'manual' || options.summarise === true ? null : enoughOmission(d, options);
  if (omission !== null) return await omit(d, omission, options, signal);
  const plan = planFor(d, options);
  if (plan === null) return { done: false, reason: 'nothing to compact yet' };
  if (!isWorth(d, plan, plan.text(null))) return { done: false, reason: savesNothing };
  const allowance = allowanceOf(d, leastSummaryTokens);
  if (!allowance.allowed) return notDone(allowance.fault);
  const held = await askAboutCompaction(d, options, signal);
  return held === null ? await summarise(d, plan, options, signal) : { done: false, reason: held };
}

/** Asks the server for a window that is not known, and says once which one is assumed where it does not name one.
 * Returns false where the window that it names has room. */
export async function settleWindow(d: TurnDeps): Promise<boolean> {
  if (knownWindow(d) !== null) return true;
  const { ref } = d.model();
  const name = `${ref.provider}/${ref.model}`;
  if (((await d.models.askWindow?.(ref)) ?? null) !== null) return windowIsFull(d);
  if (d.unknownWindows.has(name)) return true;
  d.unknownWindows.add(name);
  const message =
    `The context window of ${name} is not known: ${windowOf(d)} tokens are assumed (compaction.assumed_window), ` +
    `and the conversation is compacted now. models.${name}.context_window sets the window.`;
  d.emit({ type: 'notice', level: 'info', code: 'window_not_known', message });
  return true;
}

/** Returns the plan to leave out old results where that makes enough room. */
function enoughOmission(d: TurnDeps, { trigger, windowTokens }: CompactionOptions): OmissionPlan | null {
  const named = windowOf(d, windowTokens);
  // The window may be smaller than is known: the request did not fit.
  const window = trigger === 'overflow' ? Math.min(named, tokensOf(d.record.conversation())) : named;
  const plan = planOmission(d, window);
  if (plan === null) return null;
  const room =
    trigger === 'auto'
      ? window * (compactionRules(d).atShare ?? 1) * enoughShare
      : Math.min(window, plan.tokensBefore) * enoughAfterOverflow;
  return plan.tokensAfter <= room ? plan : null;
}

/** Plans `omitResults`; null where there is nothing to leave out. */
export function omissionFor(d: TurnDeps): OmissionPlan | null {
  return planOmission(d);
}

/** Leaves the output of old results out of requests, without a summary. */
export async function omitResults(d: TurnDeps, signal: AbortSignal): Promise<Compacted> {
  const plan = planOmission(d);
  if (plan === null || plan.tokensBefore - plan.tokensAfter < plan.tokensBefore * leastSaving)
    return { done: false, reason: 'there are no old tool results that are worth leaving out' };
  return await omit(d, plan, { trigger: 'manual', focus: '' }, signal);
}

async function omit(
  d: TurnDeps,
  plan: OmissionPlan,
  { trigger, focus }: CompactionOptions,
  signal: AbortSignal,
): Promise<Compacted> {
  const held = await askAboutCompaction(d, { trigger, focus }, signal);
  if (held !== null) return { done: false, reason: held };
  const { seq, content } = await recordOmission(d, plan, trigger);
  const { tokensBefore, tokensAfter } = plan;
  const change = describeChange(plan, d.models.price?.(d.model().ref) ?? null);
  const message = `${withoutEnd(content ?? '', '.')}: ${change} The model can read them by their event. /uncompact restores them.`;
  d.emit({ type: 'notice', level: 'info', code: 'results_omitted', message });
  return { done: true, summarised: false, seq, tokensBefore, tokensAfter, message };
}

async function summarise(
  d: TurnDeps,
  plan: CompactionPlan,
  options: CompactionOptions,
  signal: AbortSignal,
): Promise<Compacted> {
  const { trigger } = options;
  const before = d.record.totals().spentUsd;
  const { text, fault } = await askForSummary(d, options, signal);
  if (signal.aborted) return { done: false, reason: 'it was interrupted' };
  if (text === '' && trigger !== 'overflow')
    return fault ? notDone(fault) : { done: false, reason: 'the model returned no summary' };
  const content = plan.text(text === '' ? null : text);
  if (!isWorth(d, plan, content)) return { done: false, reason: savesNothing };
  const compacted = await record(d, plan, { trigger, content, summaryUsd: d.record.totals().spentUsd - before });
  await tellCompacted(d, { trigger, summary: content }, signal);
  return compacted;
}

/** Asks for the summary, once more with a conversation that is cut down where the whole one does not fit into the
 * window. */
async function askForSummary(
  d: TurnDeps,
  options: CompactionOptions,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly fault: Fault | null }> {
  const { focus } = options;
  const answer = await requestSummary(d, summaryRequest(summarised(d, options), focus), signal);
  if (answer.fault?.code !== 'context_overflow' || options.trigger === 'overflow' || signal.aborted) return answer;
  const smaller = summarised(d, { ...options, trigger: 'overflow' });
  return await requestSummary(d, summaryRequest(smaller, focus), signal);
}

function notDone(fault: Fault): Compacted {
  return { done: false, reason: fault.message, fault };
}

const savesNothing = 'nothing to compact yet: a summary would be just as long';

function isWorth(d: TurnDeps, plan: CompactionPlan, content: string): boolean {
  return plan.saves(content) > tokensOf(d.record.conversation().messages) * leastSaving;
}

/** The conversation to summarise. After an overflow it is cut down, because it did not fit into the window. */
function summarised(d: TurnDeps, { trigger, windowTokens }: CompactionOptions): Conversation {
  const conversation = d.record.conversation();
  if (trigger !== 'overflow') return conversation;
  return shrunk(conversation, Math.min(windowOf(d, windowTokens), tokensOf(conversation)) / 2);
}

async function record(
  d: TurnDeps,
  plan: CompactionPlan,
  made: { readonly trigger: CompactionOptions['trigger']; readonly content: string; readonly summaryUsd: number },
): Promise<Compacted> {
  const { trigger, content, summaryUsd } = made;
  const { fromSeq, toSeq, messages } = plan;
  const change = plan.tokens(content);
  const { tokensBefore, tokensAfter } = change;
  const price = d.models.price?.(d.model().ref) ?? null;
  const { seq } = await d.record.append({
    kind: 'compaction',
    content,
    data: {
      from_seq: fromSeq,
      to_seq: toSeq,
      trigger,
      tokens_before: tokensBefore,
      tokens_after: tokensAfter,
      ...requestCosts(price, change),
    },
  });
  await renewPrompt(d);
  const message = `Compacted ${messages} messages into a summary: ${describeChange(change, price, summaryUsd)} /uncompact restores the full conversation.`;
  d.emit({ type: 'notice', level: 'info', code: 'compacted', message });
  return { done: true, summarised: true, seq, ...change, message };
}

async function renewPrompt(d: TurnDeps): Promise<void> {
  const { system } = d.record.conversation();
  const renewed = (await d.tools.renewPrompt?.(system)) ?? system;
  if (renewed !== system) await d.record.append({ kind: 'system', content: renewed, data: null });
}

interface CompactionLimits {
  /** Tokens that the newest messages may take to stay as they are. */
  readonly keepTokens: number;
  /** True: a last message of the user stays as it is. */
  readonly keepLast: boolean;
  /** Of the model's window. */
  readonly windowTokens: number;
}

/** The messages that a compaction covers, and the text that replaces them. */
export interface CompactionPlan {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** The number of messages that it covers. */
  readonly messages: number;
  /** The content of the compaction; `summary` is the part that the model wrote, or null. */
  text(summary: string | null): string;
  /** Estimates the tokens of the next request without the compaction and with that content. */
  tokens(text: string): TokenChange;
  /** Estimates how many tokens the next request saves with that content; below 0 where it grows. */
  saves(text: string): number;
}

/** Covers all messages but the newest, which together take at most `keepTokens`; covers these too where few others are
 * left. With `keepLast` a last message of the user stays as it is, to be answered. Null where fewer than two messages
 * would be covered. */
function planCompaction(
  events: readonly Event[],
  { keepTokens, keepLast, windowTokens }: CompactionLimits,
): CompactionPlan | null {
  const conversation = project(events);
  const { messages } = conversation;
  const wanted = newestFrom(messages, keepTokens, keepLast);
  const kept = wanted < 2 ? newestFrom(messages, 0, keepLast) : wanted;
  const covered = messages.slice(0, kept);
  if (covered.length < 2) return null;
  const rest = messages.slice(kept);
  const fromSeq = smallestOf(covered.map((message) => message.seq));
  const toSeq = rest.length === 0 ? (events.at(-1)?.seq ?? 0) : smallestOf(rest.map((message) => message.seq)) - 1;
  const saves = (text: string): number =>
    tokensOf(messages) - tokensOf([{ role: 'user', seq: 0, content: text }, ...rest]);
  return {
    fromSeq,
    toSeq,
    messages: covered.length,
    tokens: (text) => {
      const estimated = tokensOf(conversation);
      const tokensAfter = estimated - saves(text);
      // The provider's count comes first, as long as the estimate says less with the compaction.
      const counted = contextTokens(events);
      return { tokensBefore: counted > tokensAfter ? counted : estimated, tokensAfter };
    },
    text: (summary) =>
      compactionText(
        events,
        { fromSeq, toSeq, covered, windowTokens, reader: lineReader(conversation.tools) },
        summary,
      ),
    saves,
  };
}

function newestFrom(messages: readonly Message[], keepTokens: number, keepLast: boolean): number {
  let from = keepLast && messages.at(-1)?.role === 'user' ? messages.length - 1 : messages.length;
  let tokens = 0;
  for (let index = from - 1; index > 0; index--) {
    tokens += tokensOf(messages[index]);
    if (tokens > keepTokens) break;
    from = index;
  }
  return from;
}

interface Covered {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly covered: readonly Message[];
  /** Of the model's window. */
  readonly windowTokens: number;
  /** The tool that reads an event, or null. */
  readonly reader: string | null;
}

const summaryHeading = '## Summary';
/** Most bytes of one message of the user, and of all of them; less in a small window. */
const maxMessageBytes = 8192;
const maxMessagesBytes = 49_152;
const maxListed = 100;

/** Writes the content of a compaction: the user's messages word for word and the files, both from the log, then the
 * model's summary. */
function compactionText(events: readonly Event[], range: Covered, summary: string | null): string {
  const { fromSeq, toSeq, reader } = range;
  const { changed, read } = filesOf(events, toSeq);
  const parts: readonly (readonly string[])[] = [
    ['## What the user said, word for word', ...ownMessages(events, range)],
    ['## Files changed in this session (event of the last change)', ...listFiles(changed)],
    ['## Files read (event)', ...listFiles(read)],
    ['## Todo list', ...todoLines(todoOf(events.filter(({ seq }) => seq <= toSeq)))],
    ['## Instructions still in force, word for word', ...keptOutputs(events, range)],
    [summaryHeading, summary ?? 'No summary could be made; read the events that matter.'],
  ];
  const whole = reader === null ? '' : ` The whole text of an event in it can be read with ${reader} path="event:N".`;
  const head = `[The conversation from event ${fromSeq} to ${toSeq} was compacted; the text below replaces it.`;
  return [`${head}${whole}]`, ...parts.filter((part) => part.length > 1).map((part) => part.join('\n'))].join('\n\n');
}

/** The user's messages in order, up to a quarter of the window; the oldest are left out first. A compaction among the
 * covered messages gives the messages that it replaced. */
function ownMessages(events: readonly Event[], { covered, windowTokens, reader }: Covered): readonly string[] {
  const roomBytes = Math.min(maxMessagesBytes, windowTokens);
  const longestBytes = Math.min(maxMessageBytes, Math.ceil(roomBytes / 2));
  const own = covered.flatMap(messageCollector(events)).map(({ seq, content }) => {
    const { text } = clampText(content, longestBytes, eventMarker(reader, seq));
    return `(event ${seq}) ${text}`;
  });
  let room = roomBytes;
  const start = own.findLastIndex((text) => (room -= utf8Bytes(text)) < 0) + 1;
  return start === 0 ? own : [`(${start} earlier messages are omitted here)`, ...own.slice(start)];
}

interface OwnMessage {
  readonly seq: number;
  readonly content: string;
}

/** Returns a function that gives the user's messages behind a message of the conversation: itself, or all that a
 * compaction replaced. */
function messageCollector(events: readonly Event[]): (message: Message) => readonly OwnMessage[] {
  const bySeq = new Map<number, readonly OwnMessage[]>();
  const of = (message: Message): readonly OwnMessage[] =>
    message.role === 'user' ? (bySeq.get(message.seq) ?? []) : [];
  const projection = createProjection();
  for (const raw of events) {
    const event = raw.kind === 'user' || raw.kind === 'compaction' ? knownEvent(raw) : null;
    if (event?.kind === 'user' && event.data?.note !== true)
      bySeq.set(event.seq, [{ seq: event.seq, content: event.content }]);
    if (event?.kind === 'compaction') {
      const { from_seq: from, to_seq: to } = event.data;
      const { messages } = projection.conversation();
      bySeq.set(event.seq, messages.filter(({ seq }) => seq >= from && seq <= to).flatMap(of));
    }
    projection.add(raw);
  }
  return of;
}

/** Most bytes of one result that is kept, and of all of them; less in a small window. */
const maxKeptBytes = 20_000;
const maxAllKeptBytes = 100_000;

/** The latest of each result that says it is to be kept (`keep`), newest last. The oldest are left out first. */
function keptOutputs(events: readonly Event[], { toSeq, windowTokens, reader }: Covered): readonly string[] {
  const latest = new Map<string, string>();
  for (const event of countingEvents(events.filter(({ seq }) => seq <= toSeq))) {
    if (event.kind !== 'tool_result' || !event.data.success || !event.data.output.includes('"keep":')) continue;
    const envelope = parseEnvelope(event.data.output);
    if (isError(envelope) || typeof envelope.keep !== 'string') continue;
    const longest = Math.min(maxKeptBytes, windowTokens);
    latest.delete(envelope.keep);
    latest.set(envelope.keep, clampText(envelope.output, longest, eventMarker(reader, event.seq)).text);
  }
  let room = Math.min(maxAllKeptBytes, windowTokens);
  const outputs = [...latest.values()];
  return outputs.slice(outputs.findLastIndex((text) => (room -= utf8Bytes(text)) < 0) + 1);
}

interface Files {
  readonly changed: ReadonlyMap<string, number>;
  readonly read: ReadonlyMap<string, number>;
}

/** Lists the files from the log. Events that a rewind dropped count too, since files were not rewound. */
function filesOf(events: readonly Event[], toSeq: number): Files {
  const changed = new Map<string, number>();
  const read = new Map<string, number>();
  for (const raw of events) {
    const event = raw.seq <= toSeq ? knownEvent(raw) : null;
    if (event === null) continue;
    for (const path of changedPaths(event)) moveToEnd(changed, path, event.seq);
    for (const path of readPaths(event)) moveToEnd(read, path, event.seq);
  }
  for (const path of changed.keys()) read.delete(path);
  return { changed, read };
}

/** Puts a path at the end, also one that is listed already. */
function moveToEnd(files: Map<string, number>, path: string, seq: number): void {
  files.delete(path);
  files.set(path, seq);
}

function readPaths(event: KnownEvent): readonly string[] {
  return event.kind === 'tool_result' && event.data.success ? (event.data.files ?? []).map((file) => file.path) : [];
}

function changedPaths(event: KnownEvent): readonly string[] {
  switch (event.kind) {
    case 'tool_result':
      return (
        event.data.changes?.map((change) => change.path) ?? (event.data.diff === undefined ? [] : readPaths(event))
      );
    case 'undo':
    case 'redo':
    case 'restore':
      return event.data.changes.map((change) => change.path);
    default:
      return [];
  }
}

/** Leaves out the oldest where there are many. */
function listFiles(files: ReadonlyMap<string, number>): readonly string[] {
  const all = [...files].map(([path, seq]) => `- ${path} (${seq})`);
  return all.length <= maxListed
    ? all
    : [`(${all.length - maxListed} more are omitted here)`, ...all.slice(-maxListed)];
}

const instruction =
  'Write a summary of this conversation for yourself: it will replace the conversation. ' +
  "The program keeps the user's own messages and the list of files read and changed; do not repeat them.\n" +
  'Say, in this order and in at most 800 words: what is wanted, with every constraint and preference; ' +
  'what was decided and why; what was done and what it showed; what failed; what is open and the next step; ' +
  'names, commands and numbers that will be needed. No preamble.';

/** Adds a request for a summary at the end, so that the cached beginning is used. */
function summaryRequest(conversation: Conversation, focus: string): Conversation {
  const emphasis = focus === '' ? '' : `\nThe user asks to keep in particular: ${focus}`;
  const seq = (conversation.messages.at(-1)?.seq ?? 0) + 1;
  return {
    ...conversation,
    messages: [...conversation.messages, { role: 'user', seq, content: instruction + emphasis }],
  };
}

/** Cuts the conversation down to about `maxTokens`: first long texts, arguments and outputs, then the oldest
 * messages. */
function shrunk(conversation: Conversation, maxTokens: number): Conversation {
  const small = conversation.messages.map(shrunkMessage);
  let room = maxTokens - tokensOf({ ...conversation, messages: [] });
  const from = small.findLastIndex((message) => (room -= tokensOf(message)) < 0) + 1;
  return { ...conversation, messages: small.slice(from) };
}

function shrunkMessage(message: Message): Message {
  return message.role === 'user'
    ? { ...message, content: clampText(message.content, 4096).text }
    : shrunkAnswer(message);
}

/** Drops the reasoning, whose signature does not fit a text that was cut. */
function shrunkAnswer(message: AssistantMessage): AssistantMessage {
  return {
    ...message,
    text: clampText(message.text, 2048).text,
    data: message.data === null ? null : { ...message.data, reasoning: [] },
    calls: message.calls.map((call) => ({
      ...call,
      arguments: call.arguments.length > 1024 ? '{}' : call.arguments,
      result: { ...call.result, output: clampText(call.result.output, 1024).text },
    })),
  };
}
