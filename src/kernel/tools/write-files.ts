import { type RequestedEdit, requestedEdits } from '../core/edit-arguments.js';
import type { Json } from '../core/json.js';
import { withoutEnd } from '../core/text.js';
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
import { applyEdits, type EditProblem, lineNumbers, nearestParts, occurrences } from './files/text-edits.js';
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
    edits: {
      type: 'array',
      minItems: 1,
      maxItems: 50,
      items: {
        type: 'object',
        properties: {
          old_string: { type: 'string' },
          new_string: { type: 'string' },
          replace_all: { type: 'boolean' },
        },
        required: ['old_string', 'new_string'],
        additionalProperties: false,
      },
    },
  },
  required: ['path'],
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
    description:
      'Replace exact text in a file. old_string must occur once unless replace_all. edits: several at once, in order.',
    schema: editSchema,
    check: (args) => argumentProblem(args) ?? editsProblem(args) ?? pathProblem('path', args.path),
    linesOf: (args, place) => editedLines(args, place, encoding),
    surroundingsOf: (args, place) => aroundEdit(args, place, encoding),
    run: (args, ctx) => edit(args, ctx, memory, encoding),
  });
}

/** Finds what keeps a call from being either one edit or a list of them. */
function argumentProblem({ edits, old_string, new_string, replace_all }: FileEditArgs): ArgumentProblem | null {
  const single = { old_string, new_string, replace_all };
  if (edits !== undefined) {
    const beside = Object.entries(single).find(([, value]) => value !== undefined);
    return beside === undefined
      ? null
      : { argument: beside[0], problem: 'given beside edits', expected: 'either edits or the single arguments' };
  }
  if (old_string === undefined && new_string === undefined)
    return { argument: 'old_string', problem: 'missing', expected: 'old_string and new_string, or edits' };
  const missing = old_string === undefined ? 'old_string' : new_string === undefined ? 'new_string' : null;
  return missing === null ? null : { argument: missing, problem: 'missing', expected: 'string' };
}

/** Finds the first edit that cannot be meant, and names it by its number. */
function editsProblem(args: FileEditArgs): ArgumentProblem | null {
  for (const [index, edit] of editsOf(args).entries()) {
    const found = editProblem(edit);
    if (found === null) continue;
    if (args.edits === undefined) return found;
    const argument = `edits/${index}/${found.argument}`;
    return { ...found, argument, problem: `edit ${index + 1} of ${args.edits.length}: ${found.problem}` };
  }
  return null;
}

function editProblem({ old_string, new_string }: RequestedEdit): ArgumentProblem | null {
  if (old_string === '') return { argument: 'old_string', problem: 'too short', expected: 'at least 1 character' };
  if (withoutCarriageReturns(old_string) === withoutCarriageReturns(new_string))
    return { argument: 'new_string', problem: 'the same as old_string', expected: 'a different text' };
  return halfCharacter('old_string', old_string) ?? halfCharacter('new_string', new_string);
}

function editsOf(args: FileEditArgs): readonly RequestedEdit[] {
  return requestedEdits(args) ?? [];
}

/** Returns the edit of a call with the single arguments; null for a list of edits. */
function singleEdit(args: FileEditArgs): RequestedEdit | null {
  return args.edits === undefined ? (editsOf(args)[0] ?? null) : null;
}

/** Numbers the lines at which an edit begins; none where it would be refused. */
async function editedLines(
  args: FileEditArgs,
  { cwd, landings }: Pick<ToolContext, 'cwd' | 'landings'>,
  encoding: string | null,
): Promise<readonly number[]> {
  const single = singleEdit(args);
  if (single === null) return []; // the diff of several edits has the numbers of their lines
  try {
    const { bytes } = await beforeWrite(absolutePath(cwd, args.path), args.path, landings);
    const plain = withLineFeeds((bytes === null ? null : (await decodeText(bytes, encoding)).text) ?? '');
    const isAll = single.replace_all === true;
    const found = occurrences(plain, withoutCarriageReturns(single.old_string), { overlap: !isAll });
    return found.length > 1 && !isAll ? [] : lineNumbers(plain, found);
  } catch {
    return []; // the call itself will say what is wrong with the file
  }
}

const contextLines = 3;
/** Around a change in longer lines nothing is shown. */
const mostContextChars = 2_000;

/** Returns the lines around the place of an edit; null where it would be refused, and where it has several places. Of a
 * list of edits: the diff of all of them. */
async function aroundEdit(args: FileEditArgs, place: Place, encoding: string | null): Promise<Surroundings | null> {
  const plain = await plainText(args.path, place, encoding);
  if (plain === null) return null;
  const single = singleEdit(args);
  return single === null ? await changedByEdits(args, plain) : aroundText(plain, single.old_string);
}

async function changedByEdits(args: FileEditArgs, plain: string): Promise<Surroundings | null> {
  const applied = applyEdits(plain, editsOf(args), plainForm);
  const diff = applied.ok ? await unifiedDiff(args.path, plain, applied.text) : undefined;
  return diff === undefined ? null : { above: [], head: '', tail: '', below: [], diff };
}

function aroundText(plain: string, oldString: string): Surroundings | null {
  const wanted = withoutCarriageReturns(oldString);
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
    const stale = await checkStale(before, args.path, ctx, { memory, encoding, ...onePlaces(args) });
    if (stale.is === 'refused') return stale.outcome;
    const { text, form } = await decodeText(before.bytes, encoding);
    if (text === null || text.includes('\0'))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(args.path)} has an encoding that cannot be written back unchanged; it was not edited.`,
      );
    const edits = editsOf(args);
    const applied = applyEdits(text, edits, form);
    if (!applied.ok) return refusedEdit(args, applied.problem);
    const bytes = await encodeText(applied.text, form);
    if (bytes === null) throw unencodable(args.path, form, await unencodedArgument(args, form));
    await writeWhole(before, bytes, args.path);
    const effects = await writeEffects(before, bytes, args.path, memory, encoding);
    return edited(args.path, applied.count, effects, editFacts(encodingName(form, text), stale));
  } catch (error) {
    return fileFailure(error, args.path, absolute);
  }
}

/** Returns the texts that the edits replace, each in one place; nothing where one replaces all. */
function onePlaces(args: FileEditArgs): { readonly edited?: readonly string[] } {
  const edits = editsOf(args);
  if (edits.some(({ replace_all }) => replace_all === true)) return {};
  return { edited: edits.map(({ old_string }) => withoutCarriageReturns(old_string)) };
}

/** Names the argument whose text the encoding of the file does not have. */
async function unencodedArgument(args: FileEditArgs, form: TextForm): Promise<string> {
  if (args.edits === undefined) return 'new_string';
  for (const [index, { new_string }] of args.edits.entries())
    if ((await encodeText(new_string, form)) === null) return `new_string of edit ${index + 1}`;
  return 'edits';
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

/** Returns the failure of the first edit that cannot be made; with a list of edits, it names that one. */
function refusedEdit(args: FileEditArgs, problem: EditProblem): ToolOutcome {
  const where = shownPath(args.path);
  const { index } = problem;
  const total = args.edits?.length;
  const { said, details } = problem.kind === 'missing' ? notFound(problem, where) : ambiguous(problem.lines, where);
  if (total === undefined) return failed('execution_failed', said, details);
  const message = `Edit ${index + 1} of ${total}: ${said} Nothing was written: all edits are made, or none.`;
  return failed('execution_failed', message, { edit: index + 1, ...details });
}

interface Refused {
  readonly said: string;
  readonly details: Readonly<Record<string, Json>>;
}

function notFound({ plain, wanted, wasThere }: Extract<EditProblem, { kind: 'missing' }>, where: string): Refused {
  if (wasThere)
    return { said: `old_string does not occur in ${where} after the edits before it, which changed it.`, details: {} };
  const candidates = nearestParts(plain, wanted);
  const hint =
    candidates.length === 0
      ? 'no similar text in the file; read it'
      : `nearest: ${candidates.map(({ line }) => `line ${line}`).join(', ')} (see details); ` +
        'copy the text exactly, white space included';
  const said = `old_string does not occur in ${where}; ${hint}.`;
  return { said, details: { candidates: candidates.map(({ line, text }) => ({ line, text })) } };
}

function ambiguous(lines: readonly number[], where: string): Refused {
  const shown = lines.slice(0, maxShownLines);
  const rest = lines.length > shown.length ? ` and ${lines.length - shown.length} more` : '';
  const said =
    `old_string occurs ${lines.length} times in ${where}, on lines ${shown.join(', ')}${rest}; ` +
    'add lines around it to name one, or set replace_all.';
  return { said, details: { count: lines.length, lines: shown } };
}
