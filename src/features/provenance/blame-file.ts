import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import type { Store } from '../../kernel/core/store.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import type { Tables } from '../../kernel/store/tables.js';
import type { BlamedLine } from './blamed-line.js';
import { ChangeLog, type FileVersion, type NamedUntil, plainText, type TracedFile } from './change-log.js';
import { changedFileTables } from './changed-file-rows.js';
import { type CommitOfLine, gitLines, type Repository, repositoryOf, resolvedPath } from './git-lines.js';
import { importedWrites, type KnownWrite, withWriters } from './imported-lines.js';
import { type Author, isCommand } from './line-history.js';
import type { CallRecord } from './session-record.js';

export interface BlamedFile {
  readonly path: string;
  readonly lines: readonly BlamedLine[];
  readonly repository: Repository | null;
}

/** Looks up who wrote the lines of files. */
export class Blame {
  readonly log: ChangeLog;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #firstChanges = new Map<string, number | null>();

  constructor(log: ChangeLog, env: Readonly<Record<string, string | undefined>>) {
    this.log = log;
    this.#env = env;
  }

  /** Returns the lines of a file as it is; the reason in a few words if it cannot be read. Null: neither the log nor git
   * has the file. */
  async file(named: string): Promise<BlamedFile | string | null> {
    const path = resolvedPath(named);
    const read = readBounded(path, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
    if (read.kind === 'missing') return 'it does not exist';
    if (read.kind === 'refused') return read.reason;
    const bytes = await plainText(read.bytes);
    if (bytes === null) return 'it is not a text file';
    const sha256 = sha256Of(read.bytes);
    const repository = await repositoryOf(path, this.#env);
    return await this.version({ path, sha256, bytes, at: Date.now() }, repository);
  }

  /** Returns the lines of given contents of a file. */
  async version(version: FileVersion, repository: Repository | null): Promise<BlamedFile | null> {
    const history = await this.log.trace(version, (name, contents, until) =>
      this.#earlierName({ path: name, contents, until }, repository),
    );
    const base = await baseCommits(history, repository);
    if (base === null && history.records.length === 0) return null;
    const texts = version.bytes.toString('utf8').split('\n');
    const lines = history.authors.map((author, index) =>
      blamedLine(index + 1, texts[index] ?? '', author, { base, changedBy: history.base?.changedBy ?? null }),
    );
    const writes = lines.every(({ call }) => call !== null)
      ? []
      : await this.#otherWrites(version, history, { lines, repository });
    return { path: version.path, lines: withWriters(lines, writes), repository };
  }

  /** Finds calls that may have written lines, though the log of the file does not show it: those of other programs, and
   * those that changed the file in another checkout, perhaps of another machine. */
  async #otherWrites(
    version: FileVersion,
    history: TracedFile,
    { lines, repository }: Pick<BlamedFile, 'lines' | 'repository'>,
  ): Promise<readonly KnownWrite[]> {
    const imported = await importedWrites(this.log, { at: version.at, names: history.names });
    const contents = await earlierContents(version, history, { lines, repository });
    const changes = await this.log.changesElsewhere(version, history.names, contents);
    const elsewhere: KnownWrite[] = [];
    for (const change of changes) {
      const { call } = change;
      if (!call) continue;
      const texts = new Set((await this.log.linesAddedBy(change)).map(({ text }) => text));
      elsewhere.push({ call, kind: isCommand(call) ? 'command' : 'edit', texts });
    }
    return [...imported, ...elsewhere];
  }

  /** Finds an earlier name that git knows, else that of a file which has gone and was alike, where the present name is
   * in no commit. */
  async #earlierName(
    { path, contents, until }: { readonly path: string; readonly contents: Buffer; readonly until: number },
    repository: Repository | null,
  ): Promise<NamedUntil | null> {
    const name = repository?.inside(path) ?? null;
    if (repository === null || name === null) return await this.log.renamedFrom(contents, dirname(path), until);
    const since = await this.#firstChange(repository);
    if (since === null) return null;
    const found = await repository.earlierName(name, since, until);
    if (found) return { path: `${repository.top}/${found.name}`, until: found.until };
    return (await repository.has('HEAD', name)) ? null : await this.log.renamedFrom(contents, repository.top, until);
  }

  async #firstChange({ top }: Repository): Promise<number | null> {
    const known = this.#firstChanges.get(top);
    if (known !== undefined) return known;
    const first = await this.log.firstChangeBelow(top);
    this.#firstChanges.set(top, first);
    return first;
  }
}

/** Returns the commits of the lines that are older than the log, by their index in the file as it was then. Null: git
 * does not have the file. */
async function baseCommits(
  { base, authors, records, names: paths }: TracedFile,
  repository: Repository | null,
): Promise<readonly (CommitOfLine | null)[] | null> {
  if (!repository || (authors.length > 0 && authors.every(({ kind }) => kind !== 'base'))) return null;
  const names = paths.flatMap((one) => repository.inside(one) ?? []);
  const lines = base ? gitLines(base.bytes) : [];
  const then = records.length > 0 && base ? await repository.commitAt(base.at) : null;
  const early = then === null ? null : await repository.blame(then, names, lines);
  if (early?.every((commit) => commit !== null)) return early;
  // A line may have been committed after the log began, and history may have been rewritten.
  const late = await repository.blame('HEAD', names.toReversed(), lines);
  return early?.map((commit, index) => commit ?? late?.[index] ?? null) ?? late;
}

/** At most this number of contents of a file are looked up in the log: those of commits, and recorded ones. */
const mostCommits = 10;
const mostStates = 20;

/** Returns the SHA-256 of contents that a file had, the latest ones: recorded ones, and those in the commits of lines
 * that no call is known to have written. */
async function earlierContents(
  { sha256 }: FileVersion,
  { records }: TracedFile,
  { lines, repository }: Pick<BlamedFile, 'lines' | 'repository'>,
): Promise<ReadonlySet<string>> {
  const commits = new Map(lines.flatMap(({ commit }) => (commit === null ? [] : [[commit.id, commit] as const])));
  const newest = [...commits.values()].toSorted((a, b) => b.at - a.at).slice(0, mostCommits);
  const contents = await Promise.all(newest.map(async ({ id, file }) => await repository?.file(id, file)));
  const states = records.flatMap(({ before, after }) => [before, after]).slice(-mostStates);
  const hashes = new Set([
    sha256,
    ...states.flatMap((state) => (typeof state === 'object' ? [state.sha256] : [])),
    ...contents.flatMap((bytes) => (bytes ? [sha256Of(bytes)] : [])),
  ]);
  hashes.delete(nothing); // as many files are at first
  return hashes;
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const nothing = sha256Of(Buffer.alloc(0));

const maxFileBytes = 64 * 1_048_576;

/** Opens the log of a store. */
export async function openBlame(
  opened: { readonly store: Store; readonly tables: Tables },
  env: Readonly<Record<string, string | undefined>>,
): Promise<Blame> {
  return new Blame(new ChangeLog(opened.store, await opened.tables(changedFileTables)), env);
}

/** The clocks of two machines may differ by so much. */
const sloppyMs = 60_000;

/** The commits and the unread change that lines older than the first record of their file may come from. */
interface OlderLines {
  readonly base: readonly (CommitOfLine | null)[] | null;
  readonly changedBy: CallRecord | null;
}

function blamedLine(line: number, text: string, author: Author, older: OlderLines): BlamedLine {
  const none = { line, text, call: null, commit: null, until: null, over: null };
  switch (author.kind) {
    case 'call':
      return { ...none, kind: isCommand(author.call) ? 'command' : 'edit', call: author.call };
    case 'outside':
      return { ...none, kind: 'outside', until: author.until, over: author.over };
    case 'base':
      return { ...none, ...olderAuthor(author, older) };
    default:
      return author satisfies never;
  }
}

/** Returns the author of a line that is older than the first record of its file. */
function olderAuthor(
  { index, recorded }: Extract<Author, { readonly kind: 'base' }>,
  { base, changedBy }: OlderLines,
): Partial<BlamedLine> & Pick<BlamedLine, 'kind'> {
  const commit = base?.[index] ?? null;
  // A commit that is older than the call had the line before.
  const call = recorded && (commit === null || commit.at + sloppyMs >= recorded.at) ? recorded : null;
  if (commit && !call) return { kind: 'git', commit };
  const writer = call ?? changedBy;
  if (writer) return { kind: isCommand(writer) ? 'command' : 'edit', call: writer };
  return { kind: base === null ? 'unknown' : 'outside' };
}
