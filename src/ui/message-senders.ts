import type { MessageSource } from '../kernel/core/event.js';

/** The senders of messages, as a message shows them. One that was typed at a terminal shows none. */
const senders: Readonly<Partial<Record<MessageSource, string>>> = {
  send: 'from agent send',
  web: 'from the browser',
  api: 'from the HTTP API',
  editor: 'from the editor',
  task: 'from a scheduled task',
  goal: 'from the goal',
  limit: 'after the usage limit',
};

/** Returns what a message shows of what sent it, as a part of an item. */
export function senderOf(data: { readonly source?: MessageSource } | null): { readonly from?: string } {
  const from = data?.source === undefined ? undefined : senders[data.source];
  return from === undefined ? {} : { from };
}
