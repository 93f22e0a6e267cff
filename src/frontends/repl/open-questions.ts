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

/** Denies calls that are not approved in time, where a time is set. Notifies the user of a question that no terminal
 * shows. */
export function followQuestions({
  config,
  hasScreens,
  tell,
}: Parts): (event: AgentEvent, session: SessionPort) => void {
  const waiting = new Map<string, AbortController>();
  const { approvalTimeoutMs: timeoutMs } = config.policy;
  const denyLater = async (session: SessionPort, callId: string, afterMs: number): Promise<void> => {
    const controller = new AbortController();
    waiting.set(callId, controller);
    await wait(Math.min(afterMs, longestTimerMs), undefined, { signal: controller.signal, ref: false });
    waiting.delete(callId);
    session.answer(callId, { answer: 'deny', message: `Nobody has answered within ${afterMs / 1_000} s.` });
  };
  return (event, session) => {
    if (event.type === 'approval_requested' || event.type === 'form_opened') {
      if (!hasScreens())
        tell({ title: 'agent', text: `agent asks you something: agent attach ${shortId(session.id)}` });
      if (event.type === 'approval_requested' && timeoutMs !== null)
        void denyLater(session, event.question.callId, timeoutMs).catch(() => undefined); // It was answered.
    } else if (event.type === 'approval_resolved') {
      waiting.get(event.callId)?.abort();
      waiting.delete(event.callId);
    }
  };
}
