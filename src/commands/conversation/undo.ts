import { addAll } from '../../core/lists.js';
import { resolve } from 'node:path';
import { type ChangeSet, changeSetAt, changeSets } from '../../agent/file-history.js';
import type { Event } from '../../core/event.js';
import type { SessionRow, Store } from '../../core/store.js';
import { firstLine, spelledLine } from '../../core/text.js';
import { counted } from '../../tools/define-tool.js';
import {
  CliError,
  type CommandLine,
  exit,
  type LineForm,
  type OpenedStore,
  type Printer,
  type Repl,
  type Verb,
} from '../command.js';
import { turnRuns } from '../../ui/slash-command.js';
import { findSession } from '../sessions/stored-session.js';
import {
  act,
  type Ahead,
  atPresent,
  planLines,
  planOf,
  type Revert,
  type RevertSession,
  goalAt,
  goalsOf,
} from './revert-plan.js';

interface Options {
  /** The session; without it the newest of this directory. */
  readonly resume?: string | true;
  readonly yes?: boolean;
}

const options: LineForm['options'] = (command) =>
  command
    .option('-r, --resume <session>', 'of this session; the newest of this directory without it')
    .option('-y, --yes', 'do it without asking');

/** Lists what calls did to files, then takes it back. */
export const undo: Verb = {
  line: {
    example: 'agent undo 17 --yes',
    options,
    run: (line, [argument = ''], given: Options) => revertStored('undo', argument, line, given),
  },
  slash: (argument, repl) => revertShown('undo', argument.trim(), repl),
};

/** Lists what was undone, then does it again. */
export const redo: Verb = {
  line: {
    example: 'agent redo 17 --yes',
    options,
    run: (line, [argument = ''], given: Options) => revertStored('redo', argument, line, given),
  },
  slash: (argument, repl) => revertShown('redo', argument.trim(), repl),
};

/** Brings a file back to its state right after an event. */
export const restore: Verb = {
  line: {
    example: 'agent restore src/main.ts@17',
    options,
    run: (line, [target = ''], given: Options) => restoreFile(target, line, given),
  },
};

async function revertStored(
  kind: 'undo' | 'redo',
  argument: string,
  line: CommandLine,
  given: Options,
): Promise<number> {
  if (!/^(?:all|[1-9]\d*)?$/.test(argument))
    throw new CliError(
      exit.usage,
      `\`${argument}\` is not the number of an event`,
      `For example: agent ${kind} 17, or agent ${kind} all; without one the last change.`,
    );
  return await withSession(line, given, async (session) => {
    const choice = chooseReverts(session.events(), kind, argument);
    if ('problem' in choice)
      throw new CliError(exit.failed, choice.problem, 'agent audit lists the calls of a session with their events.');
    return await carryOut(
      session,
      choice.reverts,
      await listReverts(session, choice.reverts, choice.passed),
      line,
      given,
    );
  });
}

async function restoreFile(target: string, line: CommandLine, given: Options): Promise<number> {
  const [, named, event] = /^(.+)@(\d+)$/s.exec(target) ?? [];
  if (named === undefined || event === undefined)
    throw new CliError(
      exit.usage,
      `\`${target}\` does not name a file and an event`,
      'For example: agent restore src/main.ts@17',
    );
  const seq = Number(event);
  return await withSession(line, given, async (session) => {
    const path = resolve(session.cwd, named);
    const goal = goalAt(session.events(), path, seq);
    if (!goal)
      throw new CliError(
        exit.failed,
        `this session did not change ${path}, or it was not captured`,
        'agent undo lists what can be taken back.',
      );
    const reverts: readonly Revert[] = [{ kind: 'restore', ofSeq: seq, title: named, goals: [goal], unwatched: null }];
    return await carryOut(session, reverts, await listReverts(session, reverts, []), line, given);
  });
}

async function carryOut(
  session: RevertSession,
  reverts: readonly Revert[],
  { lines, files }: Listing,
  { out }: CommandLine,
  given: Options,
): Promise<number> {
  out.print(`${lines.join('\n')}\n`);
  if (files === 0) {
    out.print('Nothing was touched.\n');
    return exit.failed;
  }
  if (!(await allowed(out, given))) {
    out.print('Nothing was touched; --yes does it without asking.\n');
    return exit.done;
  }
  let left = 0;
  let done = 0;
  for (const revert of reverts) {
    const result = await act(session, revert);
    done += result.done.length;
    left += result.skipped.length;
  }
  out.print(`Done: ${counted(done, 'file')}${left > 0 ? `, ${left} left as they are` : ''}.\n`);
  return exit.done;
}

async function allowed(out: Printer, { yes }: Options): Promise<boolean> {
  if (yes === true) return true;
  return out.canAsk && /^y(es)?$/i.test((await out.ask('Do this? [y/N] ')).trim());
}

/** Holds the lease of the session while `use` reads and writes its log. */
async function withSession(
  line: CommandLine,
  given: Options,
  use: (session: RevertSession) => Promise<number>,
): Promise<number> {
  return await line.withStore(async (opened) => {
    const { store, settings } = opened;
    const row = await sessionOf(opened, given.resume);
    const lease = await store.acquire(row.id);
    if (!lease.held)
      throw new CliError(
        exit.session,
        `session ${row.id} is in use by process ${lease.holder.pid} on ${lease.holder.host}`,
        'Use /undo there, or end that program first.',
      );
    try {
      const { moves } = { ...row, ...(await opened.notePlace(row)) };
      return await use(atPresent(revertSession(store, row, settings.cwd, [...(await store.load(row.id))]), moves));
    } finally {
      await lease.release();
    }
  });
}

async function sessionOf(
  { store, settings, newestHere }: OpenedStore,
  resume: string | true | undefined,
): Promise<SessionRow> {
  if (typeof resume === 'string') return await findSession(store, resume);
  const newest = await newestHere();
  if (newest) return newest;
  throw new CliError(
    exit.session,
    `there is no session of ${settings.cwd}`,
    'Name one with -r <session>; agent sessions list shows them.',
  );
}

function revertSession(store: Store, row: SessionRow, cwd: string, events: Event[]): RevertSession {
  return {
    cwd,
    events: () => events,
    blob: (sha256) => store.blob(sha256),
    append: async (draft) => {
      const event: Event = { seq: (events.at(-1)?.seq ?? 0) + 1, createdAt: Date.now(), ...draft };
      await store.append(row.id, event);
      events.push(event);
    },
  };
}

async function revertShown(kind: 'undo' | 'redo', argument: string, { screen, sessions }: Repl): Promise<void> {
  const { session, row } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', turnRuns(`/${kind}`, screen));
    return;
  }
  const files = atPresent(session, row.moves);
  const choice = chooseReverts(files.events(), kind, argument);
  if ('problem' in choice) {
    screen.notice('info', choice.problem);
    return;
  }
  const listing = await listReverts(files, choice.reverts, choice.passed);
  screen.print(listing.lines.join('\n'));
  if (listing.files === 0) {
    screen.notice('info', 'Nothing was touched.');
    return;
  }
  const verb = kind === 'undo' ? 'Undo' : 'Redo';
  const items = [
    { label: `${verb} the changes in ${counted(listing.files, 'file')}`, value: true },
    { label: 'Leave everything as it is', value: false },
  ];
  const yes = await screen.pick({ title: `${verb} what is listed above`, items, confirms: true });
  if (yes !== true || session.busy()) {
    screen.notice('info', 'Nothing was touched.');
    return;
  }
  let done = 0;
  for (const item of choice.reverts) {
    const result = await act(files, item);
    done += result.done.length;
    for (const { path, reason } of result.skipped) screen.notice('warn', `Left ${path}: ${reason}`);
  }
  const back = kind === 'undo' ? '/redo' : '/undo';
  screen.notice('info', `${counted(done, 'file')} ${kind === 'undo' ? 'undone' : 'redone'}; ${back} takes that back.`);
}

/** `passed`: later changes that cannot be undone and were skipped. */
export type Choice =
  | { readonly reverts: readonly Revert[]; readonly passed: readonly ChangeSet[] }
  | { readonly problem: string };

/** Chooses the changes that `undo` or `redo` is about: the last one without an argument, every one for `all`, else the
 * one of the call that the event belongs to. Undo goes from the newest to the oldest, redo the other way. */
export function chooseReverts(events: readonly Event[], kind: 'undo' | 'redo', argument: string): Choice {
  const sets =
    kind === 'undo'
      ? changeSets(events)
          .filter((set) => set.undoneBy === null)
          .toReversed()
      : changeSets(events).filter((set) => set.undoneBy !== null);
  if (argument === 'all')
    return sets.length === 0 ? nothing(kind) : { reverts: sets.map((set) => revertOf(set, kind)), passed: [] };
  if (argument === '') {
    const next =
      kind === 'undo' ? sets.find(isCaptured) : [...sets].sort((a, b) => (b.undoneBy ?? 0) - (a.undoneBy ?? 0))[0];
    return next
      ? { reverts: [revertOf(next, kind)], passed: kind === 'undo' ? sets.slice(0, sets.indexOf(next)) : [] }
      : nothing(kind);
  }
  const seq = Number(argument);
  if (!Number.isInteger(seq) || seq < 1)
    return {
      problem: `\`${argument}\` is not the number of an event; give one, or nothing for the last change, or all`,
    };
  const set = changeSetAt(events, seq);
  return set
    ? { reverts: [revertOf(set, kind)], passed: [] }
    : { problem: `event ${seq} is not of a call that changed files` };
}

function isCaptured(set: ChangeSet): boolean {
  return set.changes.some((change) => change.captured);
}

function nothing(kind: 'undo' | 'redo'): Choice {
  return {
    problem:
      kind === 'undo'
        ? 'there is no change of files to undo in this session'
        : 'there is nothing undone to redo in this session',
  };
}

function revertOf(set: ChangeSet, kind: 'undo' | 'redo'): Revert {
  return {
    kind,
    ofSeq: set.seq,
    title: firstLine(set.title, 120),
    goals: goalsOf(set, kind),
    unwatched: set.unwatched,
  };
}

export interface Listing {
  readonly lines: readonly string[];
  /** The number of files that would be touched. */ readonly files: number;
}

/** Says what would be done, per call: its files, and why some of them stay. */
export async function listReverts(
  session: RevertSession,
  reverts: readonly Revert[],
  passed: readonly ChangeSet[],
): Promise<Listing> {
  const lines = passed.map(
    (set) => `Event ${set.seq}, ${printable(set.title)}: what it changed was seen but not captured; it stays.`,
  );
  const ahead: Ahead = new Map();
  const touched = new Set<string>();
  for (const revert of reverts) {
    const plan = await planOf(session, revert, ahead);
    for (const action of plan.actions) touched.add(action.path);
    lines.push(`${verbs[revert.kind]} event ${revert.ofSeq}, ${printable(revert.title)}:`);
    addAll(lines, planLines(plan, session.cwd));
    if (revert.unwatched !== null) lines.push(`  There may be more: ${revert.unwatched}.`);
  }
  return { lines, files: touched.size };
}

const verbs = { undo: 'Undo', redo: 'Redo', restore: 'Restore as of' } as const;

function printable(title: string): string {
  return spelledLine(firstLine(title, 100));
}
