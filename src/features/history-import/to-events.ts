import { clampEnvelope, clampText, type Envelope, errorEnvelope } from '../../kernel/core/envelope.js';
import { type Event, type EventDraft, type Stop, type ToolResultData } from '../../kernel/core/event.js';
import { interruptedRunning } from '../../kernel/core/projection.js';
import { firstLine } from '../../kernel/core/text.js';
import { describeCall } from '../../kernel/tools/define-tool.js';
import { type FoundConversation, type NamedModel, objectOf, type Turn } from './neutral-turns.js';

/** The facts of an imported session besides its conversation. */
export interface ImportFacts {
  readonly tool: string;
  /** The name of the program for users. */
  readonly title: string;
  readonly found: FoundConversation;
  /** Of the file (hex). */
  readonly sha256: string;
  /** The system prompt and the tools of a new session of ours. */
  readonly opening: readonly EventDraft[];
  /** Most bytes of the output of a call. */
  readonly maxOutputBytes: number;
}

type Call = Extract<Turn, { kind: 'call' }>;
type Result = Extract<Turn, { kind: 'result' }>;
type Usage = Extract<Turn, { kind: 'usage' }>;
type PartTurn = Extract<Turn, { response: string }>;

/** A response whose parts are collected until all its calls are answered. */
interface Response {
  readonly id: string;
  at: number;
  text: string;
  from: NamedModel | null;
  stop: Stop | null;
  usage: Usage | null;
  readonly keys: string[];
  readonly calls: Call[];
  readonly results: Map<string, Result>;
}

/** A result may stand so far behind its call; one that does not come by then is missing. */
const maxWaiting = 256;
const maxWaitingChars = 8 * 1024 * 1024;

/** Makes the events of our log: each call answered right behind its response, in the order of the calls. Yields nothing
 * where no messages. Source: contracts 2. */
export function* toEvents(turns: Iterable<Turn>, facts: ImportFacts): Generator<Event> {
  const made = new Importing(facts);
  for (const turn of turns) yield* made.take(turn);
  yield* made.end();
}

class Importing {
  readonly #facts: ImportFacts;
  readonly #dropped: Record<string, number> = {};
  readonly #foreign = new Set<string>();
  readonly #own: ReadonlySet<string>;
  /** The event numbers at which entries begin that a summary may keep. */
  readonly #places = new Map<string, number>();
  #seq = 0;
  #at: number;
  #open: Response | null = null;
  /** Turns behind a response with calls that are not answered yet. */
  #waiting: Turn[] = [];
  #waitingChars = 0;

  constructor(facts: ImportFacts) {
    this.#facts = facts;
    this.#at = facts.found.startedAt;
    const tools = facts.opening.find((event) => event.kind === 'tools');
    this.#own = new Set(tools?.kind === 'tools' ? tools.data.tools.map(({ name }) => name) : []);
  }

  *take(turn: Turn): Generator<Event> {
    if (turn.kind === 'dropped') this.#drop(turn.what);
    else if (turn.kind === 'result' && this.#answer(turn)) yield* this.#settled();
    else if ('response' in turn && turn.response === this.#open?.id) add(this.#open, turn);
    else if (this.#waiting.length > 0 || isUnanswered(this.#open)) yield* this.#wait(turn);
    else yield* this.#next(turn);
  }

  *end(): Generator<Event> {
    while (this.#open) {
      yield* this.#close();
      yield* this.#takeWaiting();
    }
    if (this.#seq > 0) yield* this.#closing();
  }

  #drop(what: string): void {
    this.#dropped[what] = (this.#dropped[what] ?? 0) + 1;
  }

  /** Returns false for a result of another response. */
  #answer(result: Result): boolean {
    const open = this.#open;
    if (!open?.calls.some(({ id }) => id === result.callId)) return false;
    if (!open.results.has(result.callId)) open.results.set(result.callId, result);
    return true;
  }

  *#wait(turn: Turn): Generator<Event> {
    this.#waiting.push(turn);
    this.#waitingChars += 'text' in turn ? turn.text.length : 0;
    if (this.#waiting.length < maxWaiting && this.#waitingChars < maxWaitingChars) return;
    yield* this.#close();
    yield* this.#takeWaiting();
  }

  *#settled(): Generator<Event> {
    if (this.#waiting.length === 0 || isUnanswered(this.#open)) return;
    yield* this.#close();
    yield* this.#takeWaiting();
  }

  *#takeWaiting(): Generator<Event> {
    const turns = this.#waiting;
    this.#waiting = [];
    this.#waitingChars = 0;
    for (const turn of turns) yield* this.take(turn);
  }

  *#next(turn: Exclude<Turn, { kind: 'dropped' }>): Generator<Event> {
    if (turn.kind === 'result') {
      this.#drop('results_without_call');
      return;
    }
    yield* this.#close();
    switch (turn.kind) {
      case 'user':
        yield* this.#events(turn.at, [{ kind: 'user', content: turn.text, data: null }], [turn.key ?? '']);
        break;
      case 'summary':
        yield* this.#events(turn.at, [this.#summary(turn)]);
        break;
      default:
        this.#open = responseOf(turn);
    }
  }

  /** Writes the response that was collected. */
  *#close(): Generator<Event> {
    const open = this.#open;
    this.#open = null;
    if (!open) return;
    const { id, text, calls, usage, at } = open;
    const from = open.from ?? usage?.from ?? { provider: this.#facts.tool, model: 'unknown' };
    const names = new Map(calls.map((call) => [call, this.#named(call.name)]));
    const said: readonly EventDraft[] =
      text === ''
        ? []
        : [{ kind: 'assistant', content: text, data: { response_id: id, ...from, api: 'import', stop: stopOf(open) } }];
    const asked = calls.map((call) => callEvent(call, names.get(call) ?? call.name));
    yield* this.#events(at, [...said, ...asked, ...(usage ? [usageEvent(usage)] : [])], open.keys);
    for (const call of calls) {
      const result = open.results.get(call.id);
      yield* this.#events(result?.at ?? at, [
        resultEvent(call, names.get(call) ?? call.name, result, this.#facts.maxOutputBytes),
      ]);
    }
  }

  #named(name: string): string {
    const clean = cleanId(name) || 'tool';
    if (!this.#own.has(clean)) this.#foreign.add(clean);
    return clean;
  }

  #summary({ text, keepsFrom }: Extract<Turn, { kind: 'summary' }>): EventDraft {
    const first = this.#facts.opening.length + 1;
    const last = ((keepsFrom === undefined ? undefined : this.#places.get(keepsFrom)) ?? this.#seq + 1) - 1;
    if (last < first) return { kind: 'user', content: text, data: { note: true } };
    const range = `the conversation from event ${first} to ${last}`;
    const head = `[${this.#facts.title} compacted ${range}; its summary replaces it.]`;
    return {
      kind: 'compaction',
      content: `${head}\n\n${text}`,
      data: { from_seq: first, to_seq: last, trigger: 'auto', tokens_before: 0, tokens_after: 0 },
    };
  }

  *#closing(): Generator<Event> {
    const { tool, title, sha256, found } = this.#facts;
    const program = found.version === null ? title : `${title} ${found.version}`;
    yield* this.#events(Number.NaN, [
      {
        kind: 'import',
        content: `Imported from ${program}.`,
        data: { tool, version: found.version, session: found.id, file_sha256: sha256, dropped: this.#dropped },
      },
      { kind: 'user', content: `Imported from ${program}. ${this.#available()}`, data: { note: true } },
    ]);
  }

  #available(): string {
    const own = [...this.#own];
    const use = own.length === 0 ? 'There are no tools here' : `Use ${own.join(', ')}`;
    const foreign = [...this.#foreign];
    if (foreign.length === 0) return `${use}.`;
    return `${foreign.join(', ')} ${foreign.length === 1 ? 'is' : 'are'} not available here. ${use}.`;
  }

  /** Numbers events, behind the opening. A time that is not known is that of the event before. */
  *#events(at: number, drafts: readonly EventDraft[], keys: readonly string[] = []): Generator<Event> {
    if (drafts.length === 0) return;
    if (this.#seq === 0) {
      const { opening, found } = this.#facts;
      for (const draft of opening) yield { ...draft, seq: ++this.#seq, createdAt: found.startedAt };
    }
    if (!Number.isNaN(at)) this.#at = at;
    for (const key of keys) if (key !== '') this.#places.set(key, this.#seq + 1);
    for (const draft of drafts) yield { ...draft, seq: ++this.#seq, createdAt: this.#at };
  }
}

function responseOf(part: PartTurn): Response {
  const { response: id, at } = part;
  const made: Response = {
    id,
    at,
    text: '',
    from: null,
    stop: null,
    usage: null,
    keys: [],
    calls: [],
    results: new Map(),
  };
  add(made, part);
  return made;
}

function add(open: Response, part: PartTurn): void {
  if (part.key !== undefined) open.keys.push(part.key);
  switch (part.kind) {
    case 'text':
      open.text += open.text === '' ? part.text : `\n\n${part.text}`;
      open.from = part.from;
      open.stop = part.stop ?? open.stop;
      break;
    case 'call':
      if (!open.calls.some(({ id }) => id === part.id)) open.calls.push(part);
      break;
    case 'usage':
      open.usage = part;
      break;
    default:
      part satisfies never;
  }
}

function isUnanswered(open: Response | null): boolean {
  return open !== null && open.results.size < open.calls.length;
}

function stopOf({ calls, stop }: Response): Stop {
  return stop ?? (calls.length > 0 ? 'tool' : 'stop');
}

/** Every wire takes such names and ids. */
function cleanId(text: string): string {
  return text.replaceAll(/[^\w-]+/g, '_').slice(0, 64);
}

function callEvent({ id, arguments: text, response }: Call, name: string): EventDraft {
  return {
    kind: 'tool_call',
    content: describeCall(name, objectOf(text) ?? {}),
    data: { id: cleanId(id), type: 'function', function: { name, arguments: text }, response_id: response },
  };
}

function usageEvent({ response, from, input, output, cacheRead, cacheWrite, costUsd }: Usage): EventDraft {
  return {
    kind: 'usage',
    content: null,
    data: {
      response_id: response,
      ...from,
      input_tokens: input,
      output_tokens: output,
      cache_read_tokens: cacheRead,
      cache_write_tokens: cacheWrite,
      cost_usd: costUsd,
    },
  };
}

function resultEvent(call: Call, name: string, result: Result | undefined, maxBytes: number): EventDraft {
  const envelope = result ? envelopeOf(result, maxBytes) : interruptedRunning;
  const data: ToolResultData = {
    tool_call_id: cleanId(call.id),
    name,
    output: JSON.stringify(envelope),
    success: !('error' in envelope),
    duration_ms: result?.durationMs ?? 0,
    ...(result ? {} : { synthetic: true }),
  };
  return { kind: 'tool_result', content: firstLine(result?.text ?? 'interrupted', 120), data };
}

/** A command that ran and ended with a code has succeeded in running. */
function envelopeOf({ text, isError, exitCode }: Result, maxBytes: number): Envelope {
  if (isError && exitCode === undefined)
    return errorEnvelope('execution_failed', clampText(text, maxBytes).text || 'It failed.');
  return clampEnvelope({ output: text, ...(exitCode === undefined ? {} : { exit_code: exitCode }) }, maxBytes);
}
