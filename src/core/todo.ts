import { createTimeline, type Event, knownEvent, type ToolCallData } from './event.js';
import { isRecord } from './json.js';

/** The tool by which a model keeps its list. */
export const todoName = 'todo';
export const todoStates = ['pending', 'active', 'done'] as const;

/** One entry of the list that a model keeps of what it does. */
export interface TodoItem {
  readonly text: string;
  readonly status: (typeof todoStates)[number];
}

/** Returns the list as the last call that succeeded left it; no rewind took that call back. It is kept nowhere but in
 * the events of its session. */
export function todoOf(events: readonly Event[]): readonly TodoItem[] {
  if (!events.some(({ kind, data }) => kind === 'tool_result' && isRecord(data) && data.name === todoName)) return [];
  const timeline = createTimeline();
  for (const event of events) {
    const known = knownEvent(event);
    if (known) timeline.add(known);
  }
  const lists = new Map<string, readonly TodoItem[]>();
  let last: readonly TodoItem[] = [];
  for (const event of timeline.events()) {
    if (event.kind === 'tool_call') lists.set(event.data.id, todoOfCall(event.data) ?? []);
    if (event.kind === 'tool_result' && event.data.success && event.data.name === todoName)
      last = lists.get(event.data.tool_call_id) ?? last;
  }
  return last;
}

/** Returns the list that a call gives; null where it is no call of this tool. */
export function todoOfCall({ function: { name, arguments: text } }: ToolCallData): readonly TodoItem[] | null {
  if (name !== todoName) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && Array.isArray(value.items) ? value.items.filter(isItem) : null;
  } catch {
    return null;
  }
}

function isItem(value: unknown): value is TodoItem {
  return isRecord(value) && typeof value.text === 'string' && todoStates.some((state) => state === value.status);
}

/** Returns the list as lines: `[x] done`, `[>] active`, `[ ] pending`. */
export function todoLines(items: readonly TodoItem[]): readonly string[] {
  const marks: Readonly<Record<TodoItem['status'], string>> = { pending: '[ ]', active: '[>]', done: '[x]' };
  return items.map(({ text, status }) => `${marks[status]} ${text}`);
}

/** Returns what is done now, with its place: `2 of 5: write the tests`; '' where nothing is left to do. */
export function todoNow(items: readonly TodoItem[]): string {
  const now = items.find(({ status }) => status === 'active') ?? items.find(({ status }) => status === 'pending');
  return now ? `${items.indexOf(now) + 1} of ${items.length}: ${now.text}` : '';
}
