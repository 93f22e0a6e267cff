import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { FileState } from '../core/event.js';
import { createLineSplitter } from '../core/model-output.js';
import { mostFileBytes } from '../core/files/attached-formats.js';
import { utf8Bytes } from '../core/text.js';
import type { ToolContext, ToolOutcome } from '../core/tool.js';
import {
  counted,
  type DefinedTool,
  defineTool,
  failed,
  type FromSchema,
  stopped,
  succeeded,
  withStop,
} from './define-tool.js';
import type { ContentMemory } from './files/atomic-write.js';
import {
  absolutePath,
  fileFailure,
  FileRefusal,
  type OpenFile,
  openRegular,
  pathProblem,
  readWhole,
  shownPath,
} from './files/open-file.js';
import {
  binaryKind,
  countOddities,
  encodingName,
  isShowable,
  legacySample,
  looksLegacy,
  type Oddities,
  sniffEncoding,
} from '../disk/text-encoding.js';
import { detectEncoding, legacyEncoding } from '../disk/legacy-encoding.js';

export interface FileReadOptions {
  /** The most bytes of one read. */
  readonly maxReadBytes: number;
  /** `model_output_size`: the most bytes that a model is sent at once. */
  readonly modelOutputBytes: number;
  /** The encoding of files that are neither UTF-8 nor UTF-16; null: it is detected. */
  readonly encoding: string | null;
}

const defaultTimeoutMs = 60_000;
const chunkBytes = 256 * 1024;
const sniffBytes = 8192;
/** A longer line counts as several lines, because a model could not ask for its end otherwise. */
const longLineBytes = 15_360;

const schema = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    offset: { type: 'integer', minimum: 1, description: 'first line, from 1' },
    limit: { type: 'integer', minimum: 1, description: 'lines' },
  },
  required: ['path'],
  additionalProperties: false,
} as const;

type FileReadArgs = FromSchema<typeof schema>;

export function fileReadTool(options: FileReadOptions, memory: ContentMemory): DefinedTool {
  return defineTool({
    name: 'file_read',
    otherNames: ['filesystem'],
    effect: 'read',
    placeholders: 'plain',
    repeatable: true,
    description: 'Read a text file, or lines of it.',
    schema,
    check(args) {
      for (const argument of ['offset', 'limit'] as const) {
        if (args[argument] !== undefined && !Number.isSafeInteger(args[argument]))
          return { argument, problem: 'too large', expected: 'a number of lines' };
      }
      return pathProblem('path', args.path);
    },
    run: (args, ctx) => read(args, ctx, options, memory),
  });
}

async function read(
  args: FileReadArgs,
  ctx: ToolContext,
  options: FileReadOptions,
  memory: ContentMemory,
): Promise<ToolOutcome> {
  const wanted = windowRequest(
    args,
    Math.min(options.maxReadBytes, ctx.limits.maxOutputBytes),
    options.modelOutputBytes,
  );
  const event = /^event:(\d{1,15})$/.exec(args.path);
  if (event) return readEvent(Number(event[1]), args, ctx, wanted);
  const absolute = absolutePath(ctx.cwd, args.path);
  let file: OpenFile | undefined;
  try {
    const opened = await openRegular(absolute, args.path, ctx.landings);
    file = opened;
    const { window, sha256, whole, encoding } = await withStop(ctx, defaultTimeoutMs, (signal) =>
      readText(opened, () => openRegular(absolute, args.path, ctx.landings), {
        args,
        wanted,
        signal,
        configured: options.encoding,
      }),
    );
    if (!whole) return stopped(ctx, 'file_read');
    if ((args.offset ?? 1) === 1 && window.nextOffset === null) memory.remember(sha256, window.text);
    const facts = { ...longLineFacts(window, wanted), ...(encoding === null ? {} : { encoding }) };
    return windowOutcome(args, window, [{ path: file.path, sha256 }], facts);
  } catch (error) {
    if (!(error instanceof ShowableFile)) return fileFailure(error, args.path, absolute);
    return await readShowable(() => openRegular(absolute, args.path, ctx.landings), error, args.path);
  } finally {
    file?.close();
  }
}

/** Thrown out of a read as text: the file is an image or a PDF. */
class ShowableFile extends Error {
  readonly kind: string;

  constructor(kind: string) {
    super(kind);
    this.kind = kind;
  }
}

/** Reads an image or a PDF whole: it is sent to the model with the result. */
async function readShowable(
  open: () => Promise<OpenFile>,
  { kind }: ShowableFile,
  requested: string,
): Promise<ToolOutcome> {
  const file = await open();
  try {
    if (file.stats.size > mostFileBytes)
      return failed(
        'execution_failed',
        `${shownPath(requested)} is a ${kind} of ${file.stats.size} bytes; over ${mostFileBytes} it is not shown.`,
      );
    const bytes = await readWhole(file);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const said = `${kind}, ${bytes.length} bytes`;
    return succeeded(
      said,
      { output: said },
      {
        files: [{ path: file.path, sha256 }],
        attachments: [{ name: basename(requested), bytes, mediaType: mediaTypeOf(kind) }],
      },
    );
  } finally {
    file.close();
  }
}

function mediaTypeOf(kind: string): string {
  return kind === 'PDF document' ? 'application/pdf' : `image/${kind.split(' ')[0]?.toLowerCase() ?? ''}`;
}

function readEvent(seq: number, args: FileReadArgs, ctx: ToolContext, wanted: WindowRequest): ToolOutcome {
  const output = ctx.eventOutput(seq);
  if (output === null) return failed('not_found', `There is no tool result at event ${seq} of this session.`);
  const window = lineWindow(output, wanted);
  return windowOutcome(args, window, [], longLineFacts(window, wanted));
}

/** Turns arguments into limits. If a long line is in the window, the result holds no more than one request to a model
 * may have, so that `next_offset` continues where the model's text ends. A sixteenth stays free for placeholders that
 * are longer than their secrets. */
function windowRequest({ offset, limit }: FileReadArgs, maxBytes: number, modelOutputBytes: number): WindowRequest {
  const pageBytes = Math.max(1, Math.min(maxBytes, Math.floor((modelOutputBytes * 15) / 16)));
  const pieceBytes = Math.min(longLineBytes, pageBytes);
  return { offset: offset ?? 1, limit: limit ?? Number.POSITIVE_INFINITY, maxBytes, pageBytes, pieceBytes };
}

/** `modelOutput` counts lines by `piece_bytes`. */
function longLineFacts({ longLines }: LineWindow, { pieceBytes }: WindowRequest): Facts {
  return longLines ? { long_lines: `a line over ${pieceBytes} bytes counts as several`, piece_bytes: pieceBytes } : {};
}

interface Scan {
  readonly args: FileReadArgs;
  readonly wanted: WindowRequest;
  readonly signal: AbortSignal;
  readonly configured: string | null;
}
interface Scanned {
  readonly window: LineWindow;
  readonly sha256: string;
  readonly whole: boolean;
}

/** Reads the file as UTF-8 or UTF-16, and again in a legacy encoding if it is neither. `encoding` is the name that a
 * result shows, or null where it need not be shown. */
async function readText(
  file: OpenFile,
  reopen: () => Promise<OpenFile>,
  how: Scan,
): Promise<Scanned & { readonly encoding: string | null }> {
  const unicode = unicodeDecoder();
  const first = await scan(file, how, unicode);
  if (!first.whole || unicode.isValid()) return { ...first, encoding: null };
  if (!looksLegacy(unicode.odd))
    return { ...first, encoding: `utf-8, with ${counted(unicode.odd.replaced, 'place')} that cannot be decoded` };
  const configured = how.configured === null ? null : await legacyEncoding(how.configured);
  const legacy = configured ?? (await detectEncoding(unicode.sample()));
  const again = await reopen();
  try {
    const second = await scan(again, how, legacy.decoder());
    return { ...second, encoding: encodingName({ encoding: legacy.name }, second.window.text) };
  } finally {
    again.close();
  }
}

/** Reads the file once for its hash, the number of lines and the requested lines, however long the file or a line is.
 */
async function scan(file: OpenFile, { args, wanted, signal }: Scan, decoder: PieceDecoder): Promise<Scanned> {
  const lines = createLineCollector(wanted);
  const lineFeeds = createLineFeeds();
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.max(sniffBytes, Math.min(chunkBytes, file.stats.size + 1)));
  let isStart = true;
  while (!signal.aborted) {
    const bytesRead = await file.read(buffer);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    if (isStart) refuseBinary(chunk.subarray(0, sniffBytes), args.path, file.stats.size);
    isStart = false;
    hash.update(chunk);
    lines.add(lineFeeds(decoder.decode(chunk), false));
  }
  lines.add(lineFeeds(decoder.end(), true));
  return { window: lines.finish(), sha256: hash.digest('hex'), whole: !signal.aborted };
}

/** Makes line feeds of the carriage returns of a file that has no line feed before or beside them: those end its
 * lines. */
function createLineFeeds(): (part: string, isLast: boolean) => string {
  let hasLineFeed = false;
  let held = '';
  return (part, isLast) => {
    let text = `${held}${part}`;
    // A line feed may follow in the next part.
    held = !isLast && text.endsWith('\r') ? '\r' : '';
    if (held !== '') text = text.slice(0, -1);
    hasLineFeed ||= text.includes('\n');
    return hasLineFeed ? text : text.replaceAll('\r', '\n');
  };
}

/** Decodes a file piece by piece. */
interface PieceDecoder {
  decode(chunk: Buffer): string;
  end(): string;
}

interface UnicodeDecoder extends PieceDecoder {
  readonly odd: Oddities;
  /** Returns whether all bytes so far are valid. */
  isValid(): boolean;
  /** Returns the part of the file that shows its legacy encoding; empty for UTF-8. */
  sample(): Uint8Array;
}

/** Decodes UTF-8 and UTF-16, which it distinguishes by the first piece. */
function unicodeDecoder(): UnicodeDecoder {
  const odd = { wide: 0, replaced: 0 };
  const isUtf8 = utf8Check();
  let decoder: TextDecoder | undefined;
  let sample: Uint8Array = new Uint8Array();
  return {
    odd,
    decode(chunk) {
      decoder ??= new TextDecoder(sniffEncoding(chunk).encoding);
      const text = decoder.decode(chunk, { stream: true });
      countOddities(text, odd);
      isUtf8(chunk);
      if (odd.replaced > 0 && sample.length === 0) sample = Uint8Array.from(legacySample(chunk));
      return text;
    },
    end: () => decoder?.decode() ?? '',
    isValid: () => decoder === undefined || decoder.encoding !== 'utf-8' || isUtf8(null),
    sample: () => sample,
  };
}

/** Returns a function that takes the bytes piece by piece, null at the end, and says whether all of them so far are
 * UTF-8. */
function utf8Check(): (chunk: Buffer | null) => boolean {
  const strict = new TextDecoder('utf-8', { fatal: true });
  let valid = true;
  return (chunk) => {
    try {
      if (valid) strict.decode(chunk ?? undefined, { stream: chunk !== null });
    } catch {
      valid = false;
    }
    return valid;
  };
}

function refuseBinary(start: Buffer, requested: string, sizeBytes: number): void {
  const kind = binaryKind(start);
  if (kind !== null && isShowable(kind)) throw new ShowableFile(kind);
  if (kind !== null)
    throw new FileRefusal(
      'execution_failed',
      `${shownPath(requested)} is binary: ${kind}, ${sizeBytes} bytes; file_read takes text, images and PDFs.`,
    );
}

interface Facts {
  readonly encoding?: string;
  readonly long_lines?: string;
  readonly piece_bytes?: number;
}

function windowOutcome(args: FileReadArgs, window: LineWindow, files: readonly FileState[], facts: Facts): ToolOutcome {
  const offset = args.offset ?? 1;
  if (offset > 1 && offset > window.totalLines) {
    return failed(
      'execution_failed',
      `${shownPath(args.path)} has ${counted(window.totalLines, 'line')}; offset ${offset} is past its end.`,
      { total_lines: window.totalLines },
    );
  }
  if (window.nextOffset === null)
    return succeeded(
      counted(window.totalLines - Math.min(offset - 1, window.totalLines), 'line'),
      { output: window.text, ...facts },
      { files },
    );
  const { text, totalLines, nextOffset } = window;
  const cut = { truncated: true, total_lines: totalLines, next_offset: nextOffset };
  return succeeded(`lines ${offset}-${nextOffset - 1} of ${totalLines}`, { output: text, ...cut, ...facts }, { files });
}

/** A part of a text, by lines. */
interface LineWindow {
  readonly text: string;
  readonly totalLines: number;
  /** The first line (from 1) that is left out after it, or null. */
  readonly nextOffset: number | null;
  /** A line of the text was too long and counts as several. */
  readonly longLines: boolean;
}

/** The part of a text that is requested. */
interface WindowRequest {
  readonly offset: number;
  readonly limit: number;
  /** The most bytes of it in UTF-8. */
  readonly maxBytes: number;
  /** The most bytes of it if it contains a long line. */
  readonly pageBytes: number;
  /** A longer line counts as several. */
  readonly pieceBytes: number;
}

/** Takes decoded text in parts of any size and keeps the exact text of lines `offset` to `offset + limit - 1`: as many
 * as fit, and at least one. CRLF becomes LF. */
interface LineCollector {
  add(part: string): void;
  finish(): LineWindow;
}

export function createLineCollector({ offset, limit, maxBytes, pageBytes, pieceBytes }: WindowRequest): LineCollector {
  const all = createPieces(maxBytes);
  const page = createPieces(Math.min(pageBytes, maxBytes));
  let line = 1;
  let longLines = false;
  let longInside = false;
  let inLongLine = false;
  const splitter = createLineSplitter(pieceBytes, (piece, last) => {
    const isLong = inLongLine || !last;
    inLongLine = !last;
    longLines ||= isLong;
    if (line >= offset && line - offset < limit && all.add(piece)) {
      page.add(piece);
      longInside ||= isLong;
    }
    line++;
  });
  return {
    add: (part) => {
      splitter.add(part);
    },
    finish() {
      splitter.finish();
      const { text, count } = (longInside ? page : all).result();
      const next = offset + count;
      return { text, totalLines: line - 1, nextOffset: next < line ? next : null, longLines };
    },
  };
}

interface Pieces {
  /** Returns false if the piece does not fit. */
  add(piece: string): boolean;
  result(): { readonly text: string; readonly count: number };
}

/** Takes pieces until one does not fit. The first always fits. */
function createPieces(maxBytes: number): Pieces {
  const pieces: string[] = [];
  let bytes = 0;
  let full = false;
  return {
    add(piece) {
      if (full) return false;
      bytes += utf8Bytes(piece);
      full = pieces.length > 0 && bytes > maxBytes;
      if (!full) pieces.push(piece);
      return !full;
    },
    result: () => ({ text: pieces.join(''), count: pieces.length }),
  };
}

/** Returns a window of a text that is in memory. */
function lineWindow(text: string, wanted: WindowRequest): LineWindow {
  const collector = createLineCollector(wanted);
  collector.add(text);
  return collector.finish();
}
