import { wellFormed, withoutEnd } from '../core/text.js';
import type { ArgumentProblem, Surroundings, ToolContext, ToolOutcome } from '../core/tool.js';
import {
  counted,
  type DefinedTool,
  defineTool,
  type ToolEffects,
  failed,
  type FromSchema,
  succeeded,
} from './define-tool.js';
import {
  beforeWrite,
  type BeforeWrite,
  checkStale,
  type ContentMemory,
  sha256Of,
  type Staleness,
  unifiedDiff,
  writeWhole,
} from './files/atomic-write.js';
import { absolutePath, fileFailure, FileRefusal, pathProblem, shownPath } from './files/open-file.js';
import {
  decodeText,
  encodeText,
  encodingName,
  plainForm,
  type TextForm,
  withEol,
  withLineFeeds,
  withoutCarriageReturns,
} from '../disk/text-encoding.js';

const writeSchema = {
  type: 'object',
  properties: { path: { type: 'string' }, content: { type: 'string' } },
  required: ['path', 'content'],
  additionalProperties: false,
} as const;

type FileWriteArgs = FromSchema<typeof writeSchema>;

/** Finds half of a character (a lone surrogate): no file has it, and written it would replace the whole one. */
function halfCharacter(argument: string, text: string): ArgumentProblem | null {
  return text.isWellFormed()
    ? null
    : { argument, problem: 'contains half of a character', expected: 'whole characters' };
}

/** `encoding`: that of files that are neither UTF-8 nor UTF-16; null: it is detected. */
export function fileWriteTool(memory: ContentMemory, encoding: string | null): DefinedTool {
  return defineTool({
    name: 'file_write',
    effect: 'write',
    placeholders: 'plain',
    repeatable: true,
    description: 'Write a whole file, making folders as needed.',
    schema: writeSchema,
    check: (args) => halfCharacter('content', args.content) ?? pathProblem('path', args.path),
    surroundingsOf: (args, place) => overwritten(args, place, encoding),
    run: (args, ctx) => write(args, ctx, memory, encoding),
  });
}

async function write(
  args: FileWriteArgs,
  ctx: ToolContext,
  memory: ContentMemory,
  encoding: string | null,
): Promise<ToolOutcome> {
  const absolute = absolutePath(ctx.cwd, args.path);
  try {
    const before = await beforeWrite(absolute, args.path, ctx.landings);
    const stale = await checkStale(before, args.path, ctx, { memory, encoding });
    if (stale.is === 'refused') return stale.outcome;
    const old = before.bytes === null ? null : await decodeText(before.bytes, encoding);
    const form = old?.text == null ? plainForm : old.form;
    const keepsEol = old?.text?.includes('\n') === true || form.eol === '\r';
    const content = withEol(keepsEol ? withoutCarriageReturns(args.content) : args.content, form.eol);
    const bytes = await encodeText(content, form);
    if (bytes === null) throw unencodable(args.path, form, 'content');
    await writeWhole(before, bytes, args.path);
    const effects = await writeEffects(before, bytes, args.path, memory, encoding);
    const output = `Wrote ${bytes.length} bytes to ${shownPath(args.path)}`;
    const name = encodingName(form, args.content);
    return succeeded(output, { output, bytes: bytes.length, ...(name === null ? {} : { encoding: name }) }, effects);
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  }
}

function unencodable(path: string, { encoding }: TextForm, argument: string): FileRefusal {
  return new FileRefusal(
    'execution_failed',
    `${shownPath(path)} is ${encoding}, which cannot encode a character of ${argument}; use other characters, or convert the ` +
      'file to UTF-8 first.',
  );
}

/** Returns the effects of a write: the new hash for the session, the diff for the screen and the bytes for undo. */
async function writeEffects(
  before: BeforeWrite,
  bytes: Buffer,
  requested: string,
  memory: ContentMemory,
  encoding: string | null,
): Promise<ToolEffects> {
  const sha256 = sha256Of(bytes);
  const text = withLineFeeds((await decodeText(bytes, encoding)).text ?? '');
  const old = before.bytes === null ? null : (await decodeText(before.bytes, encoding)).text;
  memory.remember(sha256, text);
  const diff =
    before.bytes !== null && old === null
      ? undefined
      : await unifiedDiff(requested, old === null ? null : withLineFeeds(old), text);
  return {
    files: [{ path: before.path, sha256 }],
    changes: [{ path: before.path, before: before.bytes, after: bytes }],
    ...(diff === undefined ? {} : { diff }),
  };
}

const maxShownLines = 20;

const editSchema = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    old_string: { type: 'string', minLength: 1 },
    new_string: { type: 'string' },
    replace_all: { type: 'boolean' },
  },
  required: ['path', 'old_string', 'new_string'],
  additionalProperties: false,
} as const;

type FileEditArgs = FromSchema<typeof editSchema>;

/** See `fileWriteTool`. */
export function fileEditTool(memory: ContentMemory, encoding: string | null): DefinedTool {
  return defineTool({
    name: 'file_edit',
    effect: 'write',
    placeholders: 'plain',
    guidance: {
      line: 'Change existing files with file_edit; use file_write for new ones. Match the surrounding style.',
    },
    repeatable: true,
    description: 'Replace exact text in a file. old_string must occur once unless replace_all.',
    schema: editSchema,
    check(args) {
      const { old_string, new_string } = args;
      if (withoutCarriageReturns(old_string) === withoutCarriageReturns(new_string))
        return { argument: 'new_string', problem: 'the same as old_string', expected: 'a different text' };
      return (
        halfCharacter('old_string', old_string) ??
        halfCharacter('new_string', new_string) ??
        pathProblem('path', args.path)
      );
    },
    linesOf: (args, place) => editedLines(args, place, encoding),
    surroundingsOf: (args, place) => aroundEdit(args, place, encoding),
    run: (args, ctx) => edit(args, ctx, memory, encoding),
  });
}

/** Numbers the lines at which an edit begins; none where it would be refused. */
async function editedLines(
  args: FileEditArgs,
  { cwd, landings }: Pick<ToolContext, 'cwd' | 'landings'>,
  encoding: string | null,
): Promise<readonly number[]> {
  try {
    const { bytes } = await beforeWrite(absolutePath(cwd, args.path), args.path, landings);
    const plain = withLineFeeds((bytes === null ? null : (await decodeText(bytes, encoding)).text) ?? '');
    const found = occurrences(plain, withoutCarriageReturns(args.old_string), { overlap: args.replace_all !== true });
    return found.length > 1 && args.replace_all !== true ? [] : lineNumbers(plain, found);
  } catch {
    return []; // the call itself will say what is wrong with the file
  }
}

const contextLines = 3;
/** Around a change in longer lines nothing is shown. */
const mostContextChars = 2_000;

/** Returns the lines around the place of an edit; null where it would be refused, and where there are several. */
async function aroundEdit(args: FileEditArgs, place: Place, encoding: string | null): Promise<Surroundings | null> {
  const plain = await plainText(args.path, place, encoding);
  if (plain === null) return null;
  const wanted = withoutCarriageReturns(args.old_string);
  const at = plain.indexOf(wanted);
  if (at < 0 || plain.includes(wanted, at + 1)) return null;
  const start = at === 0 ? 0 : plain.lastIndexOf('\n', at - 1) + 1;
  const end = at + wanted.length;
  const newline = plain.indexOf('\n', end);
  const lineEnd = newline < 0 ? plain.length : newline;
  const around = {
    above:
      start === 0
        ? []
        : plain
            .slice(0, start - 1)
            .split('\n')
            .slice(-contextLines),
    head: plain.slice(start, at),
    tail: plain.slice(end, lineEnd),
    below: withoutEnd(plain.slice(lineEnd + 1), '\n')
      .split('\n')
      .slice(0, contextLines),
  };
  if (lineEnd + 1 >= plain.length) around.below = [];
  const { above, head, tail, below } = around;
  return [...above, head, tail, ...below].join('').length > mostContextChars ? null : around;
}

/** Returns what a write changes in the file that it replaces; null for a new file. */
async function overwritten(args: FileWriteArgs, place: Place, encoding: string | null): Promise<Surroundings | null> {
  const plain = await plainText(args.path, place, encoding);
  if (plain === null) return null;
  const diff = await unifiedDiff(args.path, plain, withoutCarriageReturns(args.content));
  return diff === undefined ? null : { above: [], head: '', tail: '', below: [], diff };
}

type Place = Pick<ToolContext, 'cwd' | 'landings'>;

/** Returns the text of a file with line feeds; null where there is none. */
async function plainText(path: string, { cwd, landings }: Place, encoding: string | null): Promise<string | null> {
  try {
    const { bytes } = await beforeWrite(absolutePath(cwd, path), path, landings);
    const text = bytes === null ? null : (await decodeText(bytes, encoding)).text;
    return text === null ? null : withLineFeeds(text);
  } catch {
    return null; // the call itself will say what is wrong with the file
  }
}

async function edit(
  args: FileEditArgs,
  ctx: ToolContext,
  memory: ContentMemory,
  encoding: string | null,
): Promise<ToolOutcome> {
  const absolute = absolutePath(ctx.cwd, args.path);
  try {
    const before = await beforeWrite(absolute, args.path, ctx.landings);
    if (before.bytes === null) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
    const stale = await checkStale(before, args.path, ctx, { memory, encoding, ...onePlace(args) });
    if (stale.is === 'refused') return stale.outcome;
    const { text, form } = await decodeText(before.bytes, encoding);
    if (text === null || text.includes('\0'))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(args.path)} has an encoding that cannot be written back unchanged; it was not edited.`,
      );
    const plain = withLineFeeds(text);
    const wanted = withoutCarriageReturns(args.old_string);
    const found = occurrences(plain, wanted, { overlap: args.replace_all !== true });
    if (found.length === 0) return notFound(args, plain, wanted);
    if (found.length > 1 && args.replace_all !== true) return ambiguous(args, lineNumbers(plain, found));
    const { skipped, length, replacement } = changedLines(wanted, withoutCarriageReturns(args.new_string));
    const starts = found.map((start) => start + skipped);
    const bytes = await encodeText(replaced(text, starts, length, withEol(replacement, form.eol), form), form);
    if (bytes === null) throw unencodable(args.path, form, 'new_string');
    await writeWhole(before, bytes, args.path);
    const effects = await writeEffects(before, bytes, args.path, memory, encoding);
    return edited(args.path, found.length, effects, editFacts(encodingName(form, text), stale));
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  }
}

/** The text that an edit replaces in one place. */
function onePlace({ old_string, replace_all }: FileEditArgs): { readonly edited?: string } {
  return replace_all === true ? {} : { edited: withoutCarriageReturns(old_string) };
}

function editFacts(encoding: string | null, stale: Staleness): Readonly<Record<string, string>> {
  return {
    ...(encoding === null ? {} : { encoding }),
    ...(stale.is === 'changed_elsewhere' ? { changed_since_read: stale.diff } : {}),
  };
}

function edited(
  path: string,
  count: number,
  effects: ToolEffects,
  facts: Readonly<Record<string, string>>,
): ToolOutcome {
  const where = shownPath(path);
  const summary = `Replaced ${counted(count, 'occurrence')} in ${where}`;
  // The model's wording is a contract.
  const output = `Replaced ${count} occurrence(s) in ${where}`;
  return succeeded(summary, { output, count, ...facts }, effects);
}

/** Returns the part of an edit without the whole lines at its start and end that stay as they are: those keep their own
 * line ends. `skipped` and `length` count in `wanted`. */
function changedLines(
  wanted: string,
  replacement: string,
): { readonly skipped: number; readonly length: number; readonly replacement: string } {
  const most = Math.min(wanted.length, replacement.length);
  let start = 0;
  while (start < most && wanted[start] === replacement[start]) start++;
  const skipped = start === 0 ? 0 : wanted.lastIndexOf('\n', start - 1) + 1;
  let end = 0;
  while (end < most - skipped && wanted.at(-1 - end) === replacement.at(-1 - end)) end++;
  const isWhole = [wanted, replacement].every((text) => text.length - end === skipped || text.at(-1 - end) === '\n');
  const newline = wanted.indexOf('\n', wanted.length - end);
  const kept = isWhole ? end : newline < 0 ? 0 : wanted.length - newline - 1;
  return {
    skipped,
    length: wanted.length - skipped - kept,
    replacement: replacement.slice(skipped, replacement.length - kept),
  };
}

/** Replaces the matches. `positions` and `length` count in the text with LF line ends; text outside the matches keeps
 * its own line ends. */
function replaced(
  text: string,
  positions: readonly number[],
  length: number,
  replacement: string,
  form: TextForm,
): string {
  if (form.eol !== '\r\n' && !text.includes('\r\n'))
    return replaceSpans(
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
  return replaceSpans(
    text,
    positions.map((start) => ({ start: originalOf(start), end: originalOf(start + length) })),
    replacement,
  );
}

function replaceSpans(
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
      ? 'no similar text in the file; read it'
      : `nearest: ${candidates.map(({ line }) => `line ${line}`).join(', ')} (see details); ` +
        'copy the text exactly, white space included';
  return failed('execution_failed', `old_string does not occur in ${shownPath(args.path)}; ${hint}.`, {
    candidates: candidates.map(({ line, text }) => ({ line, text })),
  });
}

function ambiguous(args: FileEditArgs, lines: readonly number[]): ToolOutcome {
  const shown = lines.slice(0, maxShownLines);
  const rest = lines.length > shown.length ? ` and ${lines.length - shown.length} more` : '';
  return failed(
    'execution_failed',
    `old_string occurs ${lines.length} times in ${shownPath(args.path)}, on lines ${shown.join(', ')}${rest}; ` +
      'add lines around it to name one, or set replace_all.',
    { count: lines.length, lines: shown },
  );
}

/** Returns the positions of `wanted` in `text` from left to right; with `overlap`, also those inside of another one. */
function occurrences(text: string, wanted: string, { overlap }: { readonly overlap: boolean }): readonly number[] {
  const found: number[] = [];
  const step = overlap ? 1 : wanted.length;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) found.push(at);
  return found;
}

/** Returns the number of the line (from 1) for each position; positions ascend. */
function lineNumbers(text: string, positions: readonly number[]): readonly number[] {
  let line = 1;
  let from = 0;
  return positions.map((position) => {
    for (let at = text.indexOf('\n', from); at >= 0 && at < position; at = text.indexOf('\n', from)) {
      line++;
      from = at + 1;
    }
    return line;
  });
}

/** A part of the file that is similar to the text that was searched for. */
interface Candidate {
  readonly line: number;
  readonly text: string;
}

const maxLines = 20_000;
const maxWantedLines = 8;
const maxLineChars = 300;
const maxShownChars = 600;

/** Returns the three parts of `text` that are most similar to `wanted`, best first. It compares line by line and
 * ignores white space at the ends of lines. */
function nearestParts(text: string, wanted: string): readonly Candidate[] {
  const lines = text.split('\n');
  const wantedLines = wanted.replace(/^\n+|\n+$/g, '').split('\n');
  const compared = wantedLines.slice(0, maxWantedLines).map(normalized);
  const first = compared.findIndex((line) => line.length > 2);
  const scored = lines.slice(0, maxLines).map((line, index) => ({
    index: index - Math.max(0, first),
    score: similarity(normalized(line), compared[Math.max(0, first)] ?? ''),
  }));
  const promising = scored
    .filter(({ index, score }) => index >= 0 && score > 0.3)
    .sort((a, b) => b.score - a.score)
    .slice(0, 50);
  return promising
    .map(({ index }) => ({
      index,
      score:
        compared.reduce((sum, line, i) => sum + similarity(normalized(lines[index + i] ?? ''), line), 0) /
        compared.length,
    }))
    .filter(({ score }) => score > 0.4)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, 3)
    .map(({ index }) => ({
      line: index + 1,
      text: shortened(lines.slice(index, index + Math.min(wantedLines.length, maxWantedLines)).join('\n')),
    }));
}

function normalized(line: string): string {
  return line.slice(0, maxLineChars).trim().replace(/\s+/g, ' ');
}

function shortened(text: string): string {
  return text.length > maxShownChars ? `${wellFormed(text.slice(0, maxShownChars))}…` : text;
}

/** Returns how similar two texts are, from 0 to 1: Dice's coefficient over pairs of neighbouring characters. */
function similarity(a: string, b: string): number {
  if (a === b) return 1;
  if (a.length < 2 || b.length < 2) return a !== '' && b.includes(a) ? 0.5 : 0;
  const pairs = new Map<string, number>();
  for (let i = 0; i < a.length - 1; i++) pairs.set(a.slice(i, i + 2), (pairs.get(a.slice(i, i + 2)) ?? 0) + 1);
  let shared = 0;
  for (let i = 0; i < b.length - 1; i++) {
    const left = pairs.get(b.slice(i, i + 2)) ?? 0;
    if (left > 0) {
      shared++;
      pairs.set(b.slice(i, i + 2), left - 1);
    }
  }
  return (2 * shared) / (a.length + b.length - 2);
}
