import { parseEnvelope } from '../../kernel/core/envelope.js';
import type { AttachmentData } from '../../kernel/core/event.js';
import { attachedTo, type Attachments, labelOf, type Sending } from '../../kernel/core/files/attached-formats.js';
import type { Message, SentFile } from '../../kernel/core/projection.js';

/** The most files that go with a request, newest first, and how many older ones are left out at a time, so that the
 * provider's cache holds for the requests in between. */
const most = 20;
const step = 10;
/** Anthropic takes requests of 32 MB; base64 adds a third. */
const mostBytes = 16 * 1024 * 1024;

/** The kinds of files that a model accepts. */
export interface ModelCapabilities {
  /** Null: not known, so images are sent. */
  readonly sees: boolean | null;
  /** It reads PDFs itself. */
  readonly readsPdf: boolean;
  /** Reads the text of a PDF within `limitMs`. */
  readonly pdfText: (bytes: Uint8Array, limitMs: number) => Promise<PdfText>;
}

/** `problem`: a sentence. */
export type PdfText = { readonly text: string } | { readonly problem: string };

/** The PDFs of one message share this time. */
const mostPdfMs = 20_000;

/** The form of an attachment in a request. `line`: the text that replaces it. */
type AttachmentDecision = { readonly file: AttachmentData; readonly as: 'file' | 'text' } | { readonly line: string };

/** Puts the files of a conversation into it: the newest as files, others as a line in their place. */
export function createSender(): (
  conversation: Parameters<Attachments['sent']>[0],
  sending: Sending,
  eyes: ModelCapabilities,
) => ReturnType<Attachments['sent']> {
  const made = new WeakMap<Message, { readonly variant: string; readonly message: Message }>();
  return async (conversation, sending, eyes) => {
    const decide = fates(conversation.messages.flatMap(attachedTo), sending, eyes);
    const messages: Message[] = [];
    for (const message of conversation.messages) {
      const own = attachedTo(message).map(decide);
      const variant = JSON.stringify([own, eyes.readsPdf]);
      const known = made.get(message);
      if (own.length === 0 || known?.variant === variant) {
        messages.push(known?.message ?? message);
        continue;
      }
      const sent = await filled(message, own, sending, eyes);
      made.set(message, { variant, message: sent });
      messages.push(sent);
    }
    return { ...conversation, messages };
  };
}

/** Decides on attachments in the order in which they are asked about, which is that of the conversation. */
function fates(
  all: readonly AttachmentData[],
  { ref, withdrawn }: Sending,
  eyes: ModelCapabilities,
): (file: AttachmentData) => AttachmentDecision {
  const refused = new Set(
    withdrawn
      .filter(({ provider, model }) => provider === ref.provider && model === ref.model)
      .flatMap(({ sha256 }) => sha256),
  );
  const goes = (file: AttachmentData): boolean => isShown(file) && !refused.has(file.sha256);
  const leftOut = oldest(all.filter(goes));
  let seen = 0;
  return (file) => {
    const name = labelOf(file);
    if (!isShown(file)) return { line: `${name} ${file.media_type}, ${file.bytes} bytes: stored, not shown` };
    if (refused.has(file.sha256)) return { line: `${name} is not shown: the model refused it` };
    seen += 1;
    if (seen <= leftOut) return { line: `${name} was shown here and is no longer sent` };
    if (isPdf(file)) return { file, as: eyes.readsPdf ? 'file' : 'text' };
    return eyes.sees === false
      ? { line: `${name} is an image, which this model does not support` }
      : { file, as: 'file' };
  };
}

function oldest(files: readonly AttachmentData[]): number {
  let out = 0;
  const rest = (): readonly AttachmentData[] => files.slice(out);
  while (rest().length > most || (rest().length > 1 && sum(rest()) > mostBytes)) out += step;
  return Math.min(out, files.length);
}

function sum(files: readonly AttachmentData[]): number {
  return files.reduce((total, { bytes }) => total + bytes, 0);
}

function isPdf({ media_type: type }: AttachmentData): boolean {
  return type === 'application/pdf';
}

function isShown(file: AttachmentData): boolean {
  return isPdf(file) || /^image\/(?:png|jpeg|gif|webp)$/.test(file.media_type);
}

async function filled(
  message: Message,
  own: readonly AttachmentDecision[],
  sending: Sending,
  given: ModelCapabilities,
): Promise<Message> {
  const eyes = withBudget(given);
  if (message.role === 'user') {
    const { files, lines } = await loaded(own, sending, eyes);
    const content = [message.content, ...lines].filter((part) => part !== '').join('\n\n');
    return { ...message, content, ...(files.length > 0 ? { files } : {}) };
  }
  const calls = [];
  let at = 0;
  for (const call of message.calls) {
    const count = call.result.attachments?.length ?? 0;
    const { files, lines } = await loaded(own.slice(at, at + count), sending, eyes);
    at += count;
    const output = withLines(call.result.output, lines);
    calls.push({ ...call, result: { ...call.result, output, ...(files.length > 0 ? { files } : {}) } });
  }
  return { ...message, calls };
}

/** Returns `eyes` whose PDFs share `mostPdfMs`. */
function withBudget(eyes: ModelCapabilities): ModelCapabilities {
  let leftMs = mostPdfMs;
  return {
    ...eyes,
    pdfText: async (bytes) => {
      if (leftMs <= 0) return { problem: `Reading the PDFs of one message takes at most ${mostPdfMs / 1000} s.` };
      const startMs = performance.now();
      const text = await eyes.pdfText(bytes, leftMs);
      leftMs -= performance.now() - startMs;
      return text;
    },
  };
}

async function loaded(
  own: readonly AttachmentDecision[],
  { blob }: Sending,
  eyes: ModelCapabilities,
): Promise<{ readonly files: readonly SentFile[]; readonly lines: readonly string[] }> {
  const files: SentFile[] = [];
  const lines: string[] = [];
  for (const fate of own) {
    if ('line' in fate) {
      lines.push(`[${fate.line}]`);
      continue;
    }
    const { file, as } = fate;
    const bytes = await blob(file.sha256);
    if (bytes === null) lines.push(`[${labelOf(file)} is no longer stored]`);
    else if (as === 'text') lines.push(pdfLine(labelOf(file), await eyes.pdfText(bytes, mostPdfMs)));
    else
      files.push({
        mediaType: file.media_type,
        name: file.name,
        base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
      });
  }
  return { files, lines };
}

function pdfLine(name: string, read: PdfText): string {
  if ('problem' in read) return `[${name} is a PDF that was not read. ${read.problem}]`;
  return read.text === '' ? `[${name} is a PDF without readable text]` : `[The text of ${name}:]\n${read.text}`;
}

/** Puts lines below the output of an envelope. */
function withLines(output: string, lines: readonly string[]): string {
  if (lines.length === 0) return output;
  const envelope = parseEnvelope(output);
  const said = typeof envelope.output === 'string' ? [envelope.output] : [];
  return JSON.stringify({ ...envelope, output: [...said, ...lines].filter((part) => part !== '').join('\n') });
}
