import type { ToolContext, ToolOutcome } from '../core/tool.js';
import {
  beforeWrite,
  type BeforeWrite,
  type ContentMemory,
  sha256Of,
  staleRefusal,
  unifiedDiff,
  writeWhole,
} from './files/file-writer.js';
import { fileFailure } from './files/open-file.js';
import { absolutePath, pathProblem, shownPath } from './files/path-argument.js';
import {
  canEncode,
  decodeText,
  encodeText,
  plainForm,
  withEol,
  withoutCarriageReturns,
} from './files/text-encoding.js';
import { type Effects, succeeded } from './outcome.js';
import { type DefinedTool, defineTool, type FromSchema } from './define-tool.js';

const writeSchema = {
  type: 'object',
  properties: { path: { type: 'string' }, content: { type: 'string' } },
  required: ['path', 'content'],
  additionalProperties: false,
} as const;

type FileWriteArgs = FromSchema<typeof writeSchema>;

export function fileWriteTool(memory: ContentMemory): DefinedTool {
  return defineTool({
    name: 'file_write',
    effect: 'write',
    placeholders: 'plain',
    repeatable: true,
    description: 'Write a whole file, making folders as needed.',
    schema: writeSchema,
    check: (args) => pathProblem('path', args.path),
    run: (args, ctx) => write(args, ctx, memory),
  });
}

async function write(args: FileWriteArgs, ctx: ToolContext, memory: ContentMemory): Promise<ToolOutcome> {
  const absolute = absolutePath(ctx.cwd, args.path);
  try {
    const before = await beforeWrite(absolute, args.path, ctx.landings);
    const refusal = await staleRefusal(before, args.path, ctx, memory);
    if (refusal) return refusal;
    const old = before.bytes === null ? null : decodeText(before.bytes);
    const kept = old?.text == null ? plainForm : old.form;
    const form = canEncode(args.content, kept) ? kept : { ...plainForm, eol: kept.eol };
    const keepsEol = old?.text?.includes('\n') === true;
    const bytes = encodeText(withEol(keepsEol ? withoutCarriageReturns(args.content) : args.content, form.eol), form);
    await writeWhole(before, bytes, args.path);
    const effects = await writeEffects(before, bytes, args.path, memory);
    const output = `Wrote ${bytes.length} bytes to ${shownPath(args.path)}`;
    return succeeded(output, { output, bytes: bytes.length }, effects);
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  }
}

/** Returns the effects of a write: the new hash for the session, the diff for the screen and the bytes for undo. */
export async function writeEffects(
  before: BeforeWrite,
  bytes: Buffer,
  requested: string,
  memory: ContentMemory,
): Promise<Effects> {
  const sha256 = sha256Of(bytes);
  const text = withoutCarriageReturns(decodeText(bytes).text ?? '');
  const old = before.bytes === null ? null : decodeText(before.bytes).text;
  memory.remember(sha256, text);
  const diff =
    before.bytes !== null && old === null
      ? undefined
      : await unifiedDiff(requested, old === null ? null : withoutCarriageReturns(old), text);
  return {
    files: [{ path: before.path, sha256 }],
    changes: [{ path: before.path, before: before.bytes, after: bytes }],
    ...(diff === undefined ? {} : { diff }),
  };
}
