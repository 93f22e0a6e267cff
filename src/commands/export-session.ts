import { largestOf } from '../kernel/core/lists.js';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { type Event, knownEvent } from '../kernel/core/event.js';
import { project } from '../kernel/core/projection.js';
import type { SecretGuard } from '../kernel/core/secrets/guard.js';
import { didYouMean, escapedJson } from '../kernel/core/text.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { counted } from '../kernel/tools/define-tool.js';
import { provided } from '../app/features.js';
import { otherPrograms, type WrittenSession } from '../kernel/console/other-programs-port.js';
import { CliError, type CommandLine, exit, type Repl, type CommandHandler } from '../kernel/console/command.js';
import { localTime } from '../kernel/console/line-output.js';
import { createEntryReader, type ExportEntry, resultTitle } from '../ui/export-entries.js';
import {
  attachedBlobs,
  type ExportedSession,
  findSession,
  inOnePage,
  jsonlOf,
  type PagedSession,
  storedPages,
} from '../kernel/console/stored-session.js';
import type { SessionRow, Store } from '../kernel/core/store.js';
import { htmlOf } from '../ui/export-html.js';

interface Options {
  readonly format?: string;
  readonly output?: string;
  readonly redact?: boolean;
}

/** Formats that are written while the session is read, piece by piece. */
const pieces: Readonly<Record<string, (session: PagedSession) => AsyncIterable<string>>> = {
  md: (session) => markdownOf(session),
  jsonl: (session) => jsonlOf(session),
  html: (session) => htmlOf(session),
};

/** The exported text, and remarks about it if the format has any. */
type Written = Pick<WrittenSession, 'text'> & Partial<WrittenSession>;

/** Formats that need the whole session. */
const wholes: Readonly<Record<string, (session: ExportedSession) => Promise<Written>>> = {
  script: async ({ events }) => ({ text: toScript(events) }),
  ...provided.find(otherPrograms)?.writers,
};
const formats: readonly string[] = [...Object.keys(pieces), ...Object.keys(wholes)];

/** `agent sessions export`, and `/export` for the session on the screen. */
export const exportSession: CommandHandler = {
  line: {
    example: 'agent sessions export 0198 --format html -o session.html',
    options: (command) =>
      command
        .option('--format <format>', `${formats.join(', ')}; default: what the file's name says, else md`)
        .option('-o, --output <file>', 'into this file (mode 0600)')
        .option('--no-redact', 'leave keys as they are'),
    run: (line, [id = ''], options: Options) => exportStored(line, id, options),
  },
  slash: exportShown,
};

/** Writes to stdout, or into a file (0600) with `-o`. Masks keys unless `--no-redact` is given. */
async function exportStored(line: CommandLine, id: string, options: Options): Promise<number> {
  const { out, guards, withStore } = line;
  const name = options.format ?? formatOfFile(options.output) ?? 'md';
  if (!formats.includes(name))
    throw new CliError(
      exit.usage,
      `--format: unknown format \`${name}\``,
      `${didYouMean(name, formats)} Known: ${formats.join(', ')}`.trim(),
    );
  return await withStore(async ({ store, settings }) => {
    const row = await findSession(store, id);
    const guard = options.redact === false ? null : await guards.export();
    const target = openTarget(out, options.output === undefined ? null : resolve(settings.cwd, options.output));
    const remark = Object.hasOwn(pieces, name)
      ? await writePieces(target, name, maskedPages(storedPages(store, row), guard))
      : await writeWhole(target, name, await wholeSession(store, row, guard));
    target.close();
    out.error(remark);
    const masked = guard?.count() ?? 0;
    if (masked > 0)
      out.error(
        `agent: ${counted(masked, 'value')} that looked like keys ${masked === 1 ? 'was' : 'were'} masked; ` +
          'use --no-redact to export them\n',
      );
    return exit.done;
  });
}

/** A place for an export: standard output or a file. */
interface Target {
  write(text: string, isLines: boolean): Promise<void>;
  close(): void;
}

function openTarget(out: CommandLine['out'], path: string | null): Target {
  if (path === null)
    return {
      write: async (text, lines) => {
        out.data(lines ? escapedJson(text) : text);
        await out.drained();
      },
      close: () => undefined,
    };
  const file = writing(path, () => openSync(path, 'w', 0o600));
  return {
    write: async (text) => {
      writing(path, () => writeFileSync(file, text));
    },
    close: () => {
      writing(path, () => {
        closeSync(file);
      });
    },
  };
}

async function writePieces(target: Target, name: string, session: PagedSession): Promise<string> {
  for await (const text of pieces[name]?.(session) ?? []) await target.write(text, isLines(name));
  return '';
}

async function writeWhole(target: Target, name: string, session: ExportedSession): Promise<string> {
  const written = await wholes[name]?.(session);
  await target.write(written?.text ?? '', isLines(name));
  return written?.file === undefined
    ? ''
    : `Copy it to ~/${written.file}; then \`${written.command ?? ''}\` resumes it.\n`;
}

async function wholeSession(store: Store, row: SessionRow, guard: SecretGuard | null): Promise<ExportedSession> {
  const events = await store.load(row.id);
  const session = { row, events, ...(await attachedBlobs(events, store)) };
  return guard === null ? session : redacted(session, guard);
}

function isLines(format: string): boolean {
  return !['md', 'html', 'script'].includes(format);
}

/** Masks values that look like secrets, also inside JSON. Texts that a provider sealed (`reasoning`) lose only known
 * values: another change would make them worthless. */
function redacted({ row, events, ...rest }: ExportedSession, guard: SecretGuard): ExportedSession {
  return { ...rest, row: maskedRow(row, guard), events: events.map((event) => guard.event(event)) };
}

function maskedRow(row: SessionRow, guard: SecretGuard): SessionRow {
  return { ...row, title: row.title === null ? null : guard.text(row.title) };
}

function maskedPages(session: PagedSession, guard: SecretGuard | null): PagedSession {
  if (guard === null) return session;
  const masked = async function* (): AsyncGenerator<readonly Event[]> {
    for await (const events of session.pages) yield events.map((event) => guard.event(event));
  };
  return { ...session, row: maskedRow(session.row, guard), pages: masked() };
}

function formatOfFile(path: string | undefined): string | undefined {
  return /\.(md|jsonl|html?)$/i
    .exec(path ?? '')?.[1]
    ?.toLowerCase()
    .replace(/^htm$/, 'html');
}

/** Throws a `CliError` where the file cannot be written. */
function writing<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CliError(
      exit.failed,
      `cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`,
      'Give another path to -o.',
    );
  }
}

/** Masks keys. An existing file is not overwritten. */
async function exportShown(argument: string, { screen, sessions, settings, line }: Repl): Promise<void> {
  const { row, session } = sessions.current();
  const events = session.events();
  if (events.length === 0) {
    screen.notice('info', 'There is nothing to export yet.');
    return;
  }
  const name = argument === '' ? `session-${row.id.slice(0, 13)}.md` : argument;
  const format = extname(name) === '' ? pieces.md : pieces[formatOfFile(name) ?? ''];
  if (!format) {
    screen.notice('error', `${name} was not written: end the name in .md, .html or .jsonl, by what it is to hold.`);
    return;
  }
  const guard = await line.guards.export();
  const shown = redacted({ row, events, ...(await attachedBlobs(events, session)) }, guard);
  const text = await joinChunks(format(inOnePage(shown)));
  try {
    writeFileSync(resolve(settings.cwd, name), text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    screen.notice('error', `${name} was not written: ${whyNot(error)}`);
    return;
  }
  const masked = guard.count();
  const said = `${counted(masked, 'value')} that looked like keys ${masked === 1 ? 'is' : 'are'} masked in it.`;
  screen.notice('info', `This session is in ${name}.${masked > 0 ? ` ${said}` : ''}`);
}

async function joinChunks(chunks: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
}

function whyNot(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && error.code === 'EEXIST' ? 'it exists; give another name' : error.message;
}

/** Writes a session as Markdown: messages as they are, calls and results in fences, the system prompt folded. Contains
 * no control characters: it may be printed on a terminal. */
export async function* markdownOf({ row, pages }: PagedSession): AsyncGenerator<string> {
  const reader = createEntryReader();
  const blocks = (entries: readonly ExportEntry[]): string =>
    sanitize(entries.map((entry) => `\n${block(entry)}\n`).join(''));
  let hasBegun = false;
  for await (const events of pages) {
    if (!hasBegun) yield markdownStart(row, events);
    hasBegun = true;
    yield blocks(reader.add(events));
  }
  if (!hasBegun) yield markdownStart(row, []);
  yield blocks(reader.end());
}

/** `events`: the first ones. */
function markdownStart(row: SessionRow, events: readonly Event[]): string {
  const facts = [
    `- session \`${row.id}\``,
    `- directory \`${row.cwd}\``,
    `- model \`${row.provider ?? '?'}/${row.model ?? '?'}\``,
    `- ${localTime(row.createdAt)} to ${localTime(row.updatedAt)}`,
  ];
  const first = events.find((event) => event.kind === 'user')?.content?.split('\n')[0] ?? row.id;
  const title = (row.title ?? first).slice(0, 120).toWellFormed();
  return sanitize(`# ${title}\n\n${facts.join('\n')}\n`);
}

function block(entry: ExportEntry): string {
  switch (entry.type) {
    case 'system':
      return `<details><summary>System prompt</summary>\n\n${fence(entry.text)}\n\n</details>`;
    case 'user':
      return `## ❯ ${entry.text.includes('\n') ? `\n\n${quoted(entry.text)}` : entry.text}${fromLine(entry.from)}`;
    case 'note':
      return quoted(entry.text);
    case 'assistant':
      return entry.text.trim();
    case 'call':
      return callBlock(entry);
    case 'shell':
      return `**!!** \`${entry.command.replaceAll('`', "'")}\`\n\n${fence(entry.output)}`;
    case 'side_question':
      return `*Side question, not part of the conversation:* ${entry.question.replaceAll('\n', ' ')}\n\n${quoted(entry.answer)}`;
    case 'compaction':
      return `*A summary of events ${entry.from} to ${entry.to}:*\n\n${quoted(entry.text)}`;
    case 'event':
      return `*${entry.kind}: ${entry.text.replaceAll('\n', ' ')}*`;
    default:
      return entry satisfies never;
  }
}

function fromLine(from: string | undefined): string {
  return from === undefined ? '' : `\n\n*(${from})*`;
}

function callBlock(entry: Extract<ExportEntry, { type: 'call' }>): string {
  const { result } = entry;
  const state = result === null ? 'no result' : `${result.success ? '✔' : '✘'} ${resultTitle(result)}`;
  const decision = entry.decision === null ? '' : `, ${entry.decision}`;
  const title = `**${entry.tool}** ${`${state}${decision}`.replaceAll('\n', ' ')}`;
  const parts = [
    fence(entry.arguments, 'json'),
    ...(result === null ? [] : [result.diff === null ? fence(result.output) : fence(result.diff, 'diff')]),
  ];
  return `${title}\n\n${parts.join('\n\n')}`;
}

/** Puts a text in a fence that is longer than any fence in it. */
function fence(text: string, language = ''): string {
  const longest = largestOf(
    [...text.matchAll(/`{3,}/g)].map((found) => found[0].length),
    2,
  );
  const marks = '`'.repeat(longest + 1);
  return `${marks}${language}\n${text}${text.endsWith('\n') || text === '' ? '' : '\n'}${marks}`;
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n');
}

interface ScriptUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly cost_usd?: number;
}

/** Writes the model's side of a session as a script for `--model offline/<file>` (docs/offline-script.md): one turn for
 * each response, with its calls byte for byte. Leaves out rewound events, and compactions, so that every response is
 * there. */
export function toScript(events: readonly Event[]): string {
  const usage = new Map<string, ScriptUsage>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind !== 'usage') continue;
    const {
      response_id: id,
      input_tokens,
      output_tokens,
      cache_read_tokens,
      cache_write_tokens,
      cost_usd,
    } = event.data;
    usage.set(id, {
      input_tokens,
      output_tokens,
      cache_read_tokens: cache_read_tokens ?? 0,
      cache_write_tokens: cache_write_tokens ?? 0,
      ...(cost_usd === null ? {} : { cost_usd }),
    });
  }
  const responseOf = responseIds(events);
  const answers = project(events.filter((event) => !event.kind.startsWith('compaction'))).messages.flatMap((message) =>
    message.role === 'assistant' ? [message] : [],
  );
  const turns = answers.map((message) => {
    const spent = usage.get(responseOf.get(message.seq) ?? '');
    return {
      ...(message.text === '' ? {} : { text: message.text }),
      ...(message.calls.length === 0
        ? {}
        : { calls: message.calls.map((call) => ({ name: call.name, raw: call.arguments, id: call.id })) }),
      ...(message.data?.stop === 'length' ? { stop: 'length' } : {}),
      ...(spent ? { usage: spent } : {}),
    };
  });
  return `${JSON.stringify({ turns }, null, 2)}\n`;
}

/** Maps the `seq` of the first row of each response to the id of the response. */
function responseIds(events: readonly Event[]): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'assistant' || event?.kind === 'tool_call') found.set(event.seq, event.data.response_id);
  }
  return found;
}
