import { clampText } from '../core/clamp.js';
import type { AssistantMessage, Conversation, Message } from '../core/conversation.js';
import { tokensOf } from './context-size.js';

const instruction = `Write a summary of this conversation for yourself: it will replace the conversation. The program keeps the user's own messages and the list of files read and changed; do not repeat them.
Say, in this order and in at most 800 words: what is wanted, with every constraint and preference; what was decided and why; what was done and what it showed; what failed; what is open and the next step; names, commands and numbers that will be needed. No preamble.`;

/** The conversation with a request for its summary at the end, so that the cached beginning is used. */
export function summaryRequest(conversation: Conversation, focus: string): Conversation {
  const wish = focus === '' ? '' : `\nThe user asks to keep in particular: ${focus}`;
  const seq = (conversation.messages.at(-1)?.seq ?? 0) + 1;
  return { ...conversation, messages: [...conversation.messages, { role: 'user', seq, content: instruction + wish }] };
}

/** The conversation cut down to about `maxTokens`: long texts, arguments and outputs first, then the oldest
 * messages. */
export function shrunk(conversation: Conversation, maxTokens: number): Conversation {
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

/** Signed reasoning would not fit a text that was cut. */
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
