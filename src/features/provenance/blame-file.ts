import { createHash } from 'node:crypto';
import type { Store } from '../../kernel/core/store.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import type { Tables } from '../../kernel/store/tables.js';
import type { BlamedLine } from './blamed-line.js';
import { ChangeLog, type FileVersion, type NamedUntil, plainText, type TracedFile } from './change-log.js';
import { changedFileTables } from './changed-file-rows.js';
import { type Commit, gitLines, type Repository, repositoryOf, resolvedPath } from './git-lines.js';
import { importedAuthors } from './imported-lines.js';
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
    const sha256 = createHash('sha256').update(read.bytes).digest('hex');
    const repository = await repositoryOf(path, this.#env);
    return await this.version({ path, sha256, bytes, at: Date.now() }, repository);
  }

  /** Returns the lines of given contents of a file. */
  async version(version: FileVersion, repository: Repository | null): Promise<BlamedFile | null> {
    const since = repository === null ? null : await this.#firstChange(repository);
    const history = await this.log.trace(version, (name, until) =>
      repository === null || since === null ? Promise.resolve(null) : earlierName(repository, name, since, until),
    );
    const base = await baseCommits(history, repository);
    if (base === null && history.records.length === 0) return null;
    const texts = version.bytes.toString('utf8').split('\n');
    const lines = history.authors.map((author, index) =>
      blamedLine(index + 1, texts[index] ?? '', author, { base, changedBy: history.base?.changedBy ?? null }),
    );
    const imported = await importedAuthors(this.log, { at: version.at, names: history.names }, lines);
    return { path: version.path, lines: imported, repository };
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
): Promise<readonly (Commit | null)[] | null> {
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

const maxFileBytes = 64 * 1_048_576;

/** Opens the log of a store. */
export async function openBlame(
  opened: { readonly store: Store; readonly tables: Tables },
  env: Readonly<Record<string, string | undefined>>,
): Promise<Blame> {
  return new Blame(new ChangeLog(opened.store, await opened.tables(changedFileTables)), env);
}

async function earlierName(
  repository: Repository,
  path: string,
  since: number,
  until: number,
): Promise<NamedUntil | null> {
  const name = repository.inside(path);
  const found = name === null ? null : await repository.earlierName(name, since, until);
  return found && { path: `${repository.top}/${found.name}`, until: found.until };
}

/** The clocks of two machines may differ by so much. */
const sloppyMs = 60_000;

/** The commits and the unread change that lines older than the first record of their file may come from. */
interface OlderLines {
  readonly base: readonly (Commit | null)[] | null;
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
