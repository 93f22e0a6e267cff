import type { Fault } from '../core/provider.js';
import type { TurnDeps } from './dependencies.js';
import type { LimitedSession, PendingLimit } from './limit-wait.js';

/** Waits for the end of the limit that a request has met. Returns true if the request is to be sent again. */
export async function waitOut(d: TurnDeps, fault: Fault, again: number, signal: AbortSignal): Promise<boolean> {
  const { retryAt, message } = fault;
  if (retryAt === undefined || d.waitForLimit === undefined) return false;
  const { provider, model } = d.ownModel();
  return await d.waitForLimit({ provider, model, retryAt, message, again, restored: null }, limited(d), signal);
}

/** Continues the wait that an earlier process began, or asks about the limit that it met. */
export async function waitAgain(d: TurnDeps, pending: PendingLimit, signal: AbortSignal): Promise<boolean> {
  if (d.waitForLimit === undefined) return false;
  const { provider, model, message, state } = pending;
  const retryAt = Date.parse(pending.retry_at);
  const limit = { provider, model, retryAt, message, again: 0, restored: state };
  return await d.waitForLimit(limit, limited(d), signal);
}

function limited(d: TurnDeps): LimitedSession {
  const { putForm, canAsk } = d.approval;
  return {
    id: d.record.id,
    append: (draft) => d.record.append(draft),
    emit: d.emit,
    ref: () => d.model().ref,
    ...(canAsk && putForm ? { putForm } : {}),
    host: d.host,
  };
}
