import { CliError, exit, type Repl } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { type GitResult, runGit } from '../kernel/tools/process/run-git.js';
import type { FileChangeText } from '../kernel/console/slash-command.js';

const maxNewFiles = 50;
const maxChars = 1_000_000;
/** No program of the repository or of the user is run to make a text of a file. */
const plain = ['--no-color', '--no-ext-diff', '--no-textconv', '--src-prefix=a/', '--dst-prefix=b/'];
const readable = ['-c', 'core.quotePath=false'];

type Place = Pick<Settings, 'cwd' | 'env'>;

/** `/diff --git`: all changes that are not committed, also those that the agent did not make, and new files. */
export async function showUncommitted({ screen, settings }: Pick<Repl, 'screen' | 'settings'>): Promise<void> {
  const root = (await git(settings, ['rev-parse', '--show-toplevel'])).trim();
  const place = { cwd: root, env: settings.env };
  const head = await runGit(root, settings.env, ['rev-parse', '--verify', '--quiet', 'HEAD']);
  const before = head.exitCode === 0 ? 'HEAD' : (await git(place, ['hash-object', '-t', 'tree', '/dev/null'])).trim();
  const tracked = await git(place, ['diff', ...plain, before, '--']);
  const names = (await git(place, ['ls-files', '--others', '--exclude-standard', '-z'])).split('\0').filter(Boolean);
  const added: string[] = [];
  for (const name of names.slice(0, maxNewFiles)) added.push(await newFile(place, name));
  const all = [tracked, ...added].flatMap(fileChanges);
  const changes = withinLimit(all);
  const rest = [
    ...all.slice(changes.length).map(({ title }) => title),
    ...names.slice(maxNewFiles).map((name) => `${name} (new)`),
  ];
  if (all.length === 0) {
    screen.notice('info', 'There are no uncommitted changes.');
    return;
  }
  const more = rest.length === 0 ? [] : [{ title: `Not shown: ${rest.join(', ')}`, diff: '' }];
  const shown = [...changes, ...more];
  const text = shown.map(({ title, diff }) => `${title}\n${diff}`).join('\n');
  await screen.page('Uncommitted changes', text, { changes: shown });
}

/** Returns the diff of a file that git does not know yet. Git ends with 1, because it differs from nothing. */
async function newFile(place: Place, name: string): Promise<string> {
  const { output } = await runGit(place.cwd, place.env, [
    ...readable,
    'diff',
    ...plain,
    '--no-index',
    '--',
    '/dev/null',
    name,
  ]);
  return output;
}

/** Splits the output of `git diff` into the changes of each file. */
function fileChanges(output: string): readonly FileChangeText[] {
  return output.split(/^(?=diff --git )/m).flatMap((text) => {
    if (!text.startsWith('diff --git ')) return [];
    const lines = text.split('\n');
    const first = lines.findIndex((line) => line.startsWith('--- ') || line.startsWith('@@ '));
    const head = first < 0 ? lines : lines.slice(0, first);
    return [{ title: titleOf(lines, head), diff: first < 0 ? '' : lines.slice(first).join('\n') }];
  });
}

/** Names the file, and what happened to it beside its text. */
function titleOf(lines: readonly string[], head: readonly string[]): string {
  const path = (mark: string): string | undefined =>
    lines.find((line) => line.startsWith(`${mark} `) && !line.endsWith('/dev/null'))?.slice(6);
  const name = path('+++') ?? path('---') ?? / b\/(.*)$/.exec(head[0] ?? '')?.[1] ?? head[0] ?? '';
  const facts = head.flatMap((line) => {
    if (line.startsWith('new file')) return ['new'];
    if (line.startsWith('deleted file')) return ['deleted'];
    if (line.startsWith('rename from ')) return [`renamed from ${line.slice('rename from '.length)}`];
    return /^(?:Binary files|old mode|new mode)/.test(line) ? [line] : [];
  });
  return facts.length === 0 ? name : `${name} (${facts.join(', ')})`;
}

function withinLimit(changes: readonly FileChangeText[]): readonly FileChangeText[] {
  let left = maxChars;
  const end = changes.findIndex(({ diff }) => (left -= diff.length) < 0);
  return end < 0 ? changes : changes.slice(0, end);
}

async function git({ cwd, env }: Place, args: readonly string[]): Promise<string> {
  const result: GitResult = await runGit(cwd, env, [...readable, ...args]);
  if (result.exitCode === 0) return result.output;
  const what = result.errors.replace(/^(?:fatal|error): /gm, '').trim();
  if (result.exitCode === null) throw new CliError(exit.failed, `git could not be started: ${what}`, 'Install git.');
  throw new CliError(exit.failed, `git ${args[0] ?? ''} failed: ${what}`, '/diff shows what this session changed.');
}
