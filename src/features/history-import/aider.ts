import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { firstLine } from '../../kernel/core/text.js';
import { fileLines } from '../../kernel/disk/bounded-file.js';
import {
  type FoundConversation,
  type HistoryReader,
  maxLineBytes,
  type Source,
  nonEmptyText,
  type Turn,
} from './neutral-turns.js';

/** aider: `.aider.chat.history.md` in the directory of a project, text only. Lines with `#### ` are of the user, lines
 * with `> ` of the program; the rest is the answer. The place where a conversation begins (in bytes) identifies it
 * within its file. Source: aider/io.py, aider 0.86. */
export const aider: HistoryReader = {
  title: 'aider',
  sources: function* ({ env, home, cwd }): Generator<Source> {
    const named = nonEmptyText(env['AIDER_CHAT_HISTORY_FILE']);
    const files = named === null ? [cwd, home].map((folder) => join(folder, '.aider.chat.history.md')) : [named];
    for (const file of new Set(files)) yield* conversationsIn(file);
  },
  within: (file) => [...conversationsIn(file)],
  head,
  turns,
  sha256(found) {
    const hash = createHash('sha256');
    for (const line of linesOf(found)) if (line !== '') hash.update(`${line}\n`);
    return hash.digest('hex');
  },
};

const header = /^# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*$/;

function* conversationsIn(file: string): Generator<Source> {
  try {
    for (const { text, at } of fileLines(file, maxLineBytes))
      if (text !== null && header.test(text)) yield { file, session: String(at) };
  } catch {
    // There is no such file, or it cannot be read.
  }
}

/** The lines of a conversation, its header first. Throws an Error whose message is a clause. */
function* linesOf({ file, session }: Source): Generator<string> {
  let isFirst = true;
  for (const { text } of fileLines(file, maxLineBytes, { from: Number(session), empty: true })) {
    if (!isFirst && text !== null && header.test(text)) return;
    isFirst = false;
    if (text !== null) yield text;
  }
}

const firstLines = 200;

function head(source: Source): FoundConversation | null {
  if (source.session === undefined) return null;
  const lines: string[] = [];
  for (const line of linesOf(source)) if (lines.push(line) === firstLines) break;
  const started = header.exec(lines[0] ?? '');
  if (!started) return null;
  const found = (form: RegExp): string | null => lines.map((line) => form.exec(line)?.[1]).find(Boolean) ?? null;
  const prompt = found(/^#### (?!<blank>)(.*\S)/);
  // The file has the time of the machine, without a zone.
  const startedAt = new Date(`${started[1]}T${started[2]}`).getTime();
  return {
    file: source.file,
    session: source.session,
    id: `${source.file}:${source.session}`,
    cwd: dirname(source.file),
    startedAt,
    updatedAt: startedAt,
    title: null,
    prompt: prompt === null ? null : firstLine(prompt, 120),
    version: found(/^> Aider v(\S+)/),
    model: modelIn(lines),
    bytes: lines.join('\n').length,
  };
}

function modelIn(lines: readonly string[]): string | null {
  return lines.map((line) => /^> (?:Main model|Models?): (\S+)/.exec(line)?.[1]).find(Boolean) ?? null;
}

function roleOf(line: string, isCode: boolean): 'user' | 'tool' | 'answer' {
  if (/^#### ?/.test(line)) return 'user';
  return line.startsWith('> ') && !isCode ? 'tool' : 'answer';
}

function* turns(found: FoundConversation): Generator<Turn> {
  const from = { provider: 'aider', model: found.model ?? 'unknown' };
  let role: ReturnType<typeof roleOf> = 'answer';
  let lines: string[] = [];
  let count = 0;
  /** Quotes in a block of code are the model's. */
  let isCode = false;
  const said = function* (): Generator<Turn> {
    const text = lines.join('\n').trim();
    lines = [];
    if (text === '') return;
    if (role === 'tool') yield { kind: 'dropped', what: 'notices' };
    else if (role === 'answer') yield { kind: 'text', at: Number.NaN, response: `answer-${count}`, text, from };
    else {
      count += 1;
      yield { kind: 'user', at: Number.NaN, text };
    }
  };
  for (const line of linesOf(found)) {
    if (header.test(line)) continue;
    const next = roleOf(line, isCode);
    if (next !== role) {
      yield* said();
      isCode = false;
      role = next;
    }
    if (role === 'answer' && line.startsWith('```')) isCode = !isCode;
    lines.push(role === 'answer' ? line : unmarked(line));
  }
  yield* said();
}

/** Without the mark at its front and the two spaces at its end. */
function unmarked(line: string): string {
  const text = line.replace(/^(?:#### ?|> )/, '').replace(/ {2}$/, '');
  return text === '<blank>' ? '' : text;
}
