import { basename, join } from 'node:path';
import type { Stop } from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';
import {
  contentText,
  countOf,
  directoryIn,
  type TurnFields,
  fieldsOf,
  fileEnds,
  filesBelow,
  type FoundConversation,
  type HistoryPlace,
  type HistoryReader,
  jsonLines,
  listOf,
  numberIn,
  type Source,
  nonEmptyText,
  timeOf,
  timesOf,
  type Turn,
} from './neutral-turns.js';

/** pi: `~/.pi/agent/sessions/--<directory>--/<time>_<uuid>.jsonl`, a header and a tree of entries whose last one is the
 * leaf. Source: docs/session-format.md of @mariozechner/pi-coding-agent 0.73.1. */
export const pi: HistoryReader = {
  title: 'pi',
  sources: function* ({ env, home }): Generator<Source> {
    const folder = nonEmptyText(env['PI_CODING_AGENT_DIR']) ?? join(home, '.pi/agent');
    for (const file of filesBelow(join(folder, 'sessions'), 1, /\.jsonl$/)) yield { file };
  },
  head,
  turns,
};

function head(source: Source, { home }: HistoryPlace): FoundConversation | null {
  const ends = fileEnds(source.file);
  const entries = ends?.first.filter(({ type, parentId }) => type === 'session' || parentId !== undefined) ?? [];
  if (ends === null || entries.length === 0) return null;
  const start = entries.find(({ type }) => type === 'session') ?? {};
  const prompt = entries.find((entry) => messageOf(entry)['role'] === 'user') ?? {};
  const answer = ends.last.findLast((entry) => messageOf(entry)['role'] === 'assistant') ?? {};
  return {
    ...source,
    ...timesOf(source.file, ends),
    id: nonEmptyText(start['id']) ?? basename(source.file, '.jsonl').replace(/^.*_/, ''),
    cwd: directoryIn([start['cwd']], home),
    title: nonEmptyText(ends.last.findLast(({ type }) => type === 'session_info')?.['name']),
    prompt: nonEmptyText(firstLine(contentText(messageOf(prompt)['content']).trim(), 120)),
    version: null,
    model: nonEmptyText(messageOf(answer)['model']),
    bytes: ends.bytes,
  };
}

/** The entries from the root to the leaf. The first version had no ids: all count. */
interface Path {
  readonly has: (entry: TurnFields) => boolean;
  /** Returns the first message at or behind an entry. */
  readonly messageFrom: (id: unknown) => string | undefined;
}

interface Place {
  readonly parent: unknown;
  /** The entry before it in the file, used if the parent is damaged. */
  readonly before: string | null;
  readonly isSaid: boolean;
}

function pathOf(file: string): Path {
  const places = new Map<string, Place>();
  let last: string | null = null;
  for (const entry of jsonLines(file)) {
    if (typeof entry === 'string' || entry['type'] === 'session') continue;
    const { id, parentId: parent } = entry;
    if (typeof id !== 'string' || places.has(id)) continue;
    places.set(id, { parent, before: last, isSaid: isSaid(entry) });
    last = id;
  }
  const path = new Set<string>();
  for (let id = last; id !== null && !path.has(id); id = aboveOf(id, places)) path.add(id);
  const order = [...path].toReversed();
  return {
    has: ({ id }) => typeof id !== 'string' || path.has(id),
    messageFrom: (id) => order.slice(Math.max(0, order.indexOf(String(id)))).find((one) => places.get(one)?.isSaid),
  };
}

function aboveOf(id: string, places: ReadonlyMap<string, Place>): string | null {
  const { parent, before = null } = places.get(id) ?? {};
  if (typeof parent !== 'string') return null;
  return places.has(parent) ? parent : before;
}

function* turns({ file }: FoundConversation): Generator<Turn> {
  const path = pathOf(file);
  const seen = new Set<unknown>();
  let number = 0;
  for (const entry of jsonLines(file)) {
    number++;
    if (typeof entry === 'string') yield { kind: 'dropped', what: entry };
    else if (entry['type'] === 'session' || seen.has(entry['id'])) continue;
    else if (path.has(entry)) yield* turnsOf(entry, nonEmptyText(entry['id']) ?? `line ${number}`, path);
    else if (isSaid(entry)) yield { kind: 'dropped', what: 'left_branches' };
    if (typeof entry !== 'string' && entry['id'] !== undefined) seen.add(entry['id']);
  }
}

function messageOf(entry: TurnFields): TurnFields {
  return entry['type'] === 'message' ? fieldsOf(entry['message']) : {};
}

function isSaid({ type }: TurnFields): boolean {
  return type === 'message' || type === 'custom_message' || type === 'branch_summary';
}

function* turnsOf(entry: TurnFields, key: string, path: Path): Generator<Turn> {
  const at = timeOf(entry['timestamp']);
  switch (entry['type']) {
    case 'message':
      yield* message(messageOf(entry), key, at);
      break;
    case 'custom_message':
      yield { kind: 'user', at, key, text: contentText(entry['content']) };
      break;
    case 'branch_summary':
      yield {
        kind: 'user',
        at,
        key,
        text: `[What was done on another branch]\n\n${nonEmptyText(entry['summary']) ?? ''}`,
      };
      break;
    case 'compaction':
      yield {
        kind: 'summary',
        at,
        text: nonEmptyText(entry['summary']) ?? '',
        keepsFrom: path.messageFrom(entry['firstKeptEntryId']),
      };
      break;
    default:
  }
}

function* message(fields: TurnFields, key: string, at: number): Generator<Turn> {
  switch (fields['role']) {
    case 'user':
    case 'custom':
    case 'hookMessage':
      yield* said(fields['content'], key, at);
      break;
    case 'assistant':
      yield* answer(fields, key, at);
      break;
    case 'toolResult':
      yield result(fields, at);
      break;
    case 'bashExecution':
      if (fields['excludeFromContext'] === true) yield { kind: 'dropped', what: 'own_commands' };
      else yield { kind: 'user', at, key, text: commandText(fields) };
      break;
    default:
      yield { kind: 'dropped', what: 'other_messages' };
  }
}

function* said(content: unknown, key: string, at: number): Generator<Turn> {
  const files = listOf(content).filter((block) => fieldsOf(block)['type'] === 'image');
  for (const _file of files) yield { kind: 'dropped', what: 'files' };
  const text = contentText(content);
  if (text.trim() !== '' || files.length > 0)
    yield { kind: 'user', at, key, text: text.trim() === '' ? '[a file that was not imported]' : text };
}

const stops: Readonly<Record<string, Stop>> = {
  stop: 'stop',
  length: 'length',
  toolUse: 'tool',
  aborted: 'interrupted',
};

function* answer(fields: TurnFields, key: string, at: number): Generator<Turn> {
  const part = { at, key, response: key };
  const from = {
    provider: nonEmptyText(fields['provider']) ?? 'pi',
    model: nonEmptyText(fields['model']) ?? 'unknown',
  };
  const stop = stops[nonEmptyText(fields['stopReason']) ?? ''];
  for (const item of listOf(fields['content'])) {
    const block = fieldsOf(item);
    const text = block['type'] === 'text' ? nonEmptyText(block['text']) : null;
    if (text !== null) yield { ...part, kind: 'text', text, from, stop };
    else if (block['type'] === 'toolCall') yield { ...part, kind: 'call', ...callOf(block) };
    else if (block['type'] === 'thinking') yield { kind: 'dropped', what: 'reasoning' };
  }
  if (nonEmptyText(fields['errorMessage']) !== null) yield { kind: 'dropped', what: 'errors' };
  const used = tokensOf(fieldsOf(fields['usage']));
  if (used.input + used.output + used.cacheRead + used.cacheWrite > 0) yield { ...part, kind: 'usage', from, ...used };
}

function callOf({ id, name, arguments: input }: TurnFields) {
  return { id: nonEmptyText(id) ?? '', name: nonEmptyText(name) ?? '', arguments: JSON.stringify(input ?? {}) };
}

function tokensOf(usage: TurnFields) {
  const cost = fieldsOf(usage['cost'])['total'];
  return {
    input: countOf(usage['input']),
    output: countOf(usage['output']),
    cacheRead: countOf(usage['cacheRead']),
    cacheWrite: countOf(usage['cacheWrite']),
    // What has no price is recorded as 0.
    costUsd: typeof cost === 'number' && cost > 0 ? cost : null,
  };
}

function result(fields: TurnFields, at: number): Turn {
  const text = contentText(fields['content']);
  const isError = fields['isError'] === true;
  const exitCode = isError ? numberIn(text, /\nCommand exited with code (\d{1,3})\s*$/) : undefined;
  return { kind: 'result', at, callId: nonEmptyText(fields['toolCallId']) ?? '', text, isError, exitCode };
}

/** Returns the text that the model got about a command that the user ran. */
function commandText({ command, output, exitCode, cancelled }: TurnFields): string {
  const shown = nonEmptyText(output) === null ? '(no output)' : `\`\`\`\n${String(output)}\n\`\`\``;
  const code = countOf(exitCode);
  const failed = code > 0 ? `\n\nCommand exited with code ${code}` : '';
  return `Ran \`${String(command)}\`\n${shown}${cancelled === true ? '\n\n(command cancelled)' : failed}`;
}
