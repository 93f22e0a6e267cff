import { createHash } from 'node:crypto';
import type { FileState } from '../../core/event.js';
import type { Tool, ToolArgs, ToolContext, ToolOutcome } from '../../core/tool.js';
import { binaryKind } from '../binary-kind.js';
import type { ContentMemory } from './content-memory.js';
import { describeCall } from '../describe-call.js';
import { fileFailure, FileRefusal } from './file-error.js';
import { createLineCollector, lineWindow, type LineWindow } from '../line-window.js';
import { openRegular, type OpenFile } from './open-file.js';
import { counted, failed, stopped, succeeded, withStop } from '../outcome.js';
import { sniffEncoding } from '../text-encoding.js';
import { absolutePath, pathProblem, shownPath } from '../tool-path.js';

export interface FileReadOptions {
  /** Most bytes of one read. */
  readonly maxReadBytes: number;
}

interface FileReadArgs { readonly path: string; readonly offset?: number; readonly limit?: number }

const defaultTimeoutMs = 60_000;
const chunkBytes = 256 * 1024;
const sniffBytes = 8192;

export function fileReadTool(options: FileReadOptions, memory: ContentMemory): Tool {
  return {
    name: 'file_read', effect: 'read', toolset: 'fs',
    description: 'Read a text file, or lines of it.',
    input_schema: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        offset: { type: 'integer', minimum: 1, description: 'first line, from 1' },
        limit: { type: 'integer', minimum: 1, description: 'lines' },
      },
      required: ['path'],
      additionalProperties: false,
    },
    describe: (args) => describeCall('file_read', args),
    check(args: ToolArgs) {
      for (const argument of ['offset', 'limit'] as const) {
        if (args[argument] !== undefined && !Number.isSafeInteger(args[argument])) return { argument, problem: 'too large', expected: 'a number of lines' };
      }
      return pathProblem('path', args.path);
    },
    run: (args, ctx) => read(args as unknown as FileReadArgs, ctx, options, memory),
  };
}

async function read(args: FileReadArgs, ctx: ToolContext, options: FileReadOptions, memory: ContentMemory): Promise<ToolOutcome> {
  const maxBytes = Math.min(options.maxReadBytes, ctx.limits.maxOutputBytes);
  const event = /^event:(\d{1,15})$/.exec(args.path);
  if (event) return readEvent(Number(event[1]), args, ctx, maxBytes);
  const absolute = absolutePath(ctx.cwd, args.path);
  let file: OpenFile | undefined;
  try {
    const opened = await openRegular(absolute, args.path, ctx.landings);
    file = opened;
    const { window, sha256, whole } = await withStop(ctx, defaultTimeoutMs, (signal) => scan(opened, args, maxBytes, signal));
    if (!whole) return stopped(ctx, 'file_read');
    if ((args.offset ?? 1) === 1 && window.nextOffset === null) memory.remember(sha256, window.text);
    return shown(args, window, [{ path: file.path, sha256 }]);
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  } finally {
    file?.close();
  }
}

function readEvent(seq: number, args: FileReadArgs, ctx: ToolContext, maxBytes: number): ToolOutcome {
  const output = ctx.eventOutput(seq);
  if (output === null) return failed('not_found', `There is no tool result at event ${seq} of this session.`);
  return shown(args, lineWindow(output, args.offset ?? 1, args.limit ?? Number.POSITIVE_INFINITY, maxBytes), []);
}

/** One pass over the file: hash, line count and the asked-for lines, however long the file or a line of it is. */
async function scan(file: OpenFile, args: FileReadArgs, maxBytes: number, signal: AbortSignal): Promise<{ window: LineWindow; sha256: string; whole: boolean }> {
  const lines = createLineCollector(args.offset ?? 1, args.limit ?? Number.POSITIVE_INFINITY, maxBytes);
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.max(sniffBytes, Math.min(chunkBytes, file.stats.size + 1)));
  let decoder: TextDecoder | undefined;
  while (!signal.aborted) {
    const bytesRead = await file.read(buffer);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    if (!decoder) {
      refuseBinary(chunk.subarray(0, sniffBytes), args.path, file.stats.size);
      decoder = new TextDecoder(sniffEncoding(chunk).encoding);
    }
    hash.update(chunk);
    lines.add(decoder.decode(chunk, { stream: true }));
  }
  if (decoder) lines.add(decoder.decode());
  return { window: lines.finish(), sha256: hash.digest('hex'), whole: !signal.aborted };
}

function refuseBinary(start: Buffer, requested: string, sizeBytes: number): void {
  const kind = binaryKind(start);
  if (kind !== null) throw new FileRefusal('execution_failed', `${shownPath(requested)} is binary: ${kind}, ${sizeBytes} bytes; file_read takes text only.`);
}

function shown(args: FileReadArgs, window: LineWindow, files: readonly FileState[]): ToolOutcome {
  const offset = args.offset ?? 1;
  if (offset > 1 && offset > window.totalLines) {
    return failed('execution_failed', `${shownPath(args.path)} has ${counted(window.totalLines, 'line')}; offset ${offset} is past its end.`, { total_lines: window.totalLines });
  }
  if (window.nextOffset === null && !window.cutInside) return succeeded(counted(window.totalLines - Math.min(offset - 1, window.totalLines), 'line'), { output: window.text }, { files });
  const next = window.nextOffset === null ? {} : { next_offset: window.nextOffset };
  const last = window.nextOffset === null ? window.totalLines : window.nextOffset - 1;
  return succeeded(`lines ${offset}-${last} of ${window.totalLines}`, { output: window.text, truncated: true, total_lines: window.totalLines, ...next }, { files });
}
