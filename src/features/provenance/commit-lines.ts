import { createHash } from 'node:crypto';
import { parsePatch } from 'diff';
import { CliError, exit } from '../../kernel/console/command.js';
import type { Blame } from './blame-file.js';
import type { BlamedLine } from './blamed-line.js';
import { plainText } from './change-log.js';
import type { Repository } from './git-lines.js';
import type { CallRecord } from './session-record.js';

/** The contributor of a line, in the terms of Agent Trace. */
export type Contributor = 'ai' | 'human' | 'mixed' | 'unknown';

/** A line that a commit adds. */
export interface AddedLine {
  /** In the file as it is in the commit, from 1. */
  readonly line: number;
  readonly text: string;
  readonly contributor: Contributor;
  /** The call that wrote it, or the one whose line a person changed. */
  readonly call: CallRecord | null;
}

export interface AddedLines {
  /** Relative to the top directory. */
  readonly path: string;
  readonly lines: readonly AddedLine[];
}

export interface ExplainedCommit {
  readonly commit: string;
  /** Unix ms. */
  readonly at: number;
  readonly files: readonly AddedLines[];
}

/** Returns the commits of a range, oldest first, without merges. Throws a `CliError` (2) for what is no range. */
export async function commitsOf(
  repository: Repository,
  range: string,
): Promise<readonly { readonly commit: string; readonly at: number }[]> {
  const listed = range.startsWith('-')
    ? null
    : await repository.run([
        'log',
        '--no-merges',
        '--reverse',
        '--format=%H %ct',
        range.includes('..') ? range : `${range}^!`,
        '--',
      ]);
  if (listed?.exitCode !== 0)
    throw new CliError(exit.usage, `\`${range}\` is no range of commits`, 'For example main..HEAD, or HEAD~3..HEAD.');
  return listed.output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [commit = '', seconds = '0'] = line.split(' ');
      return { commit, at: Number(seconds) * 1000 + 999 };
    });
}

const patch = ['-p', '-U0', '-M', '--no-color', '--no-ext-diff', '--no-textconv', '--src-prefix=a/', '--dst-prefix=b/'];

/** Finds the contributor of each line that a commit adds. */
export async function explainCommit(
  work: Blame,
  repository: Repository,
  { commit, at }: { readonly commit: string; readonly at: number },
): Promise<ExplainedCommit> {
  const { output } = await repository.run(['diff-tree', '--root', '--no-commit-id', '-r', ...patch, commit]);
  return { commit, at, files: await explainPatch(work, repository, output, { revision: commit, at }) };
}

/** Finds the contributor of each line that is staged for the next commit. */
export async function explainStaged(work: Blame, repository: Repository): Promise<readonly AddedLines[]> {
  const { output } = await repository.run(['diff', '--cached', ...patch]);
  return await explainPatch(work, repository, output, { revision: '', at: Date.now() });
}

async function explainPatch(
  work: Blame,
  repository: Repository,
  text: string,
  { revision, at }: { readonly revision: string; readonly at: number },
): Promise<readonly AddedLines[]> {
  const files: AddedLines[] = [];
  for (const { newFileName = '', hunks } of text === '' ? [] : parsePatch(text)) {
    const path = newFileName.startsWith('b/') ? newFileName.slice(2) : null;
    const numbers = hunks.flatMap(({ newStart, lines }) =>
      lines.filter((line) => line.startsWith('+')).map((_, index) => newStart + index),
    );
    if (path === null || numbers.length === 0) continue;
    const lines = await blamedLines(work, repository, { path, revision, at });
    files.push({ path, lines: numbers.map((number) => addedLine(number, lines?.[number - 1])) });
  }
  return files;
}

async function blamedLines(
  work: Blame,
  repository: Repository,
  { path, revision, at }: { readonly path: string; readonly revision: string; readonly at: number },
): Promise<readonly BlamedLine[] | null> {
  const bytes = await repository.file(revision, path);
  const text = bytes === null ? null : await plainText(bytes);
  if (bytes === null || text === null) return null;
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const file = await work.version({ path: `${repository.top}/${path}`, sha256, bytes: text, at }, repository);
  return file?.lines ?? null;
}

function addedLine(line: number, blamed: BlamedLine | undefined): AddedLine {
  const { text = '', kind = 'unknown', call = null, over = null } = blamed ?? {};
  if (call) return { line, text, contributor: 'ai', call };
  if (kind === 'outside') return { line, text, contributor: over ? 'mixed' : 'human', call: over };
  return { line, text, contributor: 'unknown', call: null };
}
