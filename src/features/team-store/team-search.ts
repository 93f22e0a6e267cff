import { parseJson } from '../../kernel/core/json.js';
import { aboutOf, isAboutOne, type SearchFilters } from '../../kernel/core/files/search-filters.js';
import { isRecord } from '../../kernel/core/json.js';
import { ulid } from '../../kernel/core/store.js';
import type { TeamScope } from '../../kernel/console/shared-record-port.js';
import type { StoredEvent, TeamHit } from './team.js';
import { holdsPhrases, type SearchQuery, snippetOf } from '../../kernel/store/search-query.js';
import { searchTextOf, tsquery } from './event-columns.js';
import type { QueryRows } from './server-connection.js';
import { type ServerEventRow, storedEvent } from './stored-events.js';

/** The words and filters of a search, and its scope. */
export interface TeamQuestion {
  readonly query: SearchQuery;
  readonly scope: TeamScope;
  readonly filters: SearchFilters;
}

interface HitRow extends Omit<ServerEventRow, 'crc32' | 'hash' | 'redacted'> {
  readonly session_id: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly owner: string;
}

/** The rows read in the first round, if phrases or files have to be compared. Each round reads four times as many,
 * since the server begins again with each. */
const searchedAtFirst = 200;
const searchedAtOnce = 3200;

/** The newest events that fit, of those that this role may read. An event whose JSON is broken is left out;
 * `onUnreadable` gets the number of these. */
export async function findHits(
  read: QueryRows,
  { query, scope, filters }: TeamQuestion,
  limit: number,
  onUnreadable: (count: number) => void,
): Promise<readonly TeamHit[]> {
  const words = query.terms.length === 0 ? null : tsquery(query);
  const asked = JSON.stringify(conditionsOf(scope, filters));
  let most = query.phrases.length + filters.files.length === 0 ? limit : searchedAtFirst;
  const hits: TeamHit[] = [];
  let skipped = 0;
  let unreadable = 0;
  while (hits.length < limit) {
    const found = await read<HitRow>('SELECT * FROM agent.search($1, $2, $3, $4)', [words, asked, most, skipped]);
    for (const row of found) {
      const hit = readHit(row);
      if (hit === null) unreadable++;
      else if (hits.length < limit && holdsPhrases(query, hit.shown) && isAboutOne(filters, hit.subject))
        hits.push({ ...hitOf(row), ...snippetOf(query, hit.shown) });
    }
    if (found.length < most) break;
    skipped += most;
    most = Math.min(4 * most, searchedAtOnce);
  }
  if (unreadable > 0) onUnreadable(unreadable);
  return hits;
}

/** Returns the text of an event and what it is about; null where its JSON is broken. */
function readHit(row: HitRow): { readonly shown: string; readonly subject: string | null } | null {
  try {
    const event = storedEvent({ ...row, crc32: null, hash: null, redacted: null });
    return { shown: searchTextOf(event) ?? '', subject: about(event) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

function about({ kind, dataJson }: StoredEvent): string | null {
  const data: unknown = parseJson(dataJson ?? 'null');
  return isRecord(data) ? aboutOf(kind, data) : null;
}

/** Lists of which one must fit each, for `agent.search`. */
function conditionsOf({ owner, cwd, since }: TeamScope, filters: SearchFilters): Readonly<Record<string, unknown>> {
  const { tools, files, kinds, from, session, after, before } = filters;
  const lists: readonly (readonly [string, readonly unknown[]])[] = [
    ['since', [since]],
    ['since_id', since === undefined ? [] : [ulid(since, new Uint8Array(0))]],
    ['owner', [owner]],
    ['cwd', [cwd ?? filters.cwd]],
    ['session', [session]],
    ['from', from],
    ['after', [after]],
    ['before', [before]],
    ['kinds', kinds],
    ['tools', tools],
    ['files', files.map((file) => JSON.stringify(file).slice(1, -1))],
  ];
  const given = lists.map(
    ([name, list]) => [name, list.filter((value) => value !== undefined && value !== null)] as const,
  );
  return Object.fromEntries(given.filter(([, list]) => list.length > 0));
}

function hitOf(row: HitRow): Omit<TeamHit, 'snippet' | 'matches'> {
  const { session_id: sessionId, seq, kind, created_at: createdAt, cwd, title, owner } = row;
  return { sessionId, seq, kind, createdAt, cwd, title, owner };
}
