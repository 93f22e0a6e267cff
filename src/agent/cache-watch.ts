import type { Conversation, Message, ModelRef } from '../core/conversation.js';
import { knownEvent, type Event, type Usage, type UsageData } from '../core/event.js';
import { project } from '../core/project.js';

/** Prompts shorter than this are cached by no provider. Source: the vendors' pages on prompt caching; the largest
 * minimum is Anthropic's. */
const smallestCachedTokens = 4096;

/** What is said where the provider's cache was expected to hold the beginning of this request and did not: which event
 * is the first that differs from the last request, or that none does. Null where nothing was expected: another model, a
 * short prompt, a provider that reported no cached token for the last request. `events` are those of the request that
 * `usage` is for. */
export function cacheMiss(events: readonly Event[], ref: ModelRef, usage: Usage): string | null {
  if (usage.cacheRead > 0) return null;
  const at = events.findLastIndex((event) => event.kind === 'usage');
  const last = usageOf(events[at]);
  if (last === null || !isSame(last, ref) || promptTokens(last) < smallestCachedTokens) return null;
  if (
    last.cache_read_tokens + last.cache_write_tokens === 0 ||
    events.slice(at).some((event) => event.kind === 'model')
  )
    return null;
  const tokens = usage.input + usage.cacheWrite;
  return `The provider's cache was missed: ${tokens} tokens were read anew. ${reason(events, at)}`;
}

function reason(events: readonly Event[], at: number): string {
  const changed = firstChanged(events, at);
  if (changed !== null) return `Event ${changed} is the first that differs from the last request.`;
  const minutes = Math.round(((events.at(-1)?.createdAt ?? 0) - (events[at]?.createdAt ?? 0)) / 60_000);
  return `No event differs from the last request${minutes >= 5 ? `, which was ${minutes} minutes ago: the cache has expired` : ': the provider dropped it'}.`;
}

/** The `seq` of the first event that makes the beginning of this request differ from the one whose usage stands at
 * `at`; null where none does. */
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
