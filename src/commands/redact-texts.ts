import { dirname } from 'node:path';
import {
  type AgentData,
  attachmentsOf,
  type Event,
  type EventDraft,
  type GoalData,
  type HookData,
  knownEvent,
  type TurnSettingsData,
} from '../kernel/core/event.js';
import { isRecord, parseJson } from '../kernel/core/json.js';
import { redactedText, type TextTrace, traceTexts } from '../kernel/core/text-trace.js';
import { eraseInFiles } from '../kernel/store/erase-files.js';
import { CliError, type CommandLine, exit, type CommandStore, type CommandHandler } from '../kernel/console/command.js';
import { countOption } from '../kernel/console/line-output.js';
import { findSession } from '../kernel/console/stored-session.js';

export const redactTexts: CommandHandler = {
  line: {
    example: 'agent redact 0198 17',
    run: (line, [id = '', seq = '']) => redact(line, id, countOption(seq, 'event', 1)),
  },
};

/** Takes the texts of one event off the record for good. The hash chain stays whole and shows that it was done. */
async function redact({ out, withStore }: CommandLine, id: string, seq: number): Promise<number> {
  return await withStore(async (opened) => {
    const { records, store } = opened;
    const row = await findSession(store, id);
    const lease = await store.acquire(row.id);
    if (!lease.held)
      throw new CliError(
        exit.session,
        `session ${row.id} is in use by process ${lease.holder.pid}`,
        'Close it there first: that process still has the text.',
      );
    try {
      const event = (await store.load(row.id)).find((item) => item.seq === seq);
      if (!event)
        throw new CliError(
          exit.usage,
          `session ${row.id} has no event ${seq}`,
          `agent sessions show ${row.id} lists them.`,
        );
      const replacement = redactedEvent(event);
      if (!replacement)
        throw new CliError(
          exit.usage,
          `event ${seq} is of kind ${event.kind}, which is not redacted`,
          'It has no text; redact the call, the answer or the message it belongs to.',
        );
      const copies = await records.redact(row.id, seq, replacement);
      out.print(
        `Redacted event ${seq} of ${row.id}${copies > 1 ? ` and ${copies - 1} of its copies in forks` : ''}.\n`,
      );
      const quoted = {
        texts: textsLeftOut(event, replacement),
        contents: attachmentsOf(event.data).map(({ sha256 }) => sha256),
      };
      for (const line of await eraseQuotes(opened, row.id, quoted)) out.print(`${line}\n`);
      return exit.done;
    } finally {
      await lease.release();
    }
  });
}

const placeholder = redactedText;

/** Removes what quotes the texts elsewhere: in the record, and in the files beside it. Returns what was done and where a
 * text remains, a line each. */
async function eraseQuotes(
  { records, store, settings }: CommandStore,
  sessionId: string,
  quoted: { readonly texts: readonly string[]; readonly contents: readonly string[] },
): Promise<readonly string[]> {
  const trace = traceTexts(quoted.texts);
  const tooShort =
    trace === null ? ['The text is too short to be looked for elsewhere: only copies of the event are redacted.'] : [];
  if (trace === null && quoted.contents.length === 0) return tooShort;
  if (records.erase === null) return ['This store cannot look for the text in other events: only copies are redacted.'];
  const { events, sessions, others, contents } = await records.erase(trace, quoted.contents);
  const { cleaned, remaining } = cleanFiles(dirname(settings.config.files.database), trace);
  const busy: string[] = [];
  for (const id of sessions.filter((other) => other !== sessionId)) {
    const lease = await store.acquire(id);
    if (lease.held) await lease.release();
    else
      busy.push(`Session ${id} is in use by process ${lease.holder.pid}, which has the text in memory until it ends.`);
  }
  const parts = [
    `${counted(events, 'further event')} in ${counted(sessions.length, 'session')}`,
    ...(others === 0
      ? []
      : [counted(others, 'title, note, task or waiting message', 'titles, notes, tasks and waiting messages')]),
    ...(contents === 0 ? [] : [`${counted(contents, 'file content')} kept for undo or as an attachment`]),
    ...(cleaned === 0 ? [] : [counted(cleaned, 'file')]),
  ];
  return [
    ...tooShort,
    ...(events + others + contents + cleaned === 0 ? [] : [`Redacted quotations of it: ${parts.join(', ')}.`]),
    ...remaining.map((file) => `The text remains in ${file}. Delete the file if you do not need it.`),
    ...busy,
  ];
}

function cleanFiles(folder: string, trace: TextTrace | null): ReturnType<typeof eraseInFiles> {
  return trace === null ? { cleaned: 0, remaining: [] } : eraseInFiles(folder, trace);
}

function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

/** A path is named by many events, and none of them quotes the redacted one. */
const path = /^[\w.~-]*[/.][\w./~-]*$/;
/** The hash of a file's content is not a quotation either: other changes of the file name it. */
const contentHash = /^[0-9a-f]{64}$/;

/** Returns the texts of an event that its replacement has not. */
function textsLeftOut(
  event: Event,
  replacement: { readonly content: string | null; readonly data: unknown },
): readonly string[] {
  const kept = new Set(stringsIn([replacement.content, replacement.data]));
  return stringsIn([event.content, event.data]).filter(
    (text) => !kept.has(text) && !path.test(text) && !contentHash.test(text),
  );
}

/** Returns all strings of a value; of one that is JSON, those in it. */
function stringsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(stringsIn);
  if (isRecord(value)) return Object.values(value).flatMap(stringsIn);
  if (typeof value !== 'string') return [];
  if (!/^\s*[[{]/.test(value)) return [value];
  try {
    return stringsIn(parseJson(value));
  } catch {
    return [value];
  }
}

/** Returns an event without its texts, so that calls and results still match and a provider accepts the conversation.
 * Null for kinds that hold no text, or structure that the rest of the session depends on. */
function redactedEvent(event: Event): { readonly content: string | null; readonly data: unknown } | null {
  const left = emptied(event);
  const secrets = isRecord(event.data) ? event.data.secrets : undefined;
  // The keyed hashes stay. Without them the next secret would get a number that means another secret elsewhere.
  return left === null || secrets === undefined ? left : { ...left, data: { ...left.data, secrets } };
}

/** Keeps who wrote a message. */
function userMarks({ note, source }: NonNullable<Extract<EventDraft, { readonly kind: 'user' }>['data']>) {
  if (note === undefined && source === undefined) return null;
  return { ...(note ? { note } : {}), ...(source === undefined ? {} : { source }) };
}

function emptied(event: Event): Pick<EventDraft, 'content' | 'data'> | null {
  const known = knownEvent(event);
  switch (known?.kind) {
    case 'system':
      return { content: placeholder, data: null };
    case 'user':
      return { content: placeholder, data: known.data && userMarks(known.data) };
    case 'assistant': {
      const { response_id, provider, api, model, stop, interrupted } = known.data;
      const data = { response_id, provider, api, model, stop, ...(interrupted ? { interrupted: true } : {}) };
      return { content: known.content === '' ? '' : placeholder, data };
    }
    case 'tool_call':
      return {
        content: `${known.data.function.name}(${placeholder})`,
        data: { ...known.data, function: { name: known.data.function.name, arguments: '{}' } },
      };
    case 'tool_result': {
      const { tool_call_id, name, success, duration_ms } = known.data;
      return {
        content: placeholder,
        data: {
          tool_call_id,
          name,
          success,
          duration_ms,
          output: JSON.stringify(success ? { output: placeholder } : { error: placeholder, code: 'execution_failed' }),
        },
      };
    }
    case 'side_question':
      return { content: placeholder, data: { question: placeholder, answer: placeholder, usage: known.data.usage } };
    case 'shell':
      return { content: placeholder, data: { command: placeholder, exit_code: known.data.exit_code } };
    case 'error':
      return { content: placeholder, data: { code: known.data.code, message: placeholder } };
    case 'approval':
      return { content: placeholder, data: { ...known.data, reasons: [] } };
    case 'hook':
      return { content: placeholder, data: withoutCommand(known.data) };
    case 'goal':
      return { content: placeholder, data: withoutGoal(known.data) };
    case 'limit':
      return { content: placeholder, data: { ...known.data, message: placeholder } };
    case 'turn_settings':
      return { content: placeholder, data: withoutCalls(known.data) };
    case 'agent':
      return { content: placeholder, data: withoutTexts(known.data) };
    case 'base':
      return { content: placeholder, data: { ...known.data, patch: null } };
    case 'run':
      return { content: placeholder, data: { version: known.data.version, arguments: [] } };
    case 'compaction':
      return { content: placeholder, data: known.data };
    default:
      return null;
  }
}

/** Keeps of a hook what is no text. */
function withoutCommand({ event, sha256, exit, duration_ms, decision }: HookData): HookData {
  return { event, command: placeholder, sha256, exit, duration_ms, decision };
}

function withoutGoal({ reason: _reason, ...data }: GoalData): GoalData {
  return { ...data, condition: placeholder, check: data.check === null ? null : placeholder };
}

function withoutCalls({ allow: _allow, ...data }: TurnSettingsData): TurnSettingsData {
  return data;
}

/** Keeps of a step of a sub-agent what is no text. */
function withoutTexts({ conflicts: _conflicts, ...data }: AgentData): AgentData {
  return { ...data, description: placeholder, ...(data.output === undefined ? {} : { output: placeholder }) };
}
