import Database from 'better-sqlite3';
import { ulid } from '../../../src/kernel/core/store.js';
import { chainLink, eventChecksum, eventDigests } from '../../../src/kernel/store/hash-chain.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';

export interface Generated {
  readonly words: readonly string[];
  readonly longest: string;
}

interface Sizes {
  readonly file: string;
  readonly events: number;
  readonly perSession: number;
  readonly longest: number;
  /** Of a result; 40 unless given. */
  readonly resultWords?: number;
}

/** A repeatable sequence of numbers from 0 to 1 (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A store of `events` events in sessions of `perSession`, one of them of `longest`. Words have the frequencies of a
 * language; `words` are those of which none occurs in more than about 1 % of the events. Rows are written as the
 * program writes them, checksums and chain included. */
export async function generateStore(sizes: Sizes): Promise<Generated> {
  const { file, events, perSession, longest, resultWords = 40 } = sizes;
  const { store } = await openSqliteStore({ file, now: Date.now });
  await store.close();
  const db = new Database(file);
  db.pragma('synchronous = OFF');
  const random = randomNumbers(42);
  const vocabulary = Array.from({ length: 20_000 }, (_, index) => word(index));
  const pick = (): string => vocabulary[Math.floor(vocabulary.length * random() ** 4)] ?? '';
  const sentence = (count: number): string => Array.from({ length: count }, pick).join(' ');
  const insert = db.prepare(
    'INSERT INTO events (session_id, seq, kind, content, data_json, created_at, crc32, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const session = db.prepare(
    'INSERT INTO sessions (id, cwd, provider, model, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  let time = 1_750_000_000_000;
  let written = 0;
  let longestId = '';
  while (written < events) {
    const size = Math.min(events - written, written === 0 ? longest : perSession);
    const id = ulid(time, crypto.getRandomValues(new Uint8Array(16)));
    if (written === 0) longestId = id;
    db.transaction(() => {
      session.run(id, `/work/project-${Math.floor(written / perSession) % 40}`, 'offline', 'offline', time, time);
      let previous: Buffer | null = null;
      for (let seq = 1; seq <= size; seq++) {
        const row = { seq, created_at: (time += 50), ...eventAt(seq, sentence, resultWords) };
        previous = chainLink(previous, row, eventDigests(row));
        insert.run(id, seq, row.kind, row.content, row.data_json, row.created_at, eventChecksum(row), previous);
      }
    })();
    written += size;
  }
  db.close();
  return { words: rareWords(vocabulary), longest: longestId };
}

interface Made {
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | null;
}

/** A turn is eight rows: prompt, usage, text, call, start, result, usage, answer. */
function eventAt(seq: number, sentence: (words: number) => string, resultWords: number): Made {
  const id = `c${seq - (seq % 8)}`;
  const response = `r${seq - (seq % 8)}`;
  const data = (value: unknown): string => JSON.stringify(value);
  const usage = {
    response_id: response,
    provider: 'offline',
    model: 'offline',
    input_tokens: 1200,
    output_tokens: 80,
    cache_read_tokens: 900,
    cache_write_tokens: 0,
    cost_usd: 0.0012,
  };
  if (seq === 1) return { kind: 'system', content: `You are an agent. ${sentence(200)}`, data_json: null };
  if (seq === 2)
    return {
      kind: 'tools',
      content: '1 tool',
      data_json: data({
        tools: [{ name: 'bash', description: 'runs a command', input_schema: { type: 'object' } }],
        settings: { model_output_size: 32_768 },
      }),
    };
  const kinds: readonly (() => Made)[] = [
    () => ({
      kind: 'tool_result',
      content: 'exit 0',
      data_json: data({
        tool_call_id: id,
        name: 'bash',
        output: data({ output: sentence(resultWords), exit_code: 0 }),
        success: true,
        duration_ms: seq % 900,
      }),
    }),
    () => ({ kind: 'usage', content: null, data_json: data(usage) }),
    () => ({
      kind: 'assistant',
      content: sentence(30),
      data_json: data({ response_id: `a${seq}`, provider: 'offline', api: 'offline', model: 'offline', stop: 'stop' }),
    }),
    () => ({ kind: 'user', content: sentence(15), data_json: null }),
    () => ({ kind: 'usage', content: null, data_json: data({ ...usage, response_id: `r${seq + 4}` }) }),
    () => ({
      kind: 'assistant',
      content: sentence(12),
      data_json: data({
        response_id: `r${seq + 3}`,
        provider: 'offline',
        api: 'offline',
        model: 'offline',
        stop: 'tool',
      }),
    }),
    () => ({
      kind: 'tool_call',
      content: `bash(command="${sentence(4)}")`,
      data_json: data({
        id: `c${seq + 2}`,
        type: 'function',
        function: { name: 'bash', arguments: data({ command: sentence(4) }) },
        response_id: `r${seq + 2}`,
      }),
    }),
    () => ({ kind: 'tool_started', content: null, data_json: data({ tool_call_id: `c${seq + 1}` }) }),
  ];
  return (kinds[seq % 8] ?? kinds[0])!();
}

/** Two or three syllables; no two indexes give the same word. */
function word(index: number): string {
  const syllables = [
    'ba',
    'ce',
    'di',
    'fo',
    'gu',
    'ha',
    'ke',
    'li',
    'mo',
    'nu',
    'pa',
    're',
    'si',
    'to',
    'vu',
    'wa',
    'xe',
    'yi',
    'zo',
    'qua',
  ];
  let rest = index;
  let text = '';
  do {
    text += syllables[rest % syllables.length] ?? '';
    rest = Math.floor(rest / syllables.length);
  } while (rest > 0);
  return `${text}n`;
}

/** A hundred words from the part of the vocabulary that is rare enough, from the commoner to the rarest. */
function rareWords(vocabulary: readonly string[]): readonly string[] {
  return Array.from(
    { length: 100 },
    (_, index) => vocabulary[Math.floor(vocabulary.length * 0.006 * (1 / 0.006) ** (index / 100))] ?? '',
  );
}
