import { setTimeout as wait } from 'node:timers/promises';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import { longestTimerMs } from '../../kernel/core/runtime.js';
import type { AgentEvent, SessionPort } from '../../kernel/core/session-port.js';
import { shortId } from './short-id.js';

interface Parts {
  readonly config: Settings['config'];
  readonly hasScreens: () => boolean;
  readonly tell: (said: DesktopNotification) => void;
}

/** Denies calls that are not approved in time, and ends questions that are not answered in time, where a time is set.
 * Notifies the user of a question that no terminal shows. */
export function followQuestions({
  config,
  hasScreens,
  tell,
}: Parts): (event: AgentEvent, session: SessionPort) => void {
  const waiting = new Map<string, AbortController>();
  const { approvalTimeoutMs: timeoutMs } = config.policy;
  const answerLater = async (session: SessionPort, id: string, answer: Answer, afterMs: number): Promise<void> => {
    const controller = new AbortController();
    waiting.set(id, controller);
    await wait(Math.min(afterMs, longestTimerMs), undefined, { signal: controller.signal, ref: false });
    waiting.delete(id);
    session.answer(id, answer);
  };
  return (event, session) => {
    if (event.type === 'approval_requested' || event.type === 'form_opened') {
      if (!hasScreens())
        tell({ title: 'agent', text: `agent asks you something: agent attach ${shortId(session.id)}` });
      const late = timeoutMs === null ? null : lateAnswer(event, timeoutMs);
      if (late && timeoutMs !== null) void answerLater(session, late.id, late.answer, timeoutMs).catch(() => undefined); // It was answered.
    } else if (event.type === 'approval_resolved' || event.type === 'form_closed') {
      const id = event.type === 'form_closed' ? event.id : event.callId;
      waiting.get(id)?.abort();
      waiting.delete(id);
    }
  };
}

type Answer = Parameters<SessionPort['answer']>[1];

/** Returns the answer to a question that was not answered in time; null for one without a time limit. */
function lateAnswer(
  event: Extract<AgentEvent, { readonly type: 'approval_requested' | 'form_opened' }>,
  afterMs: number,
): { readonly id: string; readonly answer: Answer } | null {
  if (event.type === 'form_opened')
    return event.form.isUntimed ? null : { id: event.id, answer: { answer: 'late', afterMs } };
  const message = `It was not answered within ${afterMs / 1_000} s.`;
  return { id: event.question.callId, answer: { answer: 'deny', message } };
}
