import type { Fault } from '../core/provider.js';
import { compact, windowIsFull } from './compact.js';
import { request, type Reply } from './request.js';
import type { TurnDeps } from './turn.js';

/** What one turn remembers of its requests. `overflowed`: a compaction after an overflow was made, and there is no second one. */
export interface Asking { overflowed: boolean; autoFailed: boolean }

/** One answer of the model, with room made for it: the conversation is compacted before a request that would come near the end of the window,
 *  and once in a turn after one that was refused as too long. Where the next request must not be sent, a reply with that fault. */
export async function ask(d: TurnDeps, toolChoice: 'auto' | 'none', asking: Asking, signal: AbortSignal): Promise<Reply> {
  if (!asking.autoFailed && windowIsFull(d)) await compactInTime(d, asking, signal);
  const reply = await requestUnlessRefused(d, toolChoice, signal);
  if (reply.fault?.code !== 'context_overflow' || signal.aborted) return reply;
  if (asking.overflowed) return { ...reply, fault: tooLong(d) };
  asking.overflowed = true;
  const compacted = await compact(d, { trigger: 'overflow', focus: '' }, signal);
  if (signal.aborted) return reply;
  if (!compacted.done) return { ...reply, fault: tooLong(d) };
  const again = await requestUnlessRefused(d, toolChoice, signal);
  return again.fault?.code === 'context_overflow' ? { ...again, fault: tooLong(d) } : again;
}

/** A compaction that fails is said once in a turn, which goes on without. */
async function compactInTime(d: TurnDeps, asking: Asking, signal: AbortSignal): Promise<void> {
  const compacted = await compact(d, { trigger: 'auto', focus: '' }, signal);
  if (compacted.done || signal.aborted) return;
  asking.autoFailed = true;
  d.emit({ type: 'notice', level: 'warn', code: 'compaction_failed', message: `The context window is nearly full and the conversation could not be compacted: ${compacted.reason}.` });
}

async function requestUnlessRefused(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Reply> {
  const refusal = signal.aborted ? null : d.refuseRequest();
  return refusal ? { responseId: '', text: '', calls: [], stop: 'interrupted', fault: refusal } : await request(d, toolChoice, signal);
}

function tooLong(d: TurnDeps): Fault {
  const last = d.projection.conversation().messages.at(-1);
  const alone = last?.role === 'user' ? ` The last message alone has ${last.content.length} characters.` : '';
  return {
    code: 'context_overflow', message: `The conversation does not fit the context window of ${d.model().ref.model}, and compacting it does not help.${alone}`,
    hint: 'Send less at once, start a new session, or use a model with a larger window.',
  };
}
