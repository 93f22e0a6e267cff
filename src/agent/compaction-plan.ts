import type { Message } from '../core/conversation.js';
import type { Event } from '../core/event.js';
import { project } from '../core/project.js';
import { compactionText } from './compaction-text.js';
import { contextTokens, tokensOf } from './context-size.js';

export interface CompactionLimits {
  /** Tokens that the newest messages may take to stay as they are. */
  readonly keepTokens: number;
  /** True: a last message of the user stays as it is. */
  readonly keepLast: boolean;
  /** Of the model's window. */
  readonly windowTokens: number;
}

/** What a compaction would cover, and the text that would stand for it. */
export interface CompactionPlan {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Messages that give way. */
  readonly messages: number;
  readonly tokensBefore: number;
  /** The compaction's content; `summary` is the model's part, null where there is none. */
  text(summary: string | null): string;
  /** Estimated tokens that the next request has less with that content; below 0 where it has more. */
  saves(text: string): number;
}

/** Covers all but the newest messages that together take at most `keepTokens`, or those too where little else is there.
 * With `keepLast` a last message of the user stays as it is, to be answered. Null where fewer than two messages would
 * be covered. */
export function planCompaction(
  events: readonly Event[],
  { keepTokens, keepLast, windowTokens }: CompactionLimits,
): CompactionPlan | null {
  const conversation = project(events);
  const { messages } = conversation;
  const wished = keptFrom(messages, keepTokens, keepLast);
  const kept = wished < 2 ? keptFrom(messages, 0, keepLast) : wished;
  const covered = messages.slice(0, kept);
  if (covered.length < 2) return null;
  const rest = messages.slice(kept);
  const fromSeq = Math.min(...covered.map((message) => message.seq));
  const toSeq = rest.length === 0 ? (events.at(-1)?.seq ?? 0) : Math.min(...rest.map((message) => message.seq)) - 1;
  return {
    fromSeq,
    toSeq,
    messages: covered.length,
    tokensBefore: contextTokens(events),
    text: (summary) => compactionText(events, { fromSeq, toSeq, covered }, summary, windowTokens),
    saves: (text) => tokensOf(messages) - tokensOf([{ role: 'user', seq: 0, content: text }, ...rest]),
  };
}

function keptFrom(messages: readonly Message[], keepTokens: number, keepLast: boolean): number {
  let from = keepLast && messages.at(-1)?.role === 'user' ? messages.length - 1 : messages.length;
  let tokens = 0;
  for (let index = from - 1; index > 0; index--) {
    tokens += tokensOf(messages[index]);
    if (tokens > keepTokens) break;
    from = index;
  }
  return from;
}
