import { counted } from '../../kernel/tools/define-tool.js';
import { parseJson } from '../../kernel/core/json.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { cleanNote, maxNoteChars, type Note, type Notes, type NoteSaved } from './notes.js';
import type {
  ArgumentProblem,
  CallPlace,
  Judged,
  SessionView,
  ToolContext,
  ToolOutcome,
} from '../../kernel/core/tool.js';
import { firstLine } from '../../kernel/core/text.js';
import { type DefinedTool, defineTool, failed, succeeded } from '../../kernel/tools/define-tool.js';
import { earlierEvents, type FoundEvents, type History, setLimits } from './history.js';

export interface MemoryOptions extends History {
  readonly notes: () => Promise<Notes>;
  /** Returns the id of the project that the notes of a directory belong to. */
  readonly project: (cwd: string) => string;
  /** `memory.save`: the model may save notes by itself, only with an approval, or not at all. */
  readonly save: 'ask' | 'auto' | 'off';
}

const writing = { timeout_ms: 2000, rate_per_min: 20, max_output_bytes: 2048 };
const defaultFound = 5;
const mostFound = 20;
const maxTags = 8;
const maxTagChars = 40;

/** `search_memory`, `save_note` and `forget_note`: what is worth knowing in later sessions. */
export function memoryTools(options: MemoryOptions): readonly DefinedTool[] {
  const reading = [searchTool(options)];
  return options.save === 'off' ? reading : [...reading, saveTool(options), forgetTool(options)];
}

function searchTool(options: MemoryOptions): DefinedTool {
  return defineTool({
    name: 'search_memory',
    effect: 'read',
    limits: setLimits,
    untrusted: true,
    description: 'Search past conversations and facts',
    schema: {
      type: 'object',
      properties: { query: { type: 'string' }, limit: { type: 'integer' } },
      required: ['query'],
      additionalProperties: false,
    },
    check: ({ limit = defaultFound }) =>
      limit < 1 || limit > mostFound ? problemWith('limit', 'out of range', `from 1 to ${mostFound}`) : null,
    judge: () => ({ risk: 'read-only', reasons: [] }),
    async run({ query, limit = defaultFound }, ctx) {
      const notes = await (await options.notes()).search(query, limit, options.project(ctx.cwd));
      const events = await pastEvents(options, ctx, query, limit - notes.length);
      const lines = [...notes.map((note) => noteLine(note, options.redact)), ...events.lines];
      const isFromOutside = events.isFromOutside || notes.some(({ approved }) => !approved);
      return succeeded(`${counted(notes.length, 'note')} and ${counted(events.lines.length, 'event')} found`, {
        output: lines.length === 0 ? 'Nothing was found.' : lines.join('\n'),
        count: lines.length,
        ...(isFromOutside ? { untrusted: true } : {}),
      });
    },
  });
}

/** Finds events with all words of the query; where there are none, those with all of its longer words, then with any of
 * these. */
async function pastEvents(history: History, ctx: ToolContext, query: string, limit: number): Promise<FoundEvents> {
  const none: FoundEvents = { lines: [], isFromOutside: false };
  if (limit < 1) return none;
  const longer = query.split(/\s+/).filter((word) => word.replace(/[^\p{L}\p{N}]/gu, '').length > 3);
  const tries = [[query], [longer.join(' ')], longer.toSorted((a, b) => b.length - a.length).slice(0, 3)];
  for (const queries of tries) {
    const found = await Promise.all(
      queries
        .filter((text) => text !== '')
        .map((text) => earlierEvents(history, ctx.session, { query: text, limit, cwd: ctx.cwd })),
    );
    const lines = [...new Set(found.flatMap((each) => each.lines))].slice(0, limit);
    if (lines.length > 0) return { lines, isFromOutside: found.some((each) => each.isFromOutside) };
  }
  return none;
}

function noteLine({ id, content, tags, approved }: Note, redact: (text: string) => string): string {
  const marks = `${tags.map((tag) => ` #${tag}`).join('')}${approved ? '' : ' (not approved)'}`;
  return `note ${id}: ${redact(content)}${marks}`;
}

function saveTool(options: MemoryOptions): DefinedTool {
  return defineTool({
    name: 'save_note',
    effect: 'write',
    limits: writing,
    description: 'Save important information to memory',
    guidance: { line: 'save_note saves a fact for later sessions of this project; with scope "global", of all.' },
    schema: {
      type: 'object',
      properties: {
        content: { type: 'string' },
        tags: { type: 'array', items: { type: 'string' } },
        scope: { type: 'string' },
        replaces: { type: 'integer' },
      },
      required: ['content'],
      additionalProperties: false,
    },
    check: checkNote,
    judge: (_args, place) => judgeWriting(options, place),
    async run({ content, tags = [], scope = 'project', replaces }, ctx) {
      const notes = await options.notes();
      const project = options.project(ctx.cwd);
      if (replaces !== undefined && !(await isOurs(notes, replaces, project))) return noSuchNote(replaces);
      const isFromOutside = readUntrusted(ctx.session);
      const done = await notes.save({
        project: scope === 'global' ? null : project,
        content: cleanNote(content),
        tags: tags.map((tag) => cleanNote(tag).replace(/\s+/g, ' ')).filter((tag) => tag !== ''),
        trust: isFromOutside ? 'tool' : 'model',
        approved: !isFromOutside,
        ...lastEvent(ctx.session),
        ...(replaces === undefined ? {} : { replaces }),
      });
      return savedOutcome(done, replaces, notes.passing);
    },
  });
}

/** The schema leaves limits out: every request would carry them. */
function checkNote(args: {
  readonly content: string;
  readonly tags?: readonly string[];
  readonly scope?: string;
}): ArgumentProblem | null {
  const { content, tags = [], scope = 'project' } = args;
  const length = cleanNote(content).length;
  if (length === 0) return problemWith('content', 'empty', 'a fact');
  if (length > maxNoteChars)
    return problemWith('content', `${length} characters`, `at most ${maxNoteChars} characters; the rest in a file`);
  if (tags.length > maxTags) return problemWith('tags', `${tags.length} tags`, `at most ${maxTags}`);
  if (tags.some((tag) => tag.length > maxTagChars))
    return problemWith('tags', 'a long tag', `at most ${maxTagChars} characters each`);
  return ['project', 'global'].includes(scope) ? null : problemWith('scope', scope, 'project or global');
}

function problemWith(argument: string, problem: string, expected: string): ArgumentProblem {
  return { argument, problem, expected };
}

/** The session that saves a note; a call of no session has none. */
function lastEvent(session: SessionView): { readonly sessionId?: string; readonly seq?: number } {
  const last = session.recent().at(-1);
  return last === undefined ? {} : { sessionId: session.id, seq: last.seq };
}

function savedOutcome(done: NoteSaved, replaces: number | undefined, passing: boolean): ToolOutcome {
  if (done.saved) {
    const { id, content, trust } = done.note;
    const waits = trust === 'tool' ? ' It waits for approval (/memory approve): this turn read untrusted text.' : '';
    const ends = passing ? ' It is lost after this run. Save it in a file, or report it to the user.' : '';
    const until = passing ? ' until this run ends' : '';
    return succeeded(`note ${id} saved${until}: ${firstLine(content, 80)}`, {
      output: `Saved as note ${id}.${waits}${ends}`,
      id,
    });
  }
  switch (done.why) {
    case 'secret':
      return failed('invalid_args', 'A note must not contain a secret.', { argument: 'content' });
    case 'full':
      return failed('limit_reached', 'There are 500 notes, the maximum. Delete some, or replace one.');
    case 'unknown':
      return noSuchNote(replaces ?? 0);
    default:
      return done.why satisfies never;
  }
}

function noSuchNote(id: number): ToolOutcome {
  return failed('not_found', `There is no note ${id} of this project; search_memory shows the ids.`);
}

function forgetTool(options: MemoryOptions): DefinedTool {
  return defineTool({
    name: 'forget_note',
    effect: 'write',
    limits: writing,
    description: 'Archive a note',
    schema: {
      type: 'object',
      properties: { id: { type: 'integer' } },
      required: ['id'],
      additionalProperties: false,
    },
    judge: (_args, place) => judgeWriting(options, place),
    async run({ id }, ctx) {
      const notes = await options.notes();
      if (!(await isOurs(notes, id, options.project(ctx.cwd)))) return noSuchNote(id);
      await notes.change(id, { archived: true });
      return succeeded(`note ${id} forgotten`, { output: `Note ${id} is archived.` });
    },
  });
}

/** True for a note of this project or of all, that is not archived. */
async function isOurs(notes: Notes, id: number, project: string): Promise<boolean> {
  const note = await notes.note(id);
  return note !== null && !note.archived && (note.project === null || note.project === project);
}

function judgeWriting({ save }: MemoryOptions, { session }: CallPlace): Judged {
  if (readUntrusted(session))
    return {
      risk: 'mutating',
      everyMode: true,
      reasons: ['this turn read untrusted text, which may have asked for it', 'it changes saved notes'],
    };
  return save === 'ask'
    ? { risk: 'mutating', everyMode: true, reasons: ['it changes saved notes (memory.save is ask)'] }
    : { risk: 'mutating', reasons: ['it changes saved notes'] };
}

/** True where the present turn has read text that was marked untrusted. A message that came during a turn does not
 * begin another, and the turn before one that was interrupted counts, too. */
function readUntrusted(session: SessionView): boolean {
  let isEarlier = false;
  for (const event of session.recent().toReversed()) {
    const known = knownEvent(event);
    if (known?.kind === 'tool_result') {
      if (isUntrusted(known)) return true;
      isEarlier = false;
    } else if (known?.kind === 'assistant' && isEarlier) return false;
    else if (known?.kind === 'user') isEarlier = true;
  }
  return false;
}

function isUntrusted({ data }: Pick<Event, 'data'>): boolean {
  if (!isRecord(data) || typeof data['output'] !== 'string' || !data['output'].includes('untrusted')) return false;
  try {
    const envelope: unknown = parseJson(data['output']);
    return isRecord(envelope) && envelope['untrusted'] === true;
  } catch {
    return false;
  }
}
