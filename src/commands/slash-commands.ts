import type { Workbench } from '../cli/session/assemble.js';
import { age } from '../cli/print.js';
import type { SessionDesk } from '../cli/repl/current-session.js';
import type { SessionSummary } from '../core/store.js';
import type { Command, CommandContext } from '../ui/command.js';
import { distinctTitles } from './record/record-opening.js';
import { compactCommands } from './sessions/compact.js';
import { recordCommands } from './sessions/export-slash.js';
import { rewindCommand } from './sessions/rewind.js';
import { searchCommand } from './sessions/search-record.js';
import { budgetCommand, contextCommand, costCommand, toolsCommand } from './sessions/usage-report.js';
import { settingsCommands } from './settings/settings-slash.js';
import { modelCommand } from './settings/switch-model.js';
import { undoCommands } from './undo/undo.js';

const fresh = { continueNewest: false, resume: null, fork: false } as const;

/** The slash commands of the REPL beside those that the screen has itself. */
export function replCommands(bench: Workbench, desk: SessionDesk): readonly Command[] {
  return [
    modelCommand(bench, desk),
    ...sessionCommands(bench, desk),
    searchCommand(bench, desk),
    ...undoCommands(desk),
    rewindCommand(desk),
    ...compactCommands(desk),
    toolsCommand(bench),
    contextCommand(bench, desk),
    costCommand(desk),
    budgetCommand(bench, desk),
    ...settingsCommands(bench, desk),
    ...recordCommands(bench, desk),
  ];
}

function sessionCommands(bench: Workbench, desk: SessionDesk): readonly Command[] {
  return [
    {
      name: 'sessions',
      aliases: ['resume'],
      description: 'go on with another session',
      argument: '[id, prefix or title]',
      run: (argument, context) => resume(bench, desk, argument, context),
    },
    {
      name: 'clear',
      aliases: ['new'],
      description: 'start a new session; this one is kept',
      run: (_argument, context) => clear(desk, context),
    },
    {
      name: 'fork',
      description: 'go on in a copy of this session',
      run: async (_argument, context) => {
        const { id } = desk.current().session;
        context.attach(await desk.open({ continueNewest: false, resume: id, fork: true }));
        context.notice('info', `This is a copy; ${id} stays as it was.`);
      },
    },
    {
      name: 'rename',
      description: 'give this session a title',
      argument: '<title>',
      run: async (argument, context) => {
        if (argument.trim() === '') {
          context.notice('warn', 'Give a title: /rename parser rewrite');
          return;
        }
        await desk.rename(argument.trim());
        context.notice('info', `This session is now called ${argument.trim()}.`);
      },
    },
  ];
}

async function clear(desk: SessionDesk, context: CommandContext): Promise<void> {
  const { session } = desk.current();
  const isKept = session.events().length > 0;
  context.attach(await desk.open(fresh));
  context.notice(
    'info',
    isKept ? `A new session. The one before is kept: /sessions ${session.id.slice(0, 13)}.` : 'A new session.',
  );
}

async function resume(bench: Workbench, desk: SessionDesk, argument: string, context: CommandContext): Promise<void> {
  const chosen = argument.trim() === '' ? await pickSession(bench, desk, context) : argument.trim();
  if (chosen === null) return;
  if (chosen === desk.current().session.id) {
    context.notice('info', 'That is this session.');
    return;
  }
  context.attach(await desk.open({ continueNewest: false, resume: chosen, fork: false }));
}

async function pickSession(bench: Workbench, desk: SessionDesk, context: CommandContext): Promise<string | null> {
  const here = desk.current().session.id;
  const rows = (await bench.store.list(Infinity)).filter((row) => row.id !== here && row.events > 0);
  if (rows.length === 0) {
    context.notice('info', 'There are no other sessions yet.');
    return null;
  }
  return await context.pick({
    title: 'Go on with',
    items: pickItems(sortedHereFirst(rows, bench.setup.cwd), bench.setup.cwd),
  });
}

function sortedHereFirst(rows: readonly SessionSummary[], cwd: string): readonly SessionSummary[] {
  return [...rows.filter((row) => row.cwd === cwd), ...rows.filter((row) => row.cwd !== cwd)];
}

interface PickRow {
  readonly label: string;
  readonly detail: string;
  readonly value: string;
}

function pickItems(rows: readonly SessionSummary[], cwd: string): readonly PickRow[] {
  const titles = distinctTitles(rows, 70);
  return rows.map((row, index) => pickItem(row, titles[index] || row.id, cwd));
}

function pickItem(row: SessionSummary, label: string, cwd: string): PickRow {
  const cost = row.costUsd === null || row.costUsd === 0 ? '' : `$${row.costUsd.toFixed(2)}`;
  const detail = [
    `${age(Date.now() - row.updatedAt)} ago`,
    row.model ?? '',
    `${row.events} events`,
    cost,
    row.cwd === cwd ? '' : row.cwd,
  ].filter((part) => part !== '');
  return { label, detail: detail.join(' · '), value: row.id };
}
