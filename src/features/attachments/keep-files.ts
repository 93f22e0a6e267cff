import { createHash } from 'node:crypto';
import type { AttachmentData } from '../../kernel/core/event.js';
import { type KeptAttachments, mostFileBytes } from '../../kernel/core/files/attached-formats.js';
import { firstLine } from '../../kernel/core/text.js';
import type { MatchedFile } from '../../kernel/core/tool.js';
import { isPdf, pictureFacts, type PictureFacts } from './image-header.js';

/** The limits that providers accept for any number of images: Anthropic refuses sides over 2,000 px in a request with
 * many of them, and scales down sides over 1,568 px. Source: Anthropic's "Vision" (read 2026-11). */
const limits = { side: 1568, bytes: 1_500_000 } as const;
/** Larger images are not even decoded. */
const maxDecodedBytes = 200_000_000;
const sizes = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** Makes an image upright and small. Returns null if nothing here can decode it. */
export type Scale = (picture: ToScale) => Promise<Scaled | null>;

export interface ToScale {
  readonly bytes: Uint8Array;
  readonly mediaType: PictureFacts['mediaType'];
  readonly orientation: number;
  readonly side: number;
  readonly maxBytes: number;
}

export interface Scaled {
  readonly bytes: Uint8Array;
  readonly mediaType: 'image/png' | 'image/jpeg';
}

/** Prepares files for the record: images become small and upright, other files stay as they are. Files within the
 * limits stay byte for byte the same. Never rejects; a refused file has a sentence. */
export async function keepFiles(files: readonly MatchedFile[], scale: Scale): Promise<KeptAttachments> {
  const kept = [];
  const refused = [];
  // One at a time: a decoded image takes hundreds of megabytes.
  for (const file of files) {
    const made = await keepFile(file, scale);
    if (typeof made === 'string') refused.push(made);
    else kept.push(made);
  }
  return {
    attachments: kept.map(({ attachment }) => attachment),
    blobs: kept.map(({ attachment: { sha256 }, bytes }) => ({ sha256, bytes })),
    refused,
  };
}

interface Kept {
  readonly attachment: AttachmentData;
  readonly bytes: Uint8Array;
}

async function keepFile(file: MatchedFile, scale: Scale): Promise<Kept | string> {
  const name = firstLine(file.name, 120) || 'file';
  const { bytes } = file;
  if (bytes.length > mostFileBytes)
    return `${name} is not attached: it has ${megabytes(bytes.length)}, over ${megabytes(mostFileBytes)}.`;
  const facts = pictureFacts(bytes);
  if (facts === null) return keptOther(name, file);
  const problem = unfit(facts);
  if (problem !== null) return `${name} is not attached: ${problem}.`;
  if (passes(facts, bytes)) return keptAs(name, bytes, facts.mediaType, facts);
  const scaled = await scale({
    bytes,
    mediaType: facts.mediaType,
    orientation: facts.orientation,
    side: limits.side,
    maxBytes: limits.bytes,
  });
  const now = scaled && pictureFacts(scaled.bytes);
  if (!scaled || !now)
    return `${name} is not attached: it cannot be decoded${facts.whole ? '' : ', its end is missing'}.`;
  return keptAs(name, scaled.bytes, scaled.mediaType, now);
}

function keptOther(name: string, { bytes, mediaType = '' }: MatchedFile): Kept | string {
  if (isPdf(bytes)) return keptAs(name, bytes, 'application/pdf');
  return mediaType.startsWith('image/')
    ? `${name} is not attached: it is not a PNG, JPEG, GIF or WebP.`
    : keptAs(name, bytes, plainType(mediaType));
}

function unfit({ width, height, pixelBytes }: PictureFacts): string | null {
  if (width === 0 || height === 0) return 'it has no pixels';
  const pixels = width * height;
  const most = maxDecodedBytes / pixelBytes;
  return pixels > most
    ? `${width}x${height} are ${sizes.format(pixels / 1e6)} megapixels, over ${sizes.format(most / 1e6)}` +
        (pixelBytes === 8 ? ' for an image of 16 bits a channel' : '')
    : null;
}

function passes({ width, height, orientation, moves, whole }: PictureFacts, bytes: Uint8Array): boolean {
  return whole && !moves && orientation === 1 && Math.max(width, height) <= limits.side && bytes.length <= limits.bytes;
}

function keptAs(name: string, bytes: Uint8Array, mediaType: string, size?: PictureFacts): Kept {
  return {
    bytes,
    attachment: {
      sha256: createHash('sha256').update(bytes).digest('hex'),
      media_type: mediaType,
      ...(size ? { width: size.width, height: size.height } : {}),
      bytes: bytes.length,
      name,
    },
  };
}

/** A type that a source claims must not turn other bytes into an image. */
function plainType(claimed: string): string {
  const type = claimed.toLowerCase();
  return /^(?:audio|video|text|application)\/[\w.+-]{1,80}$/.test(type) && type !== 'application/pdf'
    ? type
    : 'application/octet-stream';
}

function megabytes(bytes: number): string {
  return `${sizes.format(bytes / (1024 * 1024))} MB`;
}
