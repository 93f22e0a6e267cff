import type { Question } from '../kernel/core/policy.js';
import type { AgentEvent, QueuedMessage, SessionPort } from '../kernel/core/session-port.js';

type FormOpened = Extract<AgentEvent, { readonly type: 'form_opened' }>;

/** Knows what happens in a session at this moment and is not on record: a screen that begins later has missed it. */
export interface Present {
  /** Returns it as the events that lead there. Calls that run come with their events of the record. */
  events(): readonly AgentEvent[];
  close(): void;
}

/** The end of the output of a call that a later screen shows. */
const mostOutput = 8_192;

export function createPresent(session: SessionPort): Present {
  const questions = new Map<string, Question>();
  const forms = new Map<string, FormOpened>();
  const outputs = new Map<string, string>();
  let queue: readonly QueuedMessage[] = [];
  let text: string[] = [];
  let isTurn = false;
  const close = session.subscribe((event) => {
    switch (event.type) {
      case 'turn_started':
        isTurn = true;
        break;
      case 'turn_ended':
        isTurn = false;
        text = [];
        break;
      case 'text_delta':
        text.push(event.text);
        break;
      case 'retry_scheduled':
        text = [];
        break;
      case 'event':
        if (event.event.kind === 'assistant' || event.event.kind === 'tool_call') text = [];
        if (event.event.kind === 'tool_result') outputs.delete(String(callOf(event.event)));
        break;
      case 'tool_output':
        outputs.set(event.callId, ((outputs.get(event.callId) ?? '') + event.chunk).slice(-mostOutput));
        break;
      case 'approval_requested':
        questions.set(event.question.callId, event.question);
        break;
      case 'approval_resolved':
        questions.delete(event.callId);
        break;
      case 'form_opened':
        forms.set(event.id, event);
        break;
      case 'form_closed':
        forms.delete(event.id);
        break;
      case 'queue_changed':
        ({ queue } = event);
        break;
      default:
        break;
    }
  });
  return {
    events: () => [
      ...(isTurn ? [{ type: 'turn_started' } as const, ...openCalls(session)] : []),
      ...[...outputs].map(([callId, chunk]) => ({ type: 'tool_output', callId, chunk }) as const),
      ...(text.length > 0 ? [{ type: 'text_delta', text: text.join('') } as const] : []),
      ...[...questions.values()].map((question) => ({ type: 'approval_requested', question }) as const),
      ...forms.values(),
      ...(queue.length > 0 ? [{ type: 'queue_changed', queue } as const] : []),
    ],
    close,
  };
}

/** Returns the events of the calls of this turn that have no result yet. */
function openCalls(session: SessionPort): readonly AgentEvent[] {
  const events = session.recent();
  const begin = events.findLastIndex(({ kind }) => kind === 'user');
  const ofTurn = events.slice(Math.max(0, begin));
  const ended = new Set(ofTurn.filter(({ kind }) => kind === 'tool_result').map(callOf));
  return ofTurn
    .filter((event) => ['tool_call', 'tool_started', 'approval'].includes(event.kind) && !ended.has(callOf(event)))
    .map((event) => ({ type: 'event', event }));
}

function callOf({ kind, data }: ReturnType<SessionPort['events']>[number]): unknown {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return undefined;
  return (data as Readonly<Record<string, unknown>>)[kind === 'tool_call' ? 'id' : 'tool_call_id'];
}
