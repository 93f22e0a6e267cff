import { knownEvent } from '../../kernel/core/event.js';
import type { SearchHit } from '../../kernel/core/store.js';
import { firstLine } from '../../kernel/core/text.js';
import type { SessionView } from '../../kernel/core/tool.js';
import { counted, type DefinedTool, defineTool, outOfBounds, succeeded } from '../../kernel/tools/define-tool.js';

export interface History {
  /** Finds the newest events that hold all words, in the sessions of `cwd` or in all. */
  readonly search: (text: string, limit: number, cwd?: string) => Promise<readonly SearchHit[]>;
  /** Hides secrets that an older version has stored. */
  readonly redact: (text: string) => string;
}

/** Events of earlier sessions, a line each. `isFromOutside`: a line may be what a page or a program wrote. */
export interface FoundEvents {
  readonly lines: readonly string[];
  readonly isFromOutside: boolean;
}

export const setLimits = { timeout_ms: 2000, max_output_bytes: 32_768 };
const defaultLimit = 10;
const maxLimit = 50;
const mostLooked = 1000;

/** `history_search`: what was said and done in earlier sessions. */
export function historyTools(history: History): readonly DefinedTool[] {
  return [
    defineTool({
      name: 'history_search',
      effect: 'read',
      limits: setLimits,
      untrusted: true,
      description: 'Find words in earlier sessions here.',
      schema: {
        type: 'object',
        properties: {
          query: { type: 'string' },
          limit: { type: 'integer' },
          all_projects: { type: 'boolean' },
        },
        required: ['query'],
        additionalProperties: false,
      },
      check: (args) => outOfBounds(args, { limit: [1, maxLimit] }),
      judge: ({ all_projects: all }) =>
        all === true
          ? { risk: 'mutating', reasons: ['history_search looks at sessions of other directories'] }
          : { risk: 'read-only', reasons: [] },
      async run({ query, limit = defaultLimit, all_projects: all = false }, ctx) {
        const cwd = all ? undefined : ctx.cwd;
        const found = await earlierEvents(history, ctx.session, { query, limit, cwd });
        return succeeded(`${counted(found.lines.length, 'event')} found`, {
          output: found.lines.length === 0 ? 'Nothing was found.' : found.lines.join('\n'),
          count: found.lines.length,
          ...(found.isFromOutside ? { untrusted: true } : {}),
        });
      },
    }),
  ];
}

interface Wanted {
  readonly query: string;
  readonly limit: number;
  /** Undefined: sessions of all directories. */
  readonly cwd: string | undefined;
}

/** Finds the newest events with all words of the query. What the model still sees of its own session is left out,
 * and so are side questions, which no conversation has. */
export async function earlierEvents(history: History, session: SessionView, wanted: Wanted): Promise<FoundEvents> {
  const { query, limit, cwd } = wanted;
  const hidden = seenFrom(session);
  let hits: readonly SearchHit[] = [];
  for (let asked = limit * 2; ; asked *= 5) {
    const all = await history.search(query, asked, cwd);
    const isNew = (hit: SearchHit): boolean =>
      (hit.sessionId !== session.id || hit.seq < hidden) && hit.kind !== 'side_question' && !isEcho(hit);
    hits = all.filter(isNew).slice(0, limit);
    if (hits.length === limit || all.length < asked || asked > mostLooked) break;
  }
  return {
    lines: hits.map((hit) => lineOf(hit, cwd === undefined, history.redact)),
    isFromOutside: hits.some(({ kind }) => kind === 'tool_result' || kind === 'shell'),
  };
}

/** True for a call of these tools and for what one has found: the events themselves are found, too. */
function isEcho({ kind, snippet }: SearchHit): boolean {
  return kind === 'tool_call'
    ? /^(?:search_memory|history_search|save_note) /.test(snippet)
    : /\(session \w+, event \d+\): /.test(snippet);
}

/** Returns the number of the first event of a session that no compaction has replaced. */
function seenFrom(session: SessionView): number {
  const compaction = session
    .recent()
    .map((event) => knownEvent(event))
    .findLast((event) => event?.kind === 'compaction');
  return compaction?.kind === 'compaction' ? compaction.data.to_seq + 1 : 0;
}

const names: Readonly<Record<string, string>> = { tool_call: 'call', tool_result: 'result', shell: 'command' };

function lineOf(hit: SearchHit, withPlace: boolean, redact: (text: string) => string): string {
  const day = new Date(hit.createdAt).toISOString().slice(0, 10);
  const place = withPlace ? ` in ${hit.cwd}` : '';
  const text = firstLine(redact(hit.snippet).replace(/\s+/g, ' '), 400);
  return `${day} ${names[hit.kind] ?? hit.kind}${place} (session ${hit.sessionId}, event ${hit.seq}): ${text}`;
}
