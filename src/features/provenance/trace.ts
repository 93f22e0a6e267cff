import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import {
  CliError,
  type CommandHandler,
  type CommandLine,
  type CommandStore,
  exit,
} from '../../kernel/console/command.js';
import { columns, pointInTime, printJson } from '../../kernel/console/line-output.js';
import { counted } from '../../kernel/tools/define-tool.js';
import { type Blame, openBlame } from './blame-file.js';
import { commitsOf, type ExplainedCommit, explainCommit } from './commit-lines.js';
import { type Repository, repositoryOf } from './git-lines.js';
import type { FileChangeRecord } from './session-record.js';
import { type Contribution, csvHead, csvRows, traceRecord } from './trace-records.js';

interface ExportOptions {
  readonly since?: string;
  readonly range?: string;
  readonly format?: string;
  readonly withPrompts?: boolean;
}

/** `agent trace`: groups the others. */
export const trace: CommandHandler = { line: { example: 'agent trace export --range main..HEAD' } };

/** `agent trace export`: Agent Trace records of the calls of this project, or of a range of commits. */
export const exportTrace: CommandHandler = {
  line: {
    example: 'agent trace export --range main..HEAD > trace.jsonl',
    options: (command) =>
      command
        .option('--since <time>', 'of the calls since then: 45m, 2h, 3d, 2w or 2026-03-01')
        .option('--range <A..B>', 'of these commits, with lines as they are in each commit')
        .option('--format <agent-trace|csv>', 'a record a line, or comma-separated values', 'agent-trace')
        .option('--with-prompts', 'add the whole prompts'),
    run: (line, _args, options: ExportOptions) => printTrace(line, options),
  },
};

async function printTrace(line: CommandLine, options: ExportOptions): Promise<number> {
  const { since, range, format, withPrompts = false } = options;
  if (format !== 'agent-trace' && format !== 'csv')
    throw new CliError(exit.usage, `--format: \`${format ?? ''}\` is not known`, 'Known: agent-trace, csv.');
  if (since !== undefined && range !== undefined)
    throw new CliError(exit.usage, '--since and --range cannot both be', 'Choose one.');
  const sinceMs = since === undefined ? 0 : pointInTime(since, '--since', Date.now());
  return await withBlame(line, async ({ work, repository, cwd }) => {
    if (format === 'csv') line.out.data(csvHead);
    const contributions =
      range === undefined
        ? callContributions(work, repository?.top ?? cwd, sinceMs)
        : commitContributions(work, needed(repository, cwd), range);
    for await (const one of contributions) {
      if (format === 'csv') line.out.data(csvRows(one));
      else {
        const record = traceRecord(one, withPrompts);
        if (record.files.length > 0) printJson(line.out, record);
      }
    }
    return exit.done;
  });
}

/** `agent trace check`: how many lines of a range of commits the log explains. */
export const checkTrace: CommandHandler = {
  line: {
    example: 'agent trace check main..HEAD',
    options: (command) => command.option('--json', 'one JSON object'),
    run: async (line, [range = ''], { json }: { readonly json?: boolean }) =>
      await withBlame(line, async ({ work, repository, cwd }) => {
        const found = needed(repository, cwd);
        const commits: CommitCounts[] = [];
        for (const commit of await commitsOf(found, range))
          commits.push(countsOf(await explainCommit(work, found, commit)));
        const explained = sum(commits, 'explained');
        const added = sum(commits, 'lines_added');
        if (json) printJson(line.out, { commits, explained, lines_added: added }, 2);
        else line.out.print(checkText(commits, explained, added));
        return exit.done;
      }),
  },
};

interface CommitCounts {
  readonly commit: string;
  readonly lines_added: number;
  readonly explained: number;
  readonly ai: number;
  readonly human: number;
  readonly mixed: number;
}

function countsOf({ commit, files }: ExplainedCommit): CommitCounts {
  const lines = files.flatMap((file) => file.lines);
  const count = (wanted: string): number => lines.filter(({ contributor }) => contributor === wanted).length;
  const [ai, human, mixed] = [count('ai'), count('human'), count('mixed')];
  return { commit, lines_added: lines.length, explained: ai + human + mixed, ai, human, mixed };
}

function sum(commits: readonly CommitCounts[], field: 'explained' | 'lines_added'): number {
  return commits.reduce((total, commit) => total + commit[field], 0);
}

function checkText(commits: readonly CommitCounts[], explained: number, added: number): string {
  const rows = columns([
    ['commit', 'lines added', 'explained', 'ai', 'human', 'mixed'],
    ...commits.map((one) => [
      one.commit.slice(0, 12),
      String(one.lines_added),
      String(one.explained),
      String(one.ai),
      String(one.human),
      String(one.mixed),
    ]),
  ]);
  const share = added === 0 ? '' : ` (${Math.round((explained / added) * 100)} %)`;
  const total = `The log explains ${explained} of ${counted(added, 'added line')}${share} in ${counted(commits.length, 'commit')}.`;
  return [...rows, total].map((row) => `${row}\n`).join('');
}

const notesRef = 'refs/notes/agent-trace';
const asAgent = ['-c', 'user.name=agent', '-c', 'user.email=agent@localhost'];

/** `agent trace notes`: writes the records of commits as git notes. */
export const writeNotes: CommandHandler = {
  line: {
    example: 'agent trace notes main..HEAD',
    options: (command) => command.option('--with-prompts', 'add the whole prompts'),
    run: async (line, [range = ''], { withPrompts = false }: { readonly withPrompts?: boolean }) =>
      await withBlame(line, async ({ work, repository, cwd }) => {
        const found = needed(repository, cwd);
        let written = 0;
        let all = 0;
        for await (const one of commitContributions(work, found, range)) {
          all++;
          const record = traceRecord(one, withPrompts);
          if (record.files.length === 0) continue;
          await writeNote(found, one.name, JSON.stringify(record));
          written++;
        }
        line.out.print(`Wrote notes for ${written} of ${counted(all, 'commit')} to ${notesRef}.\n`);
        return exit.done;
      }),
  },
};

async function writeNote(repository: Repository, commit: string, text: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-note-'));
  try {
    const file = join(folder, 'note.json');
    writeFileSync(file, `${text}\n`);
    const { exitCode, errors } = await repository.run([
      ...asAgent,
      'notes',
      `--ref=${notesRef}`,
      'add',
      '--force',
      '-F',
      file,
      commit,
    ]);
    if (exitCode !== 0)
      throw new CliError(exit.failed, `git could not write the note of ${commit}: ${errors.trim()}`, 'Try again.');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function* commitContributions(work: Blame, repository: Repository, range: string): AsyncGenerator<Contribution> {
  for (const one of await commitsOf(repository, range)) {
    const { commit, at, files } = await explainCommit(work, repository, one);
    yield { name: commit, revision: commit, at: at - 999, files };
  }
}

/** Yields what each call wrote below a directory since a time, with lines as they were right after the call. */
async function* callContributions(work: Blame, top: string, sinceMs: number): AsyncGenerator<Contribution> {
  for (const session of await work.log.sessionsBelow(top, sinceMs)) {
    for (const changes of groupBySeq(session.changes).values()) {
      const [first] = changes;
      if (!first?.call || first.call.at < sinceMs) continue;
      const files: Contribution['files'][number][] = [];
      for (const change of changes) {
        const path = relative(top, change.path);
        const lines = path.startsWith('..') ? [] : await linesOf(work, change);
        if (lines.length > 0) files.push({ path, lines });
      }
      if (files.length > 0)
        yield { name: `${session.row.id}:${first.call.seq}`, revision: null, at: first.call.at, files };
    }
  }
}

function groupBySeq(changes: readonly FileChangeRecord[]): ReadonlyMap<number, readonly FileChangeRecord[]> {
  const groups = new Map<number, FileChangeRecord[]>();
  for (const change of changes) groups.set(change.seq, [...(groups.get(change.seq) ?? []), change]);
  return groups;
}

async function linesOf(work: Blame, change: FileChangeRecord) {
  return (await work.log.linesAddedBy(change)).map((line) => ({
    ...line,
    contributor: 'ai' as const,
    call: change.call,
  }));
}

interface TraceWork {
  readonly work: Blame;
  /** Null: the directory is in none. */
  readonly repository: Repository | null;
  readonly cwd: string;
}

/** Opens the log and the repository of the working directory. */
export async function withBlame(line: CommandLine, use: (opened: TraceWork) => Promise<number>): Promise<number> {
  return await line.withStore(async (opened: CommandStore) => {
    await opened.newestHere();
    const { env } = opened.settings;
    const cwd = realpathSync(opened.settings.cwd);
    const repository = await repositoryOf(join(cwd, 'any file'), env);
    return await use({ work: await openBlame(opened, env), repository, cwd });
  });
}

export function needed(repository: Repository | null, cwd: string): Repository {
  if (repository) return repository;
  throw new CliError(exit.usage, `${cwd} is in no git repository`, 'Commits are explained inside of one.');
}
