import type { Tool, ToolArgs, ToolContext, ToolOutcome } from '../../core/tool.js';
import type { ContentMemory } from './content-memory.js';
import { describeCall } from '../describe-call.js';
import { lineNumbers, nearestParts, occurrences } from './edit-match.js';
import { fileFailure, FileRefusal } from './file-error.js';
import { writeEffects } from './file-write.js';
import { beforeWrite, writeWhole } from './file-writer.js';
import { counted, failed, succeeded } from '../outcome.js';
import { staleRefusal } from './stale-file.js';
import {
  canEncode,
  decodeText,
  encodeText,
  encodingName,
  withEol,
  withoutCarriageReturns,
  type TextForm,
} from '../text-encoding.js';
import { absolutePath, pathProblem, shownPath } from '../tool-path.js';

interface FileEditArgs {
  readonly path: string;
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

const maxShownLines = 20;

export function fileEditTool(memory: ContentMemory): Tool {
  return {
    name: 'file_edit',
    effect: 'write',
    toolset: 'fs',
    description: 'Replace exact text in a file. old_string must occur once unless replace_all.',
    input_schema: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        old_string: { type: 'string', minLength: 1 },
        new_string: { type: 'string' },
        replace_all: { type: 'boolean' },
      },
      required: ['path', 'old_string', 'new_string'],
      additionalProperties: false,
    },
    describe: (args) => describeCall('file_edit', args),
    check(args: ToolArgs) {
      const { old_string, new_string } = args as unknown as FileEditArgs;
      if (withoutCarriageReturns(old_string) === withoutCarriageReturns(new_string))
        return { argument: 'new_string', problem: 'the same as old_string', expected: 'a different text' };
      return pathProblem('path', args.path);
    },
    run: (args, ctx) => edit(args as unknown as FileEditArgs, ctx, memory),
  };
}

async function edit(args: FileEditArgs, ctx: ToolContext, memory: ContentMemory): Promise<ToolOutcome> {
  const absolute = absolutePath(ctx.cwd, args.path);
  try {
    const before = await beforeWrite(absolute, args.path, ctx.landings);
    if (before.bytes === null) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
    const refusal = await staleRefusal(before, args.path, ctx, memory);
    if (refusal) return refusal;
    const { text, form } = decodeText(before.bytes);
    if (text === null || text.includes('\0'))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(args.path)} is not text in UTF-8, UTF-16 or Latin-1; it is not edited.`,
      );
    const name = encodingName(form, text);
    if (!canEncode(args.new_string, form))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(args.path)} is ${name ?? form.encoding}, which has not every character of new_string; convert the file first, or use others.`,
      );
    const plain = withoutCarriageReturns(text);
    const wanted = withoutCarriageReturns(args.old_string);
    const found = occurrences(plain, wanted);
    if (found.length === 0) return notFound(args, plain, wanted);
    if (found.length > 1 && args.replace_all !== true) return ambiguous(args, lineNumbers(plain, found));
    const bytes = encodeText(
      replaced(text, found, wanted.length, withEol(withoutCarriageReturns(args.new_string), form.eol), form),
      form,
    );
    await writeWhole(before, bytes, args.path);
    const effects = await writeEffects(before, bytes, args.path, memory);
    const where = shownPath(args.path);
    const summary = `Replaced ${counted(found.length, 'occurrence')} in ${where}`;
    // The model's wording is a contract.
    const output = `Replaced ${found.length} occurrence(s) in ${where}`;
    return succeeded(summary, { output, count: found.length, ...(name === null ? {} : { encoding: name }) }, effects);
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  }
}

/** `positions` and `length` count in the text with LF alone; what lies outside the matches keeps its own line ends. */
function replaced(
  text: string,
  positions: readonly number[],
  length: number,
  replacement: string,
  form: TextForm,
): string {
  if (form.eol === '\n' && !text.includes('\r\n'))
    return joined(
      text,
      positions.map((start) => ({ start, end: start + length })),
      replacement,
    );
  let plainAt = 0;
  let at = 0;
  const originalOf = (position: number): number => {
    while (plainAt < position) {
      if (text.charCodeAt(at) === 0x0d && text.charCodeAt(at + 1) === 0x0a) at++;
      at++;
      plainAt++;
    }
    return at;
  };
  return joined(
    text,
    positions.map((start) => ({ start: originalOf(start), end: originalOf(start + length) })),
    replacement,
  );
}

function joined(
  text: string,
  spans: readonly { readonly start: number; readonly end: number }[],
  replacement: string,
): string {
  const kept = spans.map(({ start }, index) => text.slice(index === 0 ? 0 : spans[index - 1]?.end, start));
  return [...kept, text.slice(spans.at(-1)?.end)].join(replacement);
}

function notFound(args: FileEditArgs, plain: string, wanted: string): ToolOutcome {
  const candidates = nearestParts(plain, wanted);
  const hint =
    candidates.length === 0
      ? 'nothing in the file is like it; read the file'
      : `nearest: ${candidates.map(({ line }) => `line ${line}`).join(', ')} (see details); copy the text exactly, white space included`;
  return failed('execution_failed', `old_string does not occur in ${shownPath(args.path)}; ${hint}.`, {
    candidates: candidates.map(({ line, text }) => ({ line, text })),
  });
}

function ambiguous(args: FileEditArgs, lines: readonly number[]): ToolOutcome {
  const shown = lines.slice(0, maxShownLines);
  const rest = lines.length > shown.length ? ` and ${lines.length - shown.length} more` : '';
  return failed(
    'execution_failed',
    `old_string occurs ${lines.length} times in ${shownPath(args.path)}, on lines ${shown.join(', ')}${rest}; add lines around it to name one, or set replace_all.`,
    { count: lines.length, lines: shown },
  );
}
