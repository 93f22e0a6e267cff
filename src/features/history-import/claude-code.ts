import { basename, join } from 'node:path';
import type { Stop } from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';
import { typedPart } from './injected-texts.js';
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
  longerStart,
  numberIn,
  type Source,
  nonEmptyText,
  timeOf,
  timesOf,
  type Turn,
} from './neutral-turns.js';

/** Claude Code: `~/.claude/projects/<directory>/<uuid>.jsonl`, a tree of lines. A response is several lines of one
 * `message.id`. Results of parallel calls hang on different branches: the id of their call joins them. Seen in 2.1.197,
 * November 2026. */
export const claudeCode: HistoryReader = {
  title: 'Claude Code',
  sources: function* ({ env, home }): Generator<Source> {
    const folders = nonEmptyText(env['CLAUDE_CONFIG_DIR'])?.split(',') ?? [
      join(home, '.claude'),
      join(home, '.config/claude'),
    ];
    for (const folder of folders)
      for (const file of filesBelow(join(folder, 'projects'), 1, /^[\da-f-]{36}\.jsonl$/)) yield { file };
  },
  head,
  turns,
};

function head(source: Source, { home }: HistoryPlace): FoundConversation | null {
  const ends = fileEnds(source.file);
  if (ends === null) return null;
  const lines = [...ends.first, ...ends.last];
  const own = lines.filter((line) => typeof line['sessionId'] === 'string');
  if (own.length === 0) return null;
  const said = (name: string): string | null =>
    own.map((line) => nonEmptyText(line[name])).find((text) => text !== null) ?? null;
  return {
    ...source,
    ...timesOf(source.file, ends),
    id: basename(source.file, '.jsonl'),
    cwd: directoryIn([said('cwd')], home),
    title: titleIn(lines.toReversed()),
    prompt: firstPrompt(ends.first) ?? firstPrompt(longerStart(source.file, ends)),
    version: said('version'),
    model: ends.last.map(modelIn).findLast((model) => model !== null) ?? null,
    bytes: ends.bytes,
  };
}

const titleFields = ['customTitle', 'aiTitle', 'summary'];

function titleIn(lines: readonly TurnFields[]): string | null {
  for (const field of titleFields)
    for (const line of lines) {
      const title = line['message'] === undefined ? nonEmptyText(line[field]) : null;
      if (title !== null) return firstLine(title.trim(), 120);
    }
  return null;
}

/** Returns the first line of what the user typed; null for any other line. */
function promptOf(line: TurnFields): string | null {
  if (!isPrompt(line)) return null;
  const text = promptText(line);
  return text === null ? null : firstLine(text.trim(), 120);
}

/** Commands of the program itself: they say nothing of what a conversation is about. */
const programCommand =
  /^\/(?:add-dir|advisor|agents|bashes|btw|bug|chrome|clear|color|compact|config|context|copy|cost|desktop|diff|doctor|effort|exit|export|extra-usage|fast|feedback|help|hooks|ide|init|insights|install-github-app|keybindings|login|logout|mcp|memory|mobile|model|output-style|passes|permissions|plan|plugin|privacy-settings|quit|release-notes|reload-plugins|remote-control|rename|resume|rewind|sandbox|skills|stats|status|statusline|stickers|tag|tasks|terminal-setup|theme|todos|upgrade|usage|vim|voice)(?![\w:-])/;

/** Returns what the user said first, in its last wording. */
function firstPrompt(lines: readonly TurnFields[]): string | null {
  const prompts = lines.filter((line) => {
    const prompt = promptOf(line);
    return prompt !== null && !programCommand.test(prompt);
  });
  const first = prompts[0];
  if (first === undefined) return null;
  const { parentUuid: parent } = first;
  const last = typeof parent === 'string' ? prompts.findLast((line) => line['parentUuid'] === parent) : first;
  return promptOf(last ?? first);
}

/** A line of the user: no result, nothing that the program says in their name. */
function isPrompt(line: TurnFields): boolean {
  if (line['type'] !== 'user' || line['isSidechain'] === true || line['isMeta'] === true) return false;
  if (line['isCompactSummary'] === true) return false;
  return !listOf(fieldsOf(line['message'])['content']).some((block) => fieldsOf(block)['type'] === 'tool_result');
}

function* turns({ file }: FoundConversation): Generator<Turn> {
  const last = lastPrompts(file);
  const seen = new Set<string>();
  /** On branches that the user left by going back. */
  const left = new Set<string>();
  for (const line of jsonLines(file)) {
    if (typeof line === 'string') {
      yield { kind: 'dropped', what: line };
      continue;
    }
    const { uuid, parentUuid: parent } = line;
    if (typeof uuid !== 'string') continue;
    if (seen.has(uuid)) continue;
    seen.add(uuid);
    const isOlder = typeof parent === 'string' && isPrompt(line) && last.get(parent) !== uuid;
    if (isOlder || (typeof parent === 'string' && left.has(parent))) {
      left.add(uuid);
      yield { kind: 'dropped', what: 'left_branches' };
    } else yield* turnsOf(line, uuid);
  }
}

/** Returns for each line the last prompt that follows it: those before were given up. */
function lastPrompts(file: string): ReadonlyMap<string, string> {
  const last = new Map<string, string>();
  for (const line of jsonLines(file)) {
    if (typeof line === 'string' || !isPrompt(line)) continue;
    const { uuid, parentUuid: parent } = line;
    if (typeof uuid === 'string' && typeof parent === 'string') last.set(parent, uuid);
  }
  return last;
}

function* turnsOf(line: TurnFields, uuid: string): Generator<Turn> {
  const { type } = line;
  if (type !== 'user' && type !== 'assistant') {
    if (type === 'attachment') yield* attachment(line);
    return;
  }
  if (line['isSidechain'] === true) yield { kind: 'dropped', what: 'sidechains' };
  else if (type === 'assistant') yield* answer(line, uuid);
  else if (line['isCompactSummary'] === true)
    yield { kind: 'summary', at: timeOf(line['timestamp']), text: contentText(fieldsOf(line['message'])['content']) };
  else if (line['isMeta'] === true) yield { kind: 'dropped', what: 'meta' };
  else yield* said(line);
}

/** Reads a message that the user typed while a turn was running: Claude Code keeps it as an attachment. */
function* attachment(line: TurnFields): Generator<Turn> {
  const { type, prompt } = fieldsOf(line['attachment']);
  const text = type === 'queued_command' ? contentText(prompt) : '';
  if (text !== '' && line['isSidechain'] !== true)
    yield { kind: 'user', at: timeOf(line['timestamp']), text: commandText(text) ?? text };
  else yield { kind: 'dropped', what: 'attachments' };
}

const stops: Readonly<Record<string, Stop>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool',
  max_tokens: 'length',
  pause_turn: 'pause',
  refusal: 'refusal',
};

function* answer(line: TurnFields, uuid: string): Generator<Turn> {
  const message = fieldsOf(line['message']);
  const model = modelIn(line);
  if (model === null) {
    yield { kind: 'dropped', what: 'errors' };
    return;
  }
  const part = { at: timeOf(line['timestamp']), response: nonEmptyText(message['id']) ?? uuid };
  const from = { provider: 'anthropic', model };
  const stop = stops[nonEmptyText(message['stop_reason']) ?? ''];
  for (const item of listOf(message['content'])) {
    const block = fieldsOf(item);
    const text = block['type'] === 'text' ? nonEmptyText(block['text']) : null;
    if (text !== null) yield { ...part, kind: 'text', text, from, stop };
    else if (block['type'] === 'tool_use') yield { ...part, kind: 'call', ...callOf(block, uuid) };
    else if (block['type'] !== 'text') yield { kind: 'dropped', what: blockName(String(block['type'])) };
  }
  yield { ...part, kind: 'usage', from, ...tokensOf(fieldsOf(message['usage'])) };
}

/** Null: the program wrote the answer itself, such as an error. */
function modelIn(line: TurnFields): string | null {
  const { model } = fieldsOf(line['message']);
  if (line['type'] !== 'assistant' || line['isApiErrorMessage'] === true || model === '<synthetic>') return null;
  return nonEmptyText(model) ?? 'unknown';
}

function blockName(type: string): string {
  return type.includes('thinking') ? 'reasoning' : 'other_blocks';
}

function callOf({ id, name, input }: TurnFields, uuid: string) {
  return { id: nonEmptyText(id) ?? uuid, name: nonEmptyText(name) ?? '', arguments: JSON.stringify(input ?? {}) };
}

function tokensOf(usage: TurnFields) {
  return {
    input: countOf(usage['input_tokens']),
    output: countOf(usage['output_tokens']),
    cacheRead: countOf(usage['cache_read_input_tokens']),
    cacheWrite: countOf(usage['cache_creation_input_tokens']),
    costUsd: null,
  };
}

function* said(line: TurnFields): Generator<Turn> {
  const at = timeOf(line['timestamp']);
  for (const item of listOf(fieldsOf(line['message'])['content'])) {
    const block = fieldsOf(item);
    if (block['type'] === 'tool_result') yield result(block, at);
    else if (block['type'] !== 'text') yield { kind: 'dropped', what: 'files' };
  }
  const text = promptText(line);
  if (text !== null) yield { kind: 'user', at, text };
  else if (isPrompt(line)) yield { kind: 'dropped', what: 'command_outputs' };
}

function result(block: TurnFields, at: number): Turn {
  const text = contentText(block['content']);
  const isError = block['is_error'] === true;
  const exitCode = isError ? numberIn(text, /^(?:Error: )?Exit code (\d{1,3})\b/) : undefined;
  return { kind: 'result', at, callId: nonEmptyText(block['tool_use_id']) ?? '', text, isError, exitCode };
}

/** Null: the user typed nothing, as in the output of a command. */
function promptText(line: TurnFields): string | null {
  const { content } = fieldsOf(line['message']);
  const texts = typeof content === 'string' ? [content] : listOf(content).map((block) => contentText([block]));
  const text = texts
    .map((part) => commandText(part) ?? typedPart(part))
    .filter((part) => part.trim() !== '')
    .join('\n\n');
  if (text !== '') return text;
  return listOf(content).some((block) => ['image', 'document'].includes(String(fieldsOf(block)['type'])))
    ? '[a file that was not imported]'
    : null;
}

/** Returns `/name arguments` for a command, `!line` for a line of the shell; null for any other text. */
function commandText(text: string): string | null {
  const shell = /^\s*<bash-input>([^]*?)<\/bash-input>/.exec(text)?.[1];
  if (shell !== undefined) return `!${shell.trim()}`;
  const name = /<command-name>([^<]*)<\/command-name>/.exec(text)?.[1];
  if (name === undefined || !/^\s*<command-/.test(text)) return null;
  const args = /<command-args>([^]*?)<\/command-args>/.exec(text)?.[1] ?? '';
  return `${name.startsWith('/') ? '' : '/'}${name} ${args}`.trim();
}
