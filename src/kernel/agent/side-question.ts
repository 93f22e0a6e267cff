import { errorEnvelope } from '../core/envelope.js';
import type { Event } from '../core/event.js';
import {
  type AssistantMessage,
  type Conversation,
  interruptedBefore,
  interruptedRunning,
  type OpenCall,
} from '../core/projection.js';
import type { Fault } from '../core/provider.js';

/** The end of a side question. */
export type SideQuestionEnd =
  /** `event` has the question and the answer. */
  | { readonly status: 'answered'; readonly event: Event }
  | { readonly status: 'failed'; readonly fault: Fault }
  /** `event` is null where there was no answer yet. */
  | { readonly status: 'interrupted'; readonly event: Event | null };

const instruction =
  '[A side question of the user. Answer it from this conversation, briefly and without tools. It does not change the ' +
  'task: the conversation continues without this question and your answer.]';

const running = errorEnvelope('interrupted', 'This call is still running: there is no result yet.');
const waiting = errorEnvelope('interrupted', 'This call has not run yet.');
const openResults = new Map([
  [JSON.stringify(interruptedRunning), JSON.stringify(running)],
  [JSON.stringify(interruptedBefore), JSON.stringify(waiting)],
]);

/** Adds a side question to a conversation, at the end, so that the cached beginning is used. A call that runs meanwhile
 * is no interrupted one. */
export function sideConversation(
  conversation: Conversation,
  open: readonly OpenCall[],
  question: string,
): Conversation {
  const messages = [...conversation.messages];
  const last = messages.at(-1);
  if (open.length > 0 && last?.role === 'assistant') messages[messages.length - 1] = withOpenCalls(last);
  const seq = (last?.seq ?? 0) + 1;
  const content = `${instruction}\n\n${question}`.toWellFormed();
  return { ...conversation, messages: [...messages, { role: 'user', seq, content }] };
}

function withOpenCalls(message: AssistantMessage): AssistantMessage {
  return {
    ...message,
    calls: message.calls.map((call) => {
      const output = openResults.get(call.result.output);
      return output === undefined ? call : { ...call, result: { ...call.result, output } };
    }),
  };
}
