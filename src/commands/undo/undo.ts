import { resolve } from 'node:path';
import type { RootOptions } from '../../cli/options.js';
import { askLine, errorsAreTerminal, print, printError } from '../../cli/print.js';
import type { SessionDesk } from '../../cli/repl/current-session.js';
import { directoryId, findSession, newestHere, notePlace, type Place } from '../../cli/session/find-session.js';
import { openRecord } from '../../cli/session/session-store.js';
import { setUp } from '../../cli/settings.js';
import type { Event } from '../../core/event.js';
import type { SessionRow, Store } from '../../core/store.js';
import { counted } from '../../tools/outcome.js';
import type { Command, CommandContext } from '../../ui/command.js';
import { CliError, exit } from '../cli-error.js';
import { chooseReverts, listReverts } from './revert-choice.js';
import { act, atPresent, type Revert, type RevertDesk, wishAt } from './revert-plan.js';

export type UndoOptions = RootOptions & { readonly yes?: boolean };

/** `agent undo [event|all]` and `agent redo`: over the newest session of this directory, or the one of `-r`. */
export async function undoAction(kind: 'undo' | 'redo', argument: string, options: UndoOptions): Promise<number> {
  if (!/^(?:all|[1-9]\d*)?$/.test(argument))
    throw new CliError(
      exit.usage,
      `\`${argument}\` is not the number of an event`,
      `For example: agent ${kind} 17, or agent ${kind} all; without one the last change.`,
    );
  return await withDesk(options, async (desk) => {
    const choice = chooseReverts(desk.events(), kind, argument);
    if ('problem' in choice)
      throw new CliError(exit.failed, choice.problem, 'agent audit lists the calls of a session with their events.');
    const { lines, files } = await listReverts(desk, choice.reverts, choice.passed);
    return await carryOut(desk, choice.reverts, { lines, files }, options);
  });
}

/** `agent restore <file>@<event>`: that file as it was right after that event. */
export async function restoreAction(target: string, options: UndoOptions): Promise<number> {
  const parts = /^(.+)@(\d+)$/s.exec(target);
  if (!parts?.[1] || !parts[2])
    throw new CliError(
      exit.usage,
      `\`${target}\` does not name a file and an event`,
      'For example: agent restore src/main.ts@17',
    );
  const seq = Number(parts[2]);
  const named = parts[1];
  return await withDesk(options, async (desk) => {
    const path = resolve(desk.cwd, named);
    const wish = wishAt(desk.events(), path, seq);
    if (!wish)
      throw new CliError(
        exit.failed,
        `this session did not change ${path}, or it was not captured`,
        'agent undo lists what can be taken back.',
      );
    const reverts: readonly Revert[] = [{ kind: 'restore', ofSeq: seq, title: named, wishes: [wish], unwatched: null }];
    return await carryOut(desk, reverts, await listReverts(desk, reverts, []), options);
  });
}

async function carryOut(
  desk: RevertDesk,
  reverts: readonly Revert[],
  { lines, files }: { readonly lines: readonly string[]; readonly files: number },
  options: UndoOptions,
): Promise<number> {
  print(`${lines.join('\n')}\n`);
  if (files === 0) {
    print('Nothing was touched.\n');
    return exit.failed;
  }
  if (!(await allowed(options))) {
    print('Nothing was touched; --yes does it without asking.\n');
    return exit.done;
  }
  let left = 0;
  let done = 0;
  for (const revert of reverts) {
    const result = await act(desk, revert);
    done += result.done.length;
    left += result.skipped.length;
  }
  print(`Done: ${counted(done, 'file')}${left > 0 ? `, ${left} left as they are` : ''}.\n`);
  return exit.done;
}

async function allowed(options: UndoOptions): Promise<boolean> {
  if (options.yes === true) return true;
  if (!process.stdin.isTTY || !errorsAreTerminal()) return false;
  return /^y(es)?$/i.test((await askLine('Do this? [y/N] ')).trim());
}

/** The session's log, read and written under its lease. */
async function withDesk(options: UndoOptions, use: (desk: RevertDesk) => Promise<number>): Promise<number> {
  const setup = await setUp(options);
  const { cwd } = setup;
  const { store } = await openRecord(setup, (message) => {
    printError(`agent: ${message}\n`);
  });
  try {
    const here = { cwd, directoryId: directoryId(cwd) ?? undefined };
    const row = await wanted(store, here, options.resume);
    const lease = await store.acquire(row.id);
    if (!lease.held)
      throw new CliError(
        exit.session,
        `session ${row.id} is in use by process ${lease.holder.pid} on ${lease.holder.host}`,
        'Use /undo there, or end that program first.',
      );
    const { moves } = { ...row, ...(await notePlace(store, row, here)) };
    return await use(atPresent(deskOf(store, row, cwd, [...(await store.load(row.id))]), moves));
  } finally {
    await store.close();
  }
}

async function wanted(store: Store, here: Place, resume: string | true | undefined): Promise<SessionRow> {
  if (typeof resume === 'string') return await findSession(store, resume);
  const newest = await newestHere(store, here);
  if (newest) return newest;
  throw new CliError(
    exit.session,
    `there is no session of ${here.cwd}`,
    'Name one with -r <session>; agent sessions list shows them.',
  );
}

function deskOf(store: Store, row: SessionRow, cwd: string, events: Event[]): RevertDesk {
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

/** `/undo` and `/redo`: what calls did to files, listed first, then taken back or done again. */
export function undoCommands(desk: SessionDesk): readonly Command[] {
  return (['undo', 'redo'] as const).map((kind) => ({
    name: kind,
    argument: '[event or all]',
    description:
      kind === 'undo'
        ? 'take back what the last call, or the one of an event, did to files'
        : 'do again to files what was undone last',
    run: (argument, context) => revert(kind, argument.trim(), desk, context),
  }));
}

async function revert(
  kind: 'undo' | 'redo',
  argument: string,
  desk: SessionDesk,
  context: CommandContext,
): Promise<void> {
  const { session, row } = desk.current();
  if (session.busy()) {
    context.notice('warn', `A turn is running: interrupt it (Esc) before /${kind}.`);
    return;
  }
  const files = atPresent(session, row.moves);
  const choice = chooseReverts(files.events(), kind, argument);
  if ('problem' in choice) {
    context.notice('info', choice.problem);
    return;
  }
  const listing = await listReverts(files, choice.reverts, choice.passed);
  context.print(listing.lines.join('\n'));
  if (listing.files === 0) {
    context.notice('info', 'Nothing was touched.');
    return;
  }
  const verb = kind === 'undo' ? 'Undo' : 'Redo';
  const items = [
    { label: `${verb} the changes in ${counted(listing.files, 'file')}`, value: true },
    { label: 'Leave everything as it is', value: false },
  ];
  const yes = await context.pick({ title: `${verb} what is listed above`, items, confirms: true });
  if (yes !== true || session.busy()) {
    context.notice('info', 'Nothing was touched.');
    return;
  }
  let done = 0;
  for (const item of choice.reverts) {
    const result = await act(files, item);
    done += result.done.length;
    for (const { path, reason } of result.skipped) context.notice('warn', `Left ${path}: ${reason}`);
  }
  const back = kind === 'undo' ? '/redo' : '/undo';
  context.notice('info', `${counted(done, 'file')} ${kind === 'undo' ? 'undone' : 'redone'}; ${back} takes that back.`);
}
