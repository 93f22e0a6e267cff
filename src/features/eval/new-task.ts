import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { CliError, type CommandHandler, type CommandLine, exit } from '../../kernel/console/command.js';
import { jsonText } from '../../kernel/console/line-output.js';
import { findSession } from '../../kernel/console/stored-session.js';
import {
  type BaseData,
  type ChangeData,
  countingEvents,
  type Event,
  knownEvent,
  typedText,
} from '../../kernel/core/event.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import type { SessionRow, Store } from '../../kernel/core/store.js';
import { firstLine } from '../../kernel/core/text.js';
import { runGit } from '../../kernel/tools/process/run-git.js';
import { treeOf } from '../../kernel/tools/worktrees/agent-worktree.js';
import { noteBeginning, PlaceError, preparePlace } from './prepare-place.js';
import { patchArguments } from './read-base.js';
import type { EvalTask } from './task-file.js';

interface Options {
  readonly from?: string;
  readonly turn?: string;
  readonly out?: string;
  readonly check?: string;
  readonly base?: string;
  readonly yes?: boolean;
}

/** `agent eval new` */
export const newTask: CommandHandler = {
  line: {
    example: 'agent eval new --from 01kb --turn 2',
    options: (command) =>
      command
        .option('--from <session>', 'the session to make it from (default: the newest one of this directory)')
        .option('--turn <n>', 'only this message of the user, counted from 1')
        .option('--out <dir>', 'the folder of the task (default evals/NAME)')
        .option('--check <command>', 'the command that decides, with exit code 0 for done')
        .option('--base <commit>', 'where the session began, for one that has not noted it')
        .option('-y, --yes', 'use the check that is guessed from the session'),
    run: async (line, _args, options: Options) => {
      return await line.withStore(async ({ store, newestHere }) => {
        const row = options.from === undefined ? await newestHere() : await findSession(store, options.from);
        if (row === null)
          throw new CliError(exit.usage, 'this directory has no session', 'Name one: agent eval new --from 01kb');
        return await makeTask(line, { store, row, events: await store.load(row.id) }, options);
      });
    },
  },
};

interface Source {
  readonly store: Store;
  readonly row: SessionRow;
  readonly events: readonly Event[];
}

/** Messages of the user with the events between them: from `first` to before `end`. */
interface Span {
  readonly prompts: readonly string[];
  readonly first: number;
  readonly end: number;
}

async function makeTask(line: CommandLine, source: Source, options: Options): Promise<number> {
  const { cwd, env } = line.request;
  const span = spanOf(source, options.turn);
  const base = await baseOf(line, source, span, options.base);
  const check = await chosenCheck(line, guessedCheck(source.events, span), options);
  const name = nameOf(span.prompts[0] ?? source.row.id);
  const out = freeFolder(resolve(cwd, options.out ?? join('evals', name)), options.out !== undefined);
  const scratch = await mkdtemp(join(tmpdir(), 'agent-task-'));
  try {
    const { patch, reference, lacks } = await rebuilt({ ...source, span, base, folder: join(scratch, 'place'), env });
    const [one = '', ...more] = span.prompts;
    const directory = relative(base.data.root, source.row.cwd);
    const task = {
      name,
      ...(more.length === 0 ? { prompt: one } : { prompts: span.prompts }),
      repo: base.data.root,
      base: base.data.commit,
      ...(directory === '' || directory.startsWith('..') ? {} : { directory }),
      check,
    };
    mkdirSync(out, { recursive: true });
    const { guard } = await line.settings();
    if (patch !== '') writeFileSync(join(out, 'patch.diff'), patch);
    if (reference !== '') writeFileSync(join(out, 'reference.diff'), guard.text(reference));
    writeFileSync(join(out, 'task.json'), `${jsonText(guard.deep(task), 2)}\n`);
    for (const sentence of lacks) line.out.error(`agent: ${sentence}\n`);
    line.out.print(`${join(out, 'task.json')}\n`);
    return exit.done;
  } catch (error) {
    if (!(error instanceof PlaceError)) throw error;
    throw new CliError(
      exit.failed,
      `the state that the session began with cannot be made again: ${error.message}`,
      'Name a commit that the repository has with --base.',
    );
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function spanOf({ row, events }: Source, turn: string | undefined): Span {
  const messages = countingEvents(events).flatMap((event) => {
    if (event.kind !== 'user') return [];
    const typed = typedText(event);
    if (typed === null) return [];
    return [{ seq: event.seq, text: event.data?.command === undefined ? typed : event.content }];
  });
  if (messages.length === 0)
    throw new CliError(exit.usage, `session ${row.id} has no message of a user`, 'agent sessions list shows others.');
  if (turn === undefined)
    return { prompts: messages.map(({ text }) => text), first: messages[0]?.seq ?? 0, end: Number.POSITIVE_INFINITY };
  const chosen = messages[Number(turn) - 1];
  if (!chosen)
    throw new CliError(
      exit.usage,
      `--turn: session ${row.id} has no message ${turn}`,
      messages.length === 1 ? 'It has one message.' : `It has messages 1 to ${messages.length}.`,
    );
  return { prompts: [chosen.text], first: chosen.seq, end: messages[Number(turn)]?.seq ?? Number.POSITIVE_INFINITY };
}

/** The state of the repository at an event. */
interface Base {
  readonly seq: number;
  readonly data: BaseData & { readonly patch: string };
}

/** Returns the last state that was noted before the first change of the span. */
async function baseOf(line: CommandLine, source: Source, span: Span, given: string | undefined): Promise<Base> {
  const { row, events } = source;
  if (given !== undefined) return await namedBase(line, row, given, span);
  const noted = events.flatMap((raw) => {
    const event = raw.kind === 'base' && raw.seq < span.end ? knownEvent(raw) : null;
    return event?.kind === 'base' ? [{ seq: event.seq, data: event.data }] : [];
  });
  const base = noted.find(({ seq }) => seq > span.first) ?? noted.at(-1);
  if (!base)
    throw new CliError(
      exit.usage,
      `session ${row.id} has not noted the commit it began with`,
      'It changed nothing, is from an earlier version, or was in no repository. Name the commit with --base.',
    );
  const { patch, left_out: why = 'it was redacted' } = base.data;
  if (patch === null || patch.includes('«secret:'))
    throw new CliError(
      exit.usage,
      `session ${row.id} has no copy of the changes that were not committed: ${patch === null ? why : 'they contained a secret'}`,
      'Name a commit that has them with --base.',
    );
  return { seq: base.seq, data: { ...base.data, patch } };
}

async function namedBase({ request: { env } }: CommandLine, row: SessionRow, given: string, span: Span): Promise<Base> {
  const git = async (args: readonly string[]): Promise<string> => {
    const { exitCode, output, errors } = await runGit(row.cwd, env, args);
    if (exitCode === 0) return output.trim();
    throw new CliError(exit.usage, `--base ${given}: ${errors.trim() || 'there is no such commit'}`, `In ${row.cwd}.`);
  };
  const commit = await git(['rev-parse', '--verify', '--end-of-options', `${given}^{commit}`]);
  return { seq: span.first, data: { root: await git(['rev-parse', '--show-toplevel']), commit, patch: '' } };
}

/** Returns the folder for a new task. One that was not asked for gets a number where it is taken. */
function freeFolder(wanted: string, isGiven: boolean): string {
  const isTaken = (path: string): boolean => existsSync(join(path, 'task.json'));
  if (!isTaken(wanted)) return wanted;
  if (isGiven)
    throw new CliError(exit.usage, `there is a task in ${wanted} already`, 'Choose another folder with --out.');
  for (let number = 2; ; number++) if (!isTaken(`${wanted}-${number}`)) return `${wanted}-${number}`;
}

function nameOf(prompt: string): string {
  const words = firstLine(prompt, 60)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40)
    .replace(/-+$/, '');
  return words === '' ? 'task' : words;
}

/** Commands that test, check or build. */
const testing =
  /\b(?:test|tests|pytest|tox|nox|vitest|jest|mocha|rspec|phpunit|ctest|check|tsc|mypy|clippy|verify)\b|\bunittest\b/;

/** Returns the last command of the span that looks like a test, one that passed before others; null if there is none. */
function guessedCheck(events: readonly Event[], { first, end }: Span): string | null {
  const inside = events.filter(({ seq }) => seq >= first && seq < end).map(knownEvent);
  const commands = new Map(
    inside.flatMap((event) => {
      const command = event?.kind === 'tool_call' ? commandIn(event.data.function) : null;
      return event?.kind === 'tool_call' && command !== null ? [[event.data.id, command] as const] : [];
    }),
  );
  const ran = inside.flatMap((event) => {
    const command = event?.kind === 'tool_result' ? commands.get(event.data.tool_call_id) : undefined;
    return event?.kind === 'tool_result' && command !== undefined ? [{ command, passed: event.data.success }] : [];
  });
  return (ran.findLast(({ passed }) => passed) ?? ran.at(-1))?.command ?? null;
}

/** Returns the command of a call that looks like a test; null for any other call. */
function commandIn({ name, arguments: text }: { readonly name: string; readonly arguments: string }): string | null {
  try {
    const args: unknown = name === 'bash' ? parseJson(text) : null;
    const command = isRecord(args) ? args['command'] : null;
    return typeof command === 'string' && testing.test(command) ? command : null;
  } catch {
    return null;
  }
}

async function chosenCheck(line: CommandLine, guess: string | null, { check, yes }: Options): Promise<string> {
  if (check !== undefined) return check;
  if (yes === true && guess !== null) return guess;
  const example = 'Give the command that decides: --check "npm test".';
  if (!line.out.canAsk)
    throw new CliError(
      exit.usage,
      guess === null
        ? 'the session ran no tests that a check could be guessed from'
        : `the check \`${guess}\` is a guess`,
      guess === null ? example : `Use it with --yes, or give another: --check "npm test".`,
    );
  const asked = guess === null ? 'Check (a command): ' : `Check [${line.trust.spelled(guess)}]: `;
  const typed = (await line.out.ask(asked)).trim();
  const chosen = typed === '' ? guess : typed;
  if (chosen === null) throw new CliError(exit.usage, 'a task needs a check', example);
  return chosen;
}

interface Rebuilding extends Source {
  readonly span: Span;
  readonly base: Base;
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Makes the state before the span again, from the commit and from the contents that the record has, and what the span
 * changed. `lacks`: sentences on what could not be made again. */
async function rebuilt({ store, events, span, base, folder, env }: Rebuilding): Promise<{
  readonly patch: string;
  readonly reference: string;
  readonly lacks: readonly string[];
}> {
  const { root, commit, patch } = base.data;
  const place: EvalTask['place'] = { kind: 'repo', repo: root, base: commit, patch };
  const { top, change } = await preparePlace(folder, env, { ...emptyTask, place });
  const before = changesOf(events, (seq) => seq > base.seq && seq < span.first);
  const inside = changesOf(events, (seq) => seq > Math.max(base.seq, span.first) && seq < span.end);
  const files = { store, root, top };
  const lost = new Set(await applyChanges(files, before));
  const at = { cwd: top, env };
  const whole = await runGit(top, env, patchArguments(commit, await treeOf(at)));
  if (whole.exitCode !== 0) throw new PlaceError(`git diff failed: ${whole.errors.trim()}`);
  await noteBeginning(folder, env);
  const unknown = new Set(await applyChanges(files, inside));
  return {
    patch: whole.output,
    reference: await change(),
    lacks: [
      ...(lost.size > 0 ? [`the record has no copy of ${[...lost].join(', ')}, which an earlier turn changed`] : []),
      ...(unknown.size > 0 ? [`the reference lacks ${[...unknown].join(', ')}: the record has no copy`] : []),
    ],
  };
}

const emptyTask: Omit<EvalTask, 'place'> = {
  name: '',
  file: '',
  sha256: '',
  prompts: [],
  directory: '',
  setup: null,
  check: null,
  jsonSchema: null,
  timeoutSeconds: 1,
  maxCostUsd: null,
  tools: null,
  modelSettings: {},
};

function changesOf(events: readonly Event[], counts: (seq: number) => boolean): readonly ChangeData[] {
  return events.flatMap((raw) => {
    if (!counts(raw.seq)) return [];
    const event = knownEvent(raw);
    switch (event?.kind) {
      case 'tool_result':
      case 'undo':
      case 'redo':
      case 'restore':
        return event.data.changes ?? [];
      default:
        return [];
    }
  });
}

const linkType = 0o120000;
const typeMask = 0o170000;

/** Makes recorded changes in the copy of a repository. Returns the paths whose contents the record lacks. */
async function applyChanges(
  { store, root, top }: { readonly store: Store; readonly root: string; readonly top: string },
  changes: readonly ChangeData[],
): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const change of changes) {
    const name = relative(root, change.path);
    if (name === '' || name.startsWith('..') || name.startsWith('.git/')) continue;
    const isGone = change.what === 'deleted';
    const bytes = isGone || change.after === null ? null : await store.blob(change.after);
    if (!change.captured || (!isGone && bytes === null)) lost.push(name);
    else await putFile(join(top, name), bytes, change.after_mode);
  }
  return lost;
}

/** Replaces a file; null removes it. */
async function putFile(file: string, bytes: Uint8Array | null, mode: number | undefined): Promise<void> {
  await rm(file, { recursive: true, force: true });
  if (bytes === null) return;
  await mkdir(dirname(file), { recursive: true });
  if (mode !== undefined && (mode & typeMask) === linkType) {
    await symlink(Buffer.from(bytes).toString(), file);
    return;
  }
  await writeFile(file, bytes);
  if (mode !== undefined) await chmod(file, mode & 0o777);
}
