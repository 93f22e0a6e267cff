import { createHash } from 'node:crypto';
import type { FileState } from '../core/event.js';
import { createLineSplitter } from '../core/model-output.js';
import { utf8Bytes } from '../core/text.js';
import type { ToolContext, ToolOutcome } from '../core/tool.js';
import type { ContentMemory } from './files/file-writer.js';
import { fileFailure, FileRefusal, type OpenFile, openRegular } from './files/open-file.js';
import { absolutePath, pathProblem, shownPath } from './files/path-argument.js';
import {
  binaryKind,
  countOddities,
  encodingName,
  looksLatin,
  type Oddities,
  sniffEncoding,
  windowsText,
} from './files/text-encoding.js';
import { counted, failed, stopped, succeeded, withStop } from './outcome.js';
import { type DefinedTool, defineTool, type FromSchema } from './define-tool.js';

export interface FileReadOptions {
  /** Most bytes of one read. */
  readonly maxReadBytes: number;
  /** `model_output_size`: what a model is sent of it at once. */
  readonly modelOutputBytes: number;
}

const defaultTimeoutMs = 60_000;
const chunkBytes = 256 * 1024;
const sniffBytes = 8192;
/** A longer line counts as several: else what is behind its beginning could not be asked for. */
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
  const wish = windowWish(args, Math.min(options.maxReadBytes, ctx.limits.maxOutputBytes), options.modelOutputBytes);
  const event = /^event:(\d{1,15})$/.exec(args.path);
  if (event) return readEvent(Number(event[1]), args, ctx, wish);
  const absolute = absolutePath(ctx.cwd, args.path);
  let file: OpenFile | undefined;
  try {
    const opened = await openRegular(absolute, args.path, ctx.landings);
    file = opened;
    const { window, sha256, whole, encoding } = await withStop(ctx, defaultTimeoutMs, (signal) =>
      readText(opened, () => openRegular(absolute, args.path, ctx.landings), { args, wish, signal }),
    );
    if (!whole) return stopped(ctx, 'file_read');
    if ((args.offset ?? 1) === 1 && window.nextOffset === null) memory.remember(sha256, window.text);
    const facts = { ...longLineFacts(window, wish), ...(encoding === null ? {} : { encoding }) };
    return shown(args, window, [{ path: file.path, sha256 }], facts);
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  } finally {
    file?.close();
  }
}

function readEvent(seq: number, args: FileReadArgs, ctx: ToolContext, wish: WindowWish): ToolOutcome {
  const output = ctx.eventOutput(seq);
  if (output === null) return failed('not_found', `There is no tool result at event ${seq} of this session.`);
  const window = lineWindow(output, wish);
  return shown(args, window, [], longLineFacts(window, wish));
}

/** Where a long line is among it, no more than a model is sent at once: what it is sent then is all that is kept, and
 * ends where `next_offset` goes on. A sixteenth stays free, for placeholders that are longer than their secrets. */
function windowWish({ offset, limit }: FileReadArgs, maxBytes: number, modelOutputBytes: number): WindowWish {
  const pageBytes = Math.max(1, Math.min(maxBytes, Math.floor((modelOutputBytes * 15) / 16)));
  const pieceBytes = Math.min(longLineBytes, pageBytes);
  return { offset: offset ?? 1, limit: limit ?? Number.POSITIVE_INFINITY, maxBytes, pageBytes, pieceBytes };
}

/** `piece_bytes` is what `modelOutput` counts by. */
function longLineFacts({ longLines }: LineWindow, { pieceBytes }: WindowWish): Facts {
  return longLines ? { long_lines: `a line over ${pieceBytes} bytes counts as several`, piece_bytes: pieceBytes } : {};
}

interface Scan {
  readonly args: FileReadArgs;
  readonly wish: WindowWish;
  readonly signal: AbortSignal;
}
interface Scanned {
  readonly window: LineWindow;
  readonly sha256: string;
  readonly whole: boolean;
  /** All of it is what the encoding allows. */ readonly valid: boolean;
}

/** The file as UTF-8 or UTF-16, and once more in one byte a character where it turns out to be neither. `encoding`:
 * what a result calls it where it must be told. */
async function readText(
  file: OpenFile,
  reopen: () => Promise<OpenFile>,
  how: Scan,
): Promise<Scanned & { readonly encoding: string | null }> {
  const odd = { wide: 0, replaced: 0 };
  const first = await scan(file, how, odd);
  if (first.valid || !first.whole) return { ...first, encoding: null };
  if (!looksLatin(odd))
    return { ...first, encoding: `utf-8, with ${counted(odd.replaced, 'place')} that cannot be decoded` };
  const again = await reopen();
  try {
    const second = await scan(again, how, null);
    return { ...second, encoding: encodingName({ encoding: 'windows-1252' }, second.window.text) };
  } finally {
    again.close();
  }
}

/** One pass over the file: hash, line count and the asked-for lines, however long the file or a line of it is. */
async function scan(file: OpenFile, { args, wish, signal }: Scan, odd: Oddities | null): Promise<Scanned> {
  const lines = createLineCollector(wish);
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.max(sniffBytes, Math.min(chunkBytes, file.stats.size + 1)));
  let decoder: TextDecoder | undefined;
  const isUtf8 = utf8Check();
  while (!signal.aborted) {
    const bytesRead = await file.read(buffer);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    if (!decoder) {
      refuseBinary(chunk.subarray(0, sniffBytes), args.path, file.stats.size);
      decoder = new TextDecoder(sniffEncoding(chunk).encoding);
    }
    hash.update(chunk);
    const text = odd === null ? windowsText(chunk) : decoder.decode(chunk, { stream: true });
    if (odd !== null) countOddities(text, odd);
    isUtf8(chunk);
    lines.add(text);
  }
  if (decoder && odd !== null) lines.add(decoder.decode());
  return {
    window: lines.finish(),
    sha256: hash.digest('hex'),
    whole: !signal.aborted,
    valid: decoder === undefined || decoder.encoding !== 'utf-8' || isUtf8(null),
  };
}

/** Takes bytes piece by piece, null at the end, and says whether all so far are UTF-8. */
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
  if (kind !== null)
    throw new FileRefusal(
      'execution_failed',
      `${shownPath(requested)} is binary: ${kind}, ${sizeBytes} bytes; file_read takes text only.`,
    );
}

interface Facts {
  readonly encoding?: string;
  readonly long_lines?: string;
  readonly piece_bytes?: number;
}

function shown(args: FileReadArgs, window: LineWindow, files: readonly FileState[], facts: Facts): ToolOutcome {
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
  /** The first line (from 1) left out after it, or null. */
  readonly nextOffset: number | null;
  /** A line of the text was too long for one and counts as several. */
  readonly longLines: boolean;
}

/** What of a text is wanted. */
interface WindowWish {
  readonly offset: number;
  readonly limit: number;
  /** Most UTF-8 of it. */
  readonly maxBytes: number;
  /** Most of it where a long line is among it. */
  readonly pageBytes: number;
  /** A line longer than that counts as several. */
  readonly pieceBytes: number;
}

/** Takes decoded text in parts, of any size and cut anywhere, and keeps the exact text of lines `offset` to
 * `offset + limit - 1`, as many as fit and at least one. CRLF becomes LF. */
interface LineCollector {
  add(part: string): void;
  finish(): LineWindow;
}

export function createLineCollector({ offset, limit, maxBytes, pageBytes, pieceBytes }: WindowWish): LineCollector {
  const all = createKeeper(maxBytes);
  const page = createKeeper(Math.min(pageBytes, maxBytes));
  let line = 1;
  let longLines = false;
  let longInside = false;
  let inLongLine = false;
  const splitter = createLineSplitter(pieceBytes, (piece, last) => {
    const isLong = inLongLine || !last;
    inLongLine = !last;
    longLines ||= isLong;
    if (line >= offset && line - offset < limit && all.keep(piece)) {
      page.keep(piece);
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
      const { text, count } = (longInside ? page : all).kept();
      const next = offset + count;
      return { text, totalLines: line - 1, nextOffset: next < line ? next : null, longLines };
    },
  };
}

interface Keeper {
  /** False where it does not fit. */
  keep(piece: string): boolean;
  kept(): { readonly text: string; readonly count: number };
}

/** Takes pieces until one does not fit; always the first. */
function createKeeper(maxBytes: number): Keeper {
  const kept: string[] = [];
  let bytes = 0;
  let full = false;
  return {
    keep(piece) {
      if (full) return false;
      bytes += utf8Bytes(piece);
      full = kept.length > 0 && bytes > maxBytes;
      if (!full) kept.push(piece);
      return !full;
    },
    kept: () => ({ text: kept.join(''), count: kept.length }),
  };
}

/** A window of a text that is in memory. */
function lineWindow(text: string, wish: WindowWish): LineWindow {
  const collector = createLineCollector(wish);
  collector.add(text);
  return collector.finish();
}
