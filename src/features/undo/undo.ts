import { resolve } from 'node:path';
import type { Event } from '../../kernel/core/event.js';
import type { SessionRow, Store } from '../../kernel/core/store.js';
import {
  CliError,
  type CommandLine,
  exit,
  type CliCommand,
  type CommandStore,
  type Printer,
  type Repl,
  type CommandHandler,
} from '../../kernel/console/command.js';
import { turnRuns } from '../../kernel/console/slash-command.js';
import { findSession } from '../../kernel/console/stored-session.js';
import { chooseReverts, countedPaths, type RevertListing, listReverts } from './choose-reverts.js';
import { act, atPresent, goalAt, type Revert, type RevertSession, skippedLines } from './revert-plan.js';

interface Options {
  /** The session; without it the newest of this directory. */
  readonly resume?: string | true;
  readonly yes?: boolean;
}

const options: CliCommand['options'] = (command) =>
  command
    .option('-r, --resume <session>', 'of this session; the newest of this directory without it')
    .option('-y, --yes', 'do not ask');

/** Lists what calls did to files, then takes it back. */
export const undo: CommandHandler = {
  line: {
    example: 'agent undo 17 --yes',
    options,
    run: (line, [argument = ''], given: Options) => revertStored('undo', argument, line, given),
  },
  slash: (argument, repl) => revertShown('undo', argument.trim(), repl),
};

/** Lists what was undone, then does it again. */
export const redo: CommandHandler = {
  line: {
    example: 'agent redo 17 --yes',
    options,
    run: (line, [argument = ''], given: Options) => revertStored('redo', argument, line, given),
  },
  slash: (argument, repl) => revertShown('redo', argument.trim(), repl),
};

/** Brings a file back to its state right after an event. */
export const restore: CommandHandler = {
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
        'agent undo lists what can be undone.',
      );
    const reverts: readonly Revert[] = [
      { kind: 'restore', ofSeq: seq, title: named, goals: [goal], folders: [], unwatched: null },
    ];
    return await carryOut(session, reverts, await listReverts(session, reverts, []), line, given);
  });
}

async function carryOut(
  session: RevertSession,
  reverts: readonly Revert[],
  { lines, files, folders }: RevertListing,
  { out }: CommandLine,
  given: Options,
): Promise<number> {
  out.print(`${lines.join('\n')}\n`);
  if (files + folders === 0) {
    out.print('Nothing was changed.\n');
    return exit.failed;
  }
  if (!(await allowed(out, given))) {
    out.print('Nothing was changed. Add --yes to run without asking.\n');
    return exit.done;
  }
  const listed = new Set(lines);
  let left = 0;
  let done = 0;
  let doneFolders = 0;
  for (const revert of reverts) {
    const result = await act(session, revert);
    done += result.done.length;
    doneFolders += result.folders.length;
    left += result.skipped.length;
    const late = skippedLines(result.skipped, session.cwd).filter((text) => !listed.has(text));
    if (late.length > 0) out.print(`${late.join('\n')}\n`);
  }
  out.print(`Done: ${countedPaths(done, doneFolders)}${left > 0 ? `, ${left} left as they are` : ''}.\n`);
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
        'Use /undo there, or exit that program first.',
      );
    try {
      const { moves } = { ...row, ...(await opened.notePlace(row)) };
      return await use(
        atPresent(revertSession(store, row, settings.cwd, [...(await store.load(row.id))]), moves, settings.env),
      );
    } finally {
      await lease.release();
    }
  });
}

async function sessionOf(
  { store, settings, newestHere }: CommandStore,
  resume: string | true | undefined,
): Promise<SessionRow> {
  if (typeof resume === 'string') return await findSession(store, resume);
  const newest = await newestHere();
  if (newest) return newest;
  throw new CliError(
    exit.session,
    `there is no session in ${settings.cwd}`,
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

async function revertShown(
  kind: 'undo' | 'redo',
  argument: string,
  { screen, sessions, settings }: Repl,
): Promise<void> {
  const { session, row } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', turnRuns(`/${kind}`, screen));
    return;
  }
  const files = atPresent(session, row.moves, settings.env);
  const choice = chooseReverts(files.events(), kind, argument);
  if ('problem' in choice) {
    screen.notice('info', choice.problem);
    return;
  }
  const listing = await listReverts(files, choice.reverts, choice.passed);
  screen.print(listing.lines.join('\n'));
  if (listing.files + listing.folders === 0) {
    screen.notice('info', 'Nothing was changed.');
    return;
  }
  const verb = kind === 'undo' ? 'Undo' : 'Redo';
  const items = [
    { label: `${verb} the changes in ${countedPaths(listing.files, listing.folders)}`, value: true },
    { label: 'Change nothing', value: false },
  ];
  const yes = await screen.pick({ title: `${verb} what is listed above`, items, confirms: true });
  if (yes !== true || session.busy()) {
    screen.notice('info', 'Nothing was changed.');
    return;
  }
  let done = 0;
  let doneFolders = 0;
  for (const item of choice.reverts) {
    const result = await act(files, item);
    done += result.done.length;
    doneFolders += result.folders.length;
    for (const { path, reason } of result.skipped) screen.notice('warn', `Left ${path}: ${reason}`);
  }
  const paths = countedPaths(done, doneFolders);
  screen.notice(
    'info',
    kind === 'undo' ? `Reverted ${paths}. /redo reapplies the change.` : `Reapplied ${paths}. /undo reverts it again.`,
  );
}
