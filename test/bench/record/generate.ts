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
  /** The sessions are distributed over this many days until now; without it events follow each other closely. */
  readonly days?: number;
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

/** Creates a store of `events` events in sessions of `perSession`, one of them of `longest`. */
export async function generateStore(sizes: Sizes): Promise<Generated> {
  const { store } = await openSqliteStore({ file: sizes.file, now: Date.now });
  await store.close();
  return fillStore(sizes);
}

const dayMs = 86_400_000;
const firstMs = 1_750_000_000_000;
const stepMs = 50;

/** Adds sessions to an existing database of any version of the program. Words have the frequencies of a language;
 * `words` are those of which none occurs in more than about 1 % of the events. Rows are written as the program writes
 * them, checksums and chain included; the program itself updates indexes and totals when it opens the database. */
export function fillStore({ file, events, perSession, longest, resultWords = 40, days }: Sizes): Generated {
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
    'INSERT INTO sessions (id, cwd, title, provider, model, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const sessions = 1 + Math.ceil((events - longest) / perSession);
  const pauseMs = days === undefined ? 0 : Math.floor((days * dayMs - events * stepMs) / sessions);
  let time = days === undefined ? firstMs : Date.now() - days * dayMs;
  let written = 0;
  let longestId = '';
  while (written < events) {
    const size = Math.min(events - written, written === 0 ? longest : perSession);
    const id = ulid(
      time,
      Uint8Array.from({ length: 16 }, () => Math.floor(random() * 256)),
    );
    if (written === 0) longestId = id;
    const model = models[Math.floor(written / perSession) % models.length] ?? 'offline';
    db.transaction(() => {
      const cwd = `/work/project-${Math.floor(written / perSession) % 40}`;
      session.run(id, cwd, sentence(4), 'offline', model, time, time + size * stepMs);
      let previous: Buffer | null = null;
      for (let seq = 1; seq <= size; seq++) {
        const row = {
          seq,
          created_at: (time += stepMs),
          ...eventAt(seq, sentence, { resultWords, model, turnsBefore: written >> 3 }),
        };
        previous = chainLink(previous, row, eventDigests(row));
        insert.run(id, seq, row.kind, row.content, row.data_json, row.created_at, eventChecksum(row), previous);
      }
    })();
    written += size;
    time += pauseMs;
  }
  db.close();
  return { words: rareWords(vocabulary), longest: longestId };
}

const models: readonly string[] = ['offline', 'offline-small', 'offline-large'];
/** Tools by how often they are called; one call in 25 fails. */
const toolNames: readonly string[] = ['bash', 'bash', 'bash', 'read_file', 'read_file', 'edit_file', 'grep'];

function toolAt(turn: number): { readonly name: string; readonly fails: boolean } {
  return { name: toolNames[turn % toolNames.length] ?? 'bash', fails: turn % 25 === 24 };
}

interface Made {
  readonly kind: string;
  readonly content: string | null;
  readonly data_json: string | null;
}

interface EventChoice {
  readonly resultWords: number;
  readonly model: string;
  /** Turns of the sessions before. */
  readonly turnsBefore: number;
}

/** A turn is eight rows: prompt, usage, text, call, start, result, usage, answer. */
function eventAt(
  seq: number,
  sentence: (words: number) => string,
  { resultWords, model, turnsBefore }: EventChoice,
): Made {
  // The rows of a turn have the sequence numbers 8n + 3 to 8n + 10.
  const { name, fails } = toolAt(turnsBefore + Math.floor((seq - 3) / 8));
  const id = `c${seq - (seq % 8)}`;
  const response = `r${seq - (seq % 8)}`;
  const data = (value: unknown): string => JSON.stringify(value);
  const usage = {
    response_id: response,
    provider: 'offline',
    model,
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
      content: fails ? 'failed' : 'exit 0',
      data_json: data({
        tool_call_id: id,
        name,
        output: data(
          fails
            ? { error: sentence(8), code: seq % 200 < 100 ? 'timeout' : 'exit_code' }
            : { output: sentence(resultWords), exit_code: 0 },
        ),
        success: !fails,
        duration_ms: seq % 900,
      }),
    }),
    () => ({ kind: 'usage', content: null, data_json: data({ ...usage, response_id: `a${seq + 1}` }) }),
    () => ({
      kind: 'assistant',
      content: sentence(30),
      data_json: data({ response_id: `a${seq}`, provider: 'offline', api: 'offline', model, stop: 'stop' }),
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
        model,
        stop: 'tool',
      }),
    }),
    () => ({
      kind: 'tool_call',
      content: `${name}(command="${sentence(4)}")`,
      data_json: data({
        id: `c${seq + 2}`,
        type: 'function',
        function: { name, arguments: data({ command: sentence(4) }) },
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
