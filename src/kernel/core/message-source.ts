import { type Event, knownEvent, type MessageSource } from './event.js';

const texts: Readonly<Partial<Record<MessageSource, string>>> = {
  send: 'from agent send',
  web: 'from the browser',
  api: 'from a program',
  editor: 'from an editor',
  task: 'from a scheduled task',
};

/** Returns where a message came from, as people read it; null for one that was typed at a terminal. */
export function sourceText(source: MessageSource | undefined): string | null {
  return (source === undefined ? undefined : texts[source]) ?? null;
}

/** The same for an event of a message. */
export function eventSourceText(raw: Event): string | null {
  const event = raw.kind === 'user' ? knownEvent(raw) : null;
  return event?.kind === 'user' && event.data?.note !== true ? sourceText(event.data?.source) : null;
}
