import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { modelServer, type ModelServer, type Turn } from '../e2e/model-server.js';
import { type Place, place } from '../e2e/program.js';

/** A double whose plan is used up until a time: every request before it is refused, and the others get the turns in
 * order. `limits`: what it does with the n-th request that it answers; seconds from then, or null for no limit. */
export interface LimitedServer extends ModelServer {
  /** Requests that got an answer. */
  answered(): number;
  /** The end of the last limit in Unix milliseconds. */
  retryAt(): number;
}

/** Answers as Anthropic does for a plan: limits begin before the turn of that number, and take so many seconds. A
 * function answers by what is asked. */
export async function limitedServer(
  turns: readonly Turn[] | ((body: Readonly<Record<string, unknown>>) => Turn),
  limits: Readonly<Record<number, number>>,
): Promise<LimitedServer> {
  let answers = 0;
  let retryAt = 0;
  const begun = new Set<number>();
  const server = await modelServer((body) => {
    const seconds = limits[answers];
    if (seconds !== undefined && !begun.has(answers)) {
      begun.add(answers);
      retryAt = Math.ceil(Date.now() / 1000) * 1000 + seconds * 1000;
    }
    if (Date.now() < retryAt) return refusedUntil(retryAt);
    answers += 1;
    return typeof turns === 'function' ? turns(body) : (turns[answers - 1] ?? { text: 'End of script.' });
  });
  return { ...server, answered: () => answers, retryAt: () => retryAt };
}

/** The answer of a plan that is used up until a time in Unix milliseconds. */
export function refusedUntil(retryAt: number): Turn {
  return {
    headers: {
      'anthropic-ratelimit-unified-status': 'rejected',
      'anthropic-ratelimit-unified-representative-claim': 'five_hour',
      'anthropic-ratelimit-unified-reset': String(Math.round(retryAt / 1000)),
      'retry-after': String(Math.max(1, Math.ceil((retryAt - Date.now()) / 1000))),
    },
    refused: {
      status: 429,
      body: {
        type: 'error',
        error: { type: 'rate_limit_error', message: "This request would exceed your account's rate limit." },
      },
    },
  };
}

/** A place whose model is this server. */
export function limitedPlace(server: ModelServer, settings: object = {}): Place {
  const at = place();
  Object.assign(at.env, { ANTHROPIC_API_KEY: 'test-key-anthropic-1', ANTHROPIC_BASE_URL: server.url });
  mkdirSync(join(at.home, '.agent'));
  writeFileSync(
    join(at.home, '.agent', 'config.json'),
    JSON.stringify({ model: 'anthropic/claude-sonnet-5', ui: { title: false }, ...settings }),
  );
  return at;
}

export interface Row {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
}

/** The events of a place, of all its sessions. */
export function rows({ home }: Place): readonly Row[] {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  try {
    const all = db.prepare('select seq, kind, content, data_json from events order by session_id, seq').all();
    return (all as { seq: number; kind: string; content: string | null; data_json: string | null }[]).map(
      ({ data_json, ...row }) => ({ ...row, data: data_json === null ? null : (JSON.parse(data_json) as Row['data']) }),
    );
  } finally {
    db.close();
  }
}

/** Takes away what came behind the first event of a wait that has this state: the log is as a kill at once leaves it. */
export function cutBehind({ home }: Place, state: string): void {
  const db = new Database(join(home, '.agent/agent.db'));
  try {
    db.prepare(
      "delete from events where seq > (select min(seq) from events where kind = 'limit' and data_json ->> 'state' = ?)",
    ).run(state);
  } finally {
    db.close();
  }
}

export const limitStates = (at: Place): readonly unknown[] =>
  rows(at)
    .filter(({ kind }) => kind === 'limit')
    .map(({ data }) => data?.['state']);

export const bash = (command: string): Turn => ({ calls: [{ name: 'bash', arguments: { command } }] });
