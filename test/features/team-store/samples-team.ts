import { randomUUID } from 'node:crypto';
import type { Event } from '../../../src/kernel/core/event.js';
import type { SessionRow } from '../../../src/kernel/core/store.js';
import type { ChainPoint, Push, StoredEvent, Team } from '../../../src/features/team-store/team.js';
import { rowOfEvent } from '../../../src/kernel/store/event-rows.js';
import { chainLink, eventChecksum, eventDigests } from '../../../src/kernel/store/hash-chain.js';

export const start: ChainPoint = { seq: 0, link: null };

/** Events as SQLite would store them, linked to what is before them. */
export function chained(events: readonly Event[], after: ChainPoint = start): readonly StoredEvent[] {
  let link = after.link;
  return events.map((event) => {
    const row = rowOfEvent(event);
    link = chainLink(link, row, eventDigests(row));
    const { seq, kind, content, data_json: dataJson, created_at: createdAt } = row;
    return { seq, kind, content, dataJson, createdAt, crc32: eventChecksum(row), hash: link, redacted: null };
  });
}

/** Where a session ends behind these events. */
export function endOf(events: readonly StoredEvent[]): ChainPoint {
  const last = events.at(-1);
  return last ? { seq: last.seq, link: last.hash } : start;
}

export function push(session: SessionRow, events: readonly StoredEvent[], change: Partial<Push> = {}): Push {
  return { session, team: null, machine: 'laptop', after: start, events, token: randomUUID(), ...change };
}

/** Takes the lease, pushes a whole session and gives the lease back. */
export async function share(
  team: Team,
  session: SessionRow,
  events: readonly Event[],
  change: Partial<Push> = {},
): Promise<readonly StoredEvent[]> {
  const lease = await team.leases.acquire(session.id);
  if (!lease.held) throw new Error('somebody holds it');
  const stored = chained(events);
  const done = await team.log.push(push(session, stored, { token: lease.token, ...change }));
  if (done.kind !== 'stored') throw new Error(done.kind);
  await team.leases.release(session.id, lease.token);
  return stored;
}
