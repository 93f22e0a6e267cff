import { type AttachmentData, type Event, knownEvent, type MessageSource } from '../core/event.js';
import type { Attachments, KeptAttachments, Withdrawal } from '../core/files/attached-formats.js';
import { attachedTo } from '../core/files/attached-formats.js';
import { type Conversation, type ModelRef } from '../core/projection.js';
import type { Fault } from '../core/provider.js';
import type { ToolOutcome } from '../core/tool.js';
import type { TurnDeps } from './dependencies.js';

const noFiles: KeptAttachments = { attachments: [], blobs: [], refused: [] };

/** Returns what the event of a message says of where it came from. */
export function messageData(
  source: MessageSource | null,
  id?: string,
): { readonly source?: MessageSource; readonly message_id?: string } {
  return { ...(source === null ? {} : { source }), ...(id === undefined ? {} : { message_id: id }) };
}

/** Records a message of the user with the files that it names. A note informs the model of each file that was
 * refused. */
export async function recordUser(
  d: TurnDeps,
  message: {
    readonly content: string;
    readonly typed: string;
    readonly data?: object;
    /** Files besides those that the text names. */
    readonly kept?: KeptAttachments | null;
  },
): Promise<void> {
  const { kept = null } = message;
  const named = (await d.attachments?.named(message.typed, d.cwd)) ?? noFiles;
  const attachments = [...(kept ?? noFiles).attachments, ...named.attachments];
  const blobs = [...(kept ?? noFiles).blobs, ...named.blobs];
  const { refused } = named;
  const data = attachments.length === 0 ? (message.data ?? null) : { ...message.data, attachments };
  for (const message of refused) d.emit({ type: 'notice', level: 'warn', code: 'not_attached', message, noted: true });
  await d.record.append({ kind: 'user', content: message.content, data }, blobs);
  for (const why of refused) await d.record.append({ kind: 'user', content: why, data: { note: true } });
}

/** Makes the files of a result ready for the record. The result says which were not taken. */
export async function keepAttached(
  attachments: Attachments | undefined,
  outcome: ToolOutcome,
): Promise<{ readonly outcome: ToolOutcome; readonly kept: KeptAttachments | null }> {
  const found = outcome.attachments ?? [];
  if (found.length === 0 || attachments === undefined) return { outcome, kept: null };
  const kept = await attachments.keep(found);
  if (kept.refused.length === 0) return { outcome, kept };
  return { outcome: { ...outcome, envelope: { ...outcome.envelope, not_attached: kept.refused.join(' ') } }, kept };
}

/** Returns the conversation with its files, as the model of the request is to get them. */
export async function withFiles(d: TurnDeps, conversation: Conversation): Promise<Conversation> {
  if (d.attachments === undefined || !conversation.messages.some((message) => attachedTo(message).length > 0))
    return conversation;
  return await d.attachments.sent(conversation, {
    ref: d.model().ref,
    withdrawn: withdrawals(d.record.recent()),
    blob: (sha256) => d.record.blob(sha256),
  });
}

/** Which files a model refused, from the notes on record. */
export function withdrawals(events: readonly Event[]): readonly Withdrawal[] {
  return events.flatMap((raw) => {
    const event = raw.kind === 'user' ? knownEvent(raw) : null;
    const withdrawn = event?.kind === 'user' ? event.data?.withdrawn : undefined;
    return withdrawn === undefined ? [] : [withdrawn];
  });
}

/** Matches the words with which servers refuse a file of a request. */
const aboutFile = /image|picture|vision|multi-?modal|media[_ ]type|input_file|document|\bpdf\b|base64/i;

/** Withdraws the files of a request that a server refused because of a file, for this model, and notifies the user and
 * the model. The first attempt withdraws the files since the last answer, the next one all of them. Returns false if
 * there are no files to withdraw. */
export async function withdrawRefused(d: TurnDeps, fault: Fault): Promise<boolean> {
  const { ref } = d.model();
  if (!mayBeAboutFile(fault)) return false;
  const gone = new Set(
    withdrawals(d.record.recent())
      .filter((item) => isSame(item, ref))
      .flatMap(({ sha256 }) => sha256),
  );
  const { messages } = d.record.conversation();
  const from = messages.findLastIndex((message) => message.role === 'assistant');
  const isLeft = ({ sha256 }: AttachmentData): boolean => !gone.has(sha256);
  const recent = messages.slice(Math.max(0, from)).flatMap(attachedTo).filter(isLeft);
  const files = recent.length > 0 ? recent : messages.flatMap(attachedTo).filter(isLeft);
  if (files.length === 0) return false;
  const names = [...new Set(files.map(({ name }) => name))].join(', ');
  const message = `${names} ${files.length === 1 ? 'is' : 'are'} not sent: ${ref.model} refused it (${fault.message})`;
  d.emit({ type: 'notice', level: 'warn', code: 'file_refused', message, noted: true });
  const sha256 = [...new Set(files.map((file) => file.sha256))];
  const { provider, model } = ref;
  await d.record.append({
    kind: 'user',
    content: message,
    data: { note: true, withdrawn: { provider, model, sha256 } },
  });
  return true;
}

function mayBeAboutFile({ code, message }: Fault): boolean {
  return (code === 'bad_request' || code === 'network' || code === 'protocol') && aboutFile.test(message);
}

function isSame(item: Withdrawal, { provider, model }: ModelRef): boolean {
  return item.provider === provider && item.model === model;
}
