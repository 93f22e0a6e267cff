import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Event, EventDraft } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { isSessionId, type SessionRow, type Store, ulid } from '../../kernel/core/store.js';
import { didYouMean } from '../../kernel/core/text.js';
import { type FoundConversation, type HistoryReader, sha256Of } from './neutral-turns.js';
import { type ImportFacts, toEvents } from './to-events.js';
import { programs } from './program-tables.js';
import { StoreError } from '../../kernel/store/errors.js';
import {
  CliError,
  type CommandLine,
  exit,
  type SecretGuards,
  type OpenedTools,
  type CommandHandler,
} from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { columns, localTime, oneLine, printJson } from '../../kernel/console/line-output.js';
import { type ExportedSession, readJsonl } from '../../kernel/console/stored-session.js';
import { readerOf } from './offered-histories.js';

interface ImportOptions {
  readonly asNew?: boolean;
  readonly from?: string;
  readonly all?: boolean;
  readonly here?: boolean;
  readonly dryRun?: boolean;
  readonly update?: boolean;
  readonly json?: boolean;
}

/** Takes over a session that was exported, or conversations of other programs. */
export const importSession: CommandHandler = {
  line: {
    example: 'agent sessions import --from claude-code --here',
    options: (command) =>
      command
        .option('--from <program>', `conversations of ${Object.keys(programs).join(', ')} or all`)
        .option('--all', 'with --from: all of them')
        .option('--here', 'with --from: those of this directory')
        .option('--dry-run', 'with --from: read them and store nothing')
        .option('--update', 'with --from: those with new messages, as forks')
        .option('--json', 'with --from: one JSON array')
        .option('--as-new', 'a file of ours under a new id'),
    run: async (line, [file], options: ImportOptions) => {
      if (options.from !== undefined) return await importHistories(line, file ?? null, options, options.from);
      if (file === undefined)
        throw new CliError(
          exit.usage,
          'there is nothing to import',
          'Give a file that agent sessions export wrote, or a program: --from claude-code.',
        );
      return await importFile(line, file, options);
    },
  },
};

/** The outcome for a conversation. `found`: it can be imported. `changed`: it has new messages since its import. */
type Status = 'imported' | 'found' | 'exists' | 'changed' | 'empty' | 'failed';

export interface Outcome {
  readonly program: string;
  readonly file: string;
  readonly id: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly startedAt: number;
  /** Our id. */
  readonly session: string;
  readonly status: Status;
  readonly counts: Counts;
  readonly problem: string | null;
}

/** Of what was read. */
interface Counts {
  prompts: number;
  answers: number;
  calls: number;
  dropped: Readonly<Record<string, number>>;
}

const noCounts: Counts = { prompts: 0, answers: 0, calls: 0, dropped: {} };

interface Importer {
  readonly store: Store;
  readonly settings: Settings;
  readonly guards: SecretGuards;
  readonly options: Pick<ImportOptions, 'dryRun' | 'update'>;
  /** The first events of a new session in a directory. */
  readonly opening: (cwd: string) => Promise<readonly EventDraft[]>;
}

/** A conversation that can be imported. */
export interface ImportCandidate {
  readonly program: string;
  readonly reader: HistoryReader;
  readonly found: FoundConversation;
}

async function importHistories(
  line: CommandLine,
  file: string | null,
  options: ImportOptions,
  from: string,
): Promise<number> {
  const { out } = line;
  const settings = await line.settings();
  const candidates = await candidatesOf(settings, await readersOf(from), file, options);
  if (file === null && !options.all && !options.here && !options.dryRun) {
    listCandidates(line, candidates, from, options);
    return exit.done;
  }
  const outcomes = await importConversations(line, candidates, options);
  if (options.json) printJson(out, outcomes.map(asJson), 2);
  else report(line, outcomes, from);
  return outcomes.some(({ status }) => status === 'failed') ? exit.failed : exit.done;
}

const progressMs = 1000;

/** Stores conversations, or with `dryRun` only reads them. Returns an outcome for each, in their order. */
export async function importConversations(
  line: CommandLine,
  candidates: readonly ImportCandidate[],
  options: Pick<ImportOptions, 'dryRun' | 'update'>,
): Promise<readonly Outcome[]> {
  const { out } = line;
  const settings = await line.settings();
  return await line.withStore(async ({ store }) => {
    const toolbox = await line.tools.open(undefined, false);
    try {
      const importer = { store, settings, guards: line.guards, options, opening: openings(line, toolbox) };
      const done: Outcome[] = [];
      let saidAt = Date.now();
      for (const candidate of candidates) {
        done.push(await importOne(importer, candidate));
        if (!out.canAsk || Date.now() - saidAt < progressMs) continue;
        saidAt = Date.now();
        out.error(`${done.length} of ${candidates.length} conversations\n`);
      }
      return done;
    } finally {
      await toolbox.close();
    }
  });
}

async function readersOf(from: string): Promise<ReadonlyMap<string, HistoryReader>> {
  const known = Object.keys(programs);
  const names = from === 'all' ? known : from.split(',');
  const readers = new Map<string, HistoryReader>();
  for (const name of names) {
    const reader = await readerOf(name);
    if (!reader)
      throw new CliError(
        exit.usage,
        `--from: the history format of \`${oneLine(name)}\` is unknown`,
        `${didYouMean(name, known)} Known: ${known.join(', ')}, all`.trim(),
      );
    readers.set(name, reader);
  }
  return readers;
}

/** Oldest first. Throws a `CliError` for a file that holds none. */
async function candidatesOf(
  settings: Settings,
  readers: ReadonlyMap<string, HistoryReader>,
  file: string | null,
  options: ImportOptions,
): Promise<readonly ImportCandidate[]> {
  const { cwd } = settings;
  const path = file === null ? null : resolve(cwd, file);
  const all = [...readers].flatMap(([program, reader]) => {
    const sources = [...reader.sources(settings)];
    const named = sources.filter((source) => source.file === path);
    const wanted =
      path === null ? sources : named.length > 0 ? named : [...(reader.within?.(path) ?? [{ file: path }])];
    return wanted.flatMap((source) => {
      const found = reader.head(source, settings);
      return found === null ? [] : [{ program, reader, found }];
    });
  });
  if (path !== null && all.length === 0)
    throw new CliError(
      exit.usage,
      `${oneLine(file ?? '')} is not a conversation of ${[...readers.values()].map(({ title }) => title).join(', ')}`,
      'agent sessions import --from all lists what it finds.',
    );
  return all
    .filter(({ found }) => options.here !== true || found.cwd === cwd)
    .sort((one, other) => one.found.startedAt - other.found.startedAt);
}

const listed = 20;

/** Shows what could be taken over. */
function listCandidates(
  { out }: CommandLine,
  candidates: readonly ImportCandidate[],
  from: string,
  { json }: ImportOptions,
): void {
  if (json) {
    printJson(
      out,
      candidates.map(({ program, found }) => ({
        program,
        file: found.file,
        id: found.id,
        cwd: found.cwd,
        title: found.title ?? found.prompt,
        started_at: found.startedAt,
        updated_at: found.updatedAt,
        bytes: found.bytes,
      })),
      2,
    );
    return;
  }
  const newest = candidates.toReversed().slice(0, listed);
  const rows = newest.map(({ program, found }) => [
    program,
    localTime(found.updatedAt),
    oneLine(found.cwd),
    oneLine(found.title ?? found.prompt ?? '', 60),
  ]);
  const more = candidates.length - newest.length;
  const lines = [...columns(rows), ...(more > 0 ? [`… and ${more} more`] : [])];
  out.print(`${candidates.length === 0 ? 'There are no conversations.' : lines.join('\n')}\n`);
  if (candidates.length > 0)
    out.error(
      `${candidates.length} found, none imported. --from ${from} --all imports all of them, --here those ` +
        'of this directory; or give a file.\n',
    );
}

function openings({ tools }: CommandLine, { registry }: OpenedTools): Importer['opening'] {
  const known = new Map<string, Promise<readonly EventDraft[]>>();
  return async (cwd) => {
    const opening = known.get(cwd) ?? tools.opening(registry, cwd);
    known.set(cwd, opening);
    return await opening;
  };
}

async function importOne(importer: Importer, candidate: ImportCandidate): Promise<Outcome> {
  const { program, found } = candidate;
  const counts: Counts = { ...noCounts };
  const session = idOf(program, found, '');
  const { file, id, cwd, startedAt } = found;
  const about = { program, file, id, cwd, title: found.title ?? found.prompt, startedAt, session, counts };
  try {
    return { ...about, ...(await brought(importer, candidate, session, counts)), problem: null };
  } catch (error) {
    const exists = error instanceof StoreError && error.code === 'exists';
    const problem = error instanceof Error ? error.message : String(error);
    return exists ? { ...about, status: 'exists', problem: null } : { ...about, status: 'failed', problem };
  }
}

/** Takes a conversation over, unless that was done before. */
async function brought(
  importer: Importer,
  { program, reader, found }: ImportCandidate,
  session: string,
  counts: Counts,
): Promise<Pick<Outcome, 'status' | 'session'>> {
  const sha256 = sha256Of(reader, found);
  const facts = { tool: program, title: reader.title, found, sha256 };
  if ((await importer.store.session(session)) === null)
    return { session, status: await adopt(importer, reader, facts, { id: session, parentId: null }, counts) };
  if ((await hashOf(importer.store, session)) === sha256) return { session, status: 'exists' };
  if (importer.options.update !== true) return { session, status: 'changed' };
  const fork = idOf(program, found, sha256);
  if ((await importer.store.session(fork)) !== null) return { session: fork, status: 'exists' };
  return { session: fork, status: await adopt(importer, reader, facts, { id: fork, parentId: session }, counts) };
}

/** Returns our id: the same for the same conversation. */
export function idOf(program: string, { id, startedAt }: FoundConversation, sha256: string): string {
  return ulid(startedAt, createHash('sha256').update([program, id, sha256].join('\0')).digest());
}

/** Returns the hash of the file that a session was read from. */
async function hashOf(store: Store, session: string): Promise<string | null> {
  const isImport = ({ kind }: Event): boolean => kind === 'import';
  const event = (await store.tail(session, 2)).find(isImport) ?? (await store.load(session)).findLast(isImport);
  return isRecord(event?.data) && typeof event.data['file_sha256'] === 'string' ? event.data['file_sha256'] : null;
}

/** Stores a conversation as a session, all of it or nothing. */
async function adopt(
  { store, settings, guards, options, opening }: Importer,
  reader: HistoryReader,
  facts: Omit<ImportFacts, 'opening' | 'maxOutputBytes'>,
  ids: Pick<SessionRow, 'id' | 'parentId'>,
  counts: Counts,
): Promise<Status> {
  const { found } = facts;
  const first = await opening(found.cwd);
  const guard = await guards.session([]);
  const maxOutputBytes = settings.config.limits.maxOutputBytes;
  let problem: unknown = null;
  // The store may ask for the events again.
  const events = function* (): Generator<Event> {
    Object.assign(counts, noCounts);
    let number = 0;
    try {
      for (const event of toEvents(reader.turns(found), { ...facts, opening: first, maxOutputBytes })) {
        number++;
        count(counts, event);
        yield guard.event(event);
      }
      if (number === 0) throw empty;
    } catch (error) {
      problem = error;
      throw error;
    }
  };
  const { cwd, title, model, startedAt: createdAt, updatedAt } = found;
  // Without a provider the session continues with the configured model.
  const row: SessionRow = { ...ids, cwd, title, provider: null, model, createdAt, updatedAt };
  try {
    if (options.dryRun) for (const event of events()) void event;
    else await store.adopt(row, { [Symbol.iterator]: events });
  } catch (error) {
    if (problem === empty) return 'empty';
    throw problem ?? error;
  }
  return options.dryRun ? 'found' : 'imported';
}

/** Nothing was said, so nothing is stored. */
const empty = new Error('no messages');

function count(counts: Counts, { kind, data }: Event): void {
  if (kind === 'user' && data === null) counts.prompts++;
  else if (kind === 'assistant') counts.answers++;
  else if (kind === 'tool_call') counts.calls++;
  else if (kind === 'import' && isRecord(data)) counts.dropped = data['dropped'] as Counts['dropped'];
}

function asJson(outcome: Outcome): object {
  const { startedAt, counts, problem, ...others } = outcome;
  return { ...others, started_at: startedAt, ...counts, ...(problem === null ? {} : { problem }) };
}

const statuses: readonly Status[] = ['imported', 'found', 'exists', 'changed', 'empty', 'failed'];

/** Prints a row for each program, and what failed. */
function report({ out }: CommandLine, outcomes: readonly Outcome[], from: string): void {
  for (const { file, problem } of outcomes) if (problem !== null) out.error(`agent: ${oneLine(file)}: ${problem}\n`);
  const used = statuses.filter((status) => outcomes.some((outcome) => outcome.status === status));
  const rows = [...new Set(outcomes.map(({ program }) => program))].map((program) => {
    const own = outcomes.filter((outcome) => outcome.program === program);
    const sum = (of: (counts: Counts) => number): number => own.reduce((total, { counts }) => total + of(counts), 0);
    return [
      program,
      ...used.map((status) => String(own.filter((outcome) => outcome.status === status).length)),
      String(sum(({ prompts }) => prompts)),
      String(sum(({ answers }) => answers)),
      String(sum(({ calls }) => calls)),
      leftOut(own.map(({ counts }) => counts.dropped)),
    ];
  });
  const head = ['', ...used, 'prompts', 'answers', 'calls', 'left out'];
  out.print(rows.length === 0 ? 'There are no conversations.\n' : `${columns([head, ...rows]).join('\n')}\n`);
  if (outcomes.some(({ status }) => status === 'changed'))
    out.error(
      `Some have new messages since they were imported: agent sessions import --from ${from} --update imports them as forks.\n`,
    );
}

function leftOut(dropped: readonly Counts['dropped'][]): string {
  const sums = new Map<string, number>();
  for (const one of dropped)
    for (const [what, times] of Object.entries(one)) sums.set(what, (sums.get(what) ?? 0) + times);
  return [...sums].map(([what, times]) => `${times} ${what.replaceAll('_', ' ')}`).join(', ');
}

/** Imports a whole session from JSON Lines or nothing. The session keeps its id unless `--as-new` is given. */
async function importFile(
  { out, guards, withStore }: CommandLine,
  file: string,
  options: { readonly asNew?: boolean },
): Promise<number> {
  return await withStore(async ({ store, settings }) => {
    const read = readSession(resolve(settings.cwd, file), file);
    if (!options.asNew && !isSessionId(read.row.id)) {
      throw new CliError(
        exit.usage,
        `${file}: \`${oneLine(read.row.id)}\` is not a session id (a ULID or a UUID version 7)`,
        '--as-new imports it under a new id.',
      );
    }
    const row = options.asNew ? { ...read.row, id: ulid(Date.now(), randomBytes(16)) } : read.row;
    try {
      const guard = await guards.session(read.events);
      await store.adopt(
        row,
        read.events.map((event) => guard.event(event)),
        read.blobs,
      );
    } catch (error) {
      if (error instanceof StoreError && error.code === 'exists')
        throw new CliError(
          exit.session,
          `session ${row.id} is already in the store`,
          '--as-new imports it under a new id.',
        );
      throw error;
    }
    out.print(`${row.id}\n`);
    if (row.provider !== null && row.provider !== 'offline')
      out.error(`agent: ${untrusted(row.provider, read.writtenAddress)}\n`);
    return exit.done;
  });
}

/** A file may name any server: the texts of a session go only where the user's own settings or command line say. */
function untrusted(provider: string, address: string | undefined): string {
  const named =
    address === undefined
      ? 'An imported session has no address'
      : `The address in the file, ${oneLine(address)}, is not trusted`;
  return `${named}: the session continues at the configured address of \`${oneLine(provider)}\`, or at --base-url.`;
}

function readSession(path: string, shown: string): ExportedSession {
  try {
    return readJsonl(path === '/dev/stdin' ? readFileSync(0, 'utf8') : readFileSync(path, 'utf8'));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      exit.usage,
      `${shown}: ${reason}`,
      'agent sessions export <session> --format jsonl writes what can be imported.',
    );
  }
}
