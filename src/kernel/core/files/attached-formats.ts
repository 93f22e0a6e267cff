import type { AttachmentData } from '../event.js';
import type { Conversation, Message, ModelRef } from '../projection.js';
import type { Blob } from '../store.js';
import type { MatchedFile } from '../tool.js';

/** Larger files are not attached. */
export const mostFileBytes = 20 * 1024 * 1024;

/** Files made ready for the record. `refused`: a sentence for each that was not taken. */
export interface KeptAttachments {
  readonly attachments: readonly AttachmentData[];
  readonly blobs: readonly Blob[];
  readonly refused: readonly string[];
}

/** An image that a model refused; it is not sent to that model again. */
export interface Withdrawal {
  readonly provider: string;
  readonly model: string;
  readonly sha256: readonly string[];
}

/** The facts that a request needs about the files in its conversation. */
export interface Sending {
  readonly ref: ModelRef;
  readonly withdrawn: readonly Withdrawal[];
  readonly blob: (sha256: string) => Promise<Uint8Array | null>;
}

/** Prepares images and documents for the log and for requests. */
export interface Attachments {
  /** Reads the files that a message of the user names; null where it names none. Relative paths start at `cwd`. */
  named(text: string, cwd: string): Promise<KeptAttachments | null>;
  keep(files: readonly MatchedFile[]): Promise<KeptAttachments>;
  /** Returns the conversation with its files as the model is to get them. The same message gives the same object
   * again, so that a wire's cache of messages works. */
  sent(conversation: Conversation, sending: Sending): Promise<Conversation>;
}

/** The attachments of a message, in the order in which they are sent. */
export function attachedTo(message: Message): readonly AttachmentData[] {
  return message.role === 'user'
    ? (message.attachments ?? [])
    : message.calls.flatMap(({ result }) => result.attachments ?? []);
}

/** `shot.png 1280x720`. */
export function labelOf({ name, width, height }: Pick<AttachmentData, 'name' | 'width' | 'height'>): string {
  return width === undefined || height === undefined ? name : `${name} ${width}x${height}`;
}

/** Estimates the tokens of an image. Source: Anthropic's "Vision" (read 2026-11); the other vendors count fewer. */
export function pictureTokens({ width, height, bytes }: AttachmentData): number {
  return width === undefined || height === undefined ? Math.ceil(bytes / 100) : Math.ceil((width * height) / 750);
}
