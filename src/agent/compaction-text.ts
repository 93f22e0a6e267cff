import { clampText } from '../core/clamp.js';
import type { Message } from '../core/conversation.js';
import { knownEvent, type Event, type KnownEvent } from '../core/event.js';
import { project } from '../core/project.js';
import { utf8Bytes } from '../core/text.js';

interface Covered {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly covered: readonly Message[];
}

/** Most bytes of one message of the user, and of all of them; in a small window less. */
const maxMessageBytes = 8192;
const maxMessagesBytes = 49_152;
const maxListed = 100;

/** What stands for a covered range: the user's own messages word for word and the files, both from the log, then the
 * model's summary. */
export function compactionText(
  events: readonly Event[],
  { fromSeq, toSeq, covered }: Covered,
  summary: string | null,
  windowTokens: number,
): string {
  const { changed, read } = filesOf(events, toSeq);
  const parts: readonly (readonly string[])[] = [
    ['## What the user said, word for word', ...ownMessages(events, covered, windowTokens)],
    ['## Files changed in this session (event of the last change)', ...listed(changed)],
    ['## Files read (event)', ...listed(read)],
    ['## Summary', summary ?? 'The model could not be asked for a summary; read the events that matter.'],
  ];
  const head = `[The conversation from event ${fromSeq} to ${toSeq} was compacted; what follows stands for it. The whole text of an event in it can be read with file_read path="event:N".]`;
  return [head, ...parts.filter((part) => part.length > 1).map((part) => part.join('\n'))].join('\n\n');
}

/** In order; the oldest are left out where there is no room, which is a quarter of the window. A compaction among the
 * covered gives the messages it stood for. */
function ownMessages(events: readonly Event[], covered: readonly Message[], windowTokens: number): readonly string[] {
  const roomBytes = Math.min(maxMessagesBytes, windowTokens);
  const longestBytes = Math.min(maxMessageBytes, Math.ceil(roomBytes / 2));
  const own = covered
    .flatMap((message) => said(events, message))
    .map(({ seq, content }) => {
      const { text } = clampText(
        content,
        longestBytes,
        (omitted) => `[… ${omitted} bytes omitted; file_read path="event:${seq}"]`,
      );
      return `(event ${seq}) ${text}`;
    });
  let room = roomBytes;
  const start = own.findLastIndex((text) => (room -= utf8Bytes(text)) < 0) + 1;
  return start === 0 ? own : [`(${start} earlier messages are left out here)`, ...own.slice(start)];
}

function said(
  events: readonly Event[],
  message: Message,
): readonly { readonly seq: number; readonly content: string }[] {
  const raw = message.role === 'user' ? events.find((event) => event.seq === message.seq) : undefined;
  const event = raw ? knownEvent(raw) : null;
  if (event?.kind === 'user') return event.data?.note === true ? [] : [{ seq: event.seq, content: event.content }];
  if (event?.kind !== 'compaction') return [];
  const before = events.filter((item) => item.seq < event.seq);
  const { from_seq, to_seq } = event.data;
  return project(before)
    .messages.filter((item) => item.seq >= from_seq && item.seq <= to_seq)
    .flatMap((item) => said(before, item));
}

interface Files {
  readonly changed: ReadonlyMap<string, number>;
  readonly read: ReadonlyMap<string, number>;
}

/** From the log, not from the model; what a rewind left behind counts too, since files were not rewound. */
function filesOf(events: readonly Event[], toSeq: number): Files {
  const changed = new Map<string, number>();
  const read = new Map<string, number>();
  for (const raw of events) {
    const event = raw.seq <= toSeq ? knownEvent(raw) : null;
    if (event === null) continue;
    for (const path of changedPaths(event)) move(changed, path, event.seq);
    for (const path of readPaths(event)) move(read, path, event.seq);
  }
  for (const path of changed.keys()) read.delete(path);
  return { changed, read };
}

/** The last one named stands last. */
function move(files: Map<string, number>, path: string, seq: number): void {
  files.delete(path);
  files.set(path, seq);
}

function readPaths(event: KnownEvent): readonly string[] {
  return event.kind === 'tool_result' && event.data.success ? (event.data.files ?? []).map((file) => file.path) : [];
}

function changedPaths(event: KnownEvent): readonly string[] {
  switch (event.kind) {
    case 'tool_result':
      return (
        event.data.changes?.map((change) => change.path) ?? (event.data.diff === undefined ? [] : readPaths(event))
      );
    case 'undo':
    case 'redo':
    case 'restore':
      return event.data.changes.map((change) => change.path);
    default:
      return [];
  }
}

/** The newest, when there are many. */
function listed(files: ReadonlyMap<string, number>): readonly string[] {
  const all = [...files].map(([path, seq]) => `- ${path} (${seq})`);
  return all.length <= maxListed
    ? all
    : [`(${all.length - maxListed} more are left out here)`, ...all.slice(-maxListed)];
}
