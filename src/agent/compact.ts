import type { Conversation } from '../core/conversation.js';
import type { CompactionData } from '../core/event.js';
import { allowanceOf, leastSummaryTokens } from './budget.js';
import { planCompaction, type CompactionPlan } from './compaction-plan.js';
import { contextTokens, tokensOf } from './context-size.js';
import { requestSummary } from './request.js';
import { shrunk, summaryRequest } from './summary-request.js';
import type { TurnDeps } from './turn.js';

export type Compacted =
  | { readonly done: true; readonly seq: number; readonly tokensBefore: number; readonly tokensAfter: number }
  | { readonly done: false; readonly reason: string };

export interface CompactionWish {
  readonly trigger: CompactionData['trigger'];
  /** What the user wants kept, or ''. */
  readonly focus: string;
  /** Tokens of the window as the server has just said them; absent: those of the model. */
  readonly windowTokens?: number;
}

/** The window counts as full from here on. */
const fullShare = 0.85;
/** Of the window, what the newest messages may take to stay as they are. */
const keptShare = 0.1;
const assumedWindow = 128_000;
/** Of the messages' tokens, what a compaction must save to be made. */
const leastSaving = 0.05;

/** True where the next request would come near the end of the model's window, and something was said since the last try
 * to compact. */
export function windowIsFull(d: TurnDeps): boolean {
  const window = d.contextWindow?.(d.model().ref) ?? null;
  const events = d.events();
  if (window === null || contextTokens(events) <= window * fullShare) return false;
  const last = events.findLastIndex((event) => event.kind === 'compaction');
  return last < 0 || events.slice(last).some((event) => event.kind === 'assistant' || event.kind === 'tool_call');
}

/** What a compaction would cover now; null where there is too little. */
export function planFor(
  d: Pick<TurnDeps, 'events' | 'model' | 'contextWindow'>,
  { trigger, windowTokens }: Omit<CompactionWish, 'focus'>,
): CompactionPlan | null {
  const window = windowTokens ?? d.contextWindow?.(d.model().ref) ?? assumedWindow;
  return planCompaction(d.events(), {
    keepTokens: trigger === 'auto' ? window * keptShare : 0,
    keepLast: trigger !== 'manual',
    windowTokens: window,
  });
}

/** One request for a summary, and one event that stands for what it covers; the originals stay in the log. Where the
 * window has overflowed and no summary comes, what the program itself knows has to do. */
export async function compact(d: TurnDeps, wish: CompactionWish, signal: AbortSignal): Promise<Compacted> {
  const { trigger, focus } = wish;
  const plan = planFor(d, wish);
  if (plan === null) return { done: false, reason: 'there is too little to compact' };
  if (!isWorth(d, plan, plan.text(null))) return { done: false, reason: savesNothing };
  const allowance = allowanceOf(d, leastSummaryTokens);
  if (!allowance.allowed) return { done: false, reason: allowance.fault.message };
  const { text, fault } = await requestSummary(d, summaryRequest(summarised(d, wish), focus), signal);
  if (signal.aborted) return { done: false, reason: 'it was interrupted' };
  if (text === '' && trigger !== 'overflow')
    return { done: false, reason: fault?.message ?? 'the model gave no summary' };
  const content = plan.text(text === '' ? null : text);
  return isWorth(d, plan, content) ? await record(d, plan, trigger, content) : { done: false, reason: savesNothing };
}

const savesNothing = 'there is too little to compact: what would stand for it is as long';

function isWorth(d: TurnDeps, plan: CompactionPlan, content: string): boolean {
  return plan.saves(content) > tokensOf(d.projection.conversation().messages) * leastSaving;
}

/** What a window overflowed on does not fit into it with a question added. */
function summarised(d: TurnDeps, { trigger, windowTokens }: CompactionWish): Conversation {
  const conversation = d.projection.conversation();
  if (trigger !== 'overflow') return conversation;
  const window = windowTokens ?? d.contextWindow?.(d.model().ref) ?? assumedWindow;
  return shrunk(conversation, Math.min(window, tokensOf(conversation)) / 2);
}

async function record(
  d: TurnDeps,
  plan: CompactionPlan,
  trigger: CompactionWish['trigger'],
  content: string,
): Promise<Compacted> {
  const { fromSeq, toSeq, tokensBefore, messages } = plan;
  const tokensAfter = Math.max(0, tokensBefore - plan.saves(content));
  const { seq } = await d.append({
    kind: 'compaction',
    content,
    data: { from_seq: fromSeq, to_seq: toSeq, trigger, tokens_before: tokensBefore, tokens_after: tokensAfter },
  });
  d.emit({
    type: 'notice',
    level: 'info',
    code: 'compacted',
    message: `The conversation was compacted: ${messages} messages became one, about ${tokensAfter} tokens instead of ${tokensBefore}. The provider's cache is lost once. Nothing is deleted; /uncompact takes it back.`,
  });
  return { done: true, seq, tokensBefore, tokensAfter };
}
