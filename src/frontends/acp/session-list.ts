import { type ListSessionsResponse, RequestError, type SessionInfo } from '@agentclientprotocol/sdk';
import { listOwners } from '../../app/live/connect-owner.js';
import type { OwnerFacts } from '../../app/live/messages.js';
import { openRecord } from '../../app/open-record.js';
import { readSettings } from '../../app/settings.js';
import type { RootOptions } from '../../kernel/console/options.js';
import type { SessionSummary } from '../../kernel/core/store.js';

const pageSize = 50;

/** Returns a page of the sessions, newest first. Those that run in other processes say so in their titles; the first page
 * begins with those that have no event yet. The cursor is the number of recorded sessions already listed. */
export async function listSessionPage(
  options: RootOptions,
  { cwd, cursor }: { readonly cwd?: string | null; readonly cursor?: string | null },
): Promise<ListSessionsResponse> {
  const from = Number(cursor ?? 0);
  if (!Number.isInteger(from) || from < 0)
    throw RequestError.invalidParams({ cursor }, `\`${cursor ?? ''}\` is not a cursor of this agent`);
  const settings = await readSettings({ ...options, ...(cwd ? { cwd } : {}) });
  const [{ store }, { owners }] = await Promise.all([
    openRecord(settings, () => undefined),
    listOwners(settings.config.files),
  ]);
  try {
    const elsewhere = owners.filter((owner) => owner.pid !== process.pid && (!cwd || owner.cwd === cwd));
    const running = new Map(elsewhere.map((owner) => [owner.session_id, owner]));
    const rows = await store.list(from + pageSize + 1, cwd ?? undefined);
    const more = rows.length > from + pageSize ? { nextCursor: String(from + pageSize) } : {};
    const stored = rows.slice(from, from + pageSize).map((row) => storedSession(row, running.get(row.id)));
    const begun = from > 0 ? [] : await Promise.all(elsewhere.map((owner) => store.session(owner.session_id)));
    const fresh = elsewhere.filter((_, index) => begun[index] === null).map(freshSession);
    return { sessions: [...fresh, ...stored], ...more };
  } finally {
    await store.close();
  }
}

function storedSession(row: SessionSummary, owner: OwnerFacts | undefined): SessionInfo {
  const title = row.title ?? row.prompt;
  return {
    sessionId: row.id,
    cwd: row.cwd,
    title: owner ? runningTitle(title, owner) : title,
    updatedAt: new Date(row.updatedAt).toISOString(),
    ...(owner ? runningFacts(owner) : {}),
  };
}

function freshSession(owner: OwnerFacts): SessionInfo {
  const { session_id: sessionId, cwd, since } = owner;
  return { sessionId, cwd, title: runningTitle(owner.title, owner), updatedAt: since, ...runningFacts(owner) };
}

function runningTitle(title: string | null, { state }: OwnerFacts): string {
  return `${title ?? 'New session'} (running: ${state.replaceAll('_', ' ')})`;
}

/** Returns the facts about a session that runs, for programs. */
function runningFacts({ state, pid, since, clients }: OwnerFacts): Pick<SessionInfo, '_meta'> {
  return { _meta: { agent: { state, pid, since, clients } } };
}
