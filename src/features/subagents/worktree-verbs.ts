import type { SessionRow } from '../../kernel/core/store.js';
import type { Event, EventDraft } from '../../kernel/core/event.js';
import {
  CliError,
  type CliCommand,
  type CommandHandler,
  type CommandLine,
  type CommandStore,
  exit,
} from '../../kernel/console/command.js';
import { findSession } from '../../kernel/console/stored-session.js';
import { createCapture } from '../../kernel/tools/changes/blob-capture.js';
import { WorktreeError } from '../../kernel/tools/worktrees/agent-worktree.js';
import { agentName, findTracked, isUnmerged, type TrackedAgent, trackedAgents } from './agent-log.js';
import { planMerge } from './merge-worktree.js';
import { endInterrupted } from './settle-agents.js';
import { currentDiff, discardAgent, mergeAgent, type MergeScene } from './settle-worktrees.js';

interface Options {
  /** The session; without it the newest of this directory. */
  readonly resume?: string;
  readonly yes?: boolean;
}

const options: CliCommand['options'] = (command) =>
  command
    .option('-r, --resume <session>', 'of this session; the newest of this directory without it')
    .option('-y, --yes', 'do not ask');

/** Shows what an agent changed in its worktree. */
export const diffAgent: CommandHandler = {
  line: {
    example: 'agent agents diff 2',
    options: (command) =>
      command.option('-r, --resume <session>', 'of this session; the newest of this directory without it'),
    run: async (line, [number = ''], given: Options) =>
      await withWorktrees(line, async (opened) => {
        const { row, at } = await placeOf(opened, given);
        const { worktree } = agentIn(await opened.store.load(row.id), number, row);
        line.out.data(await currentDiff(at, worktree));
        return exit.done;
      }),
  },
};

/** Merges what an agent changed in its worktree. */
export const mergeOne: CommandHandler = {
  line: {
    example: 'agent agents merge 2 --yes',
    options,
    run: (line, [number = ''], given: Options) =>
      settle(line, number, given, async (agent, scene, out) => {
        if (!isUnmerged(agent)) throw nothingLeft(agent);
        const plan = await planMerge(scene.at, agent.worktree, agent.agent);
        const lines = [
          ...plan.changes.map(({ path, after }) => `  ${after === null ? 'remove' : 'write '}  ${path}`),
          ...plan.conflicts.map(({ path, reason }) => `  conflict  ${path}: ${reason}`),
        ];
        out.print(`Merge the changes of ${agentName(agent)}:\n${lines.join('\n')}\n`);
        if (!(await allowed(out, given))) return exit.done;
        const merged = await mergeAgent(scene, agent, plan, 'user');
        await tell(scene, `[Note: the user merged the changes of ${agentName(agent)}. ${merged.summary}]`);
        out.print(`${merged.summary.replaceAll('/undo', 'agent undo').replaceAll('/agents', 'agent agents')}\n`);
        return merged.conflicts.length === 0 ? exit.done : exit.failed;
      }),
  },
};

/** Removes the worktree of an agent. */
export const discardOne: CommandHandler = {
  line: {
    example: 'agent agents discard 2 --yes',
    options,
    run: (line, [number = ''], given: Options) =>
      settle(line, number, given, async (agent, scene, out) => {
        const isLeft = isUnmerged(agent) || (agent.state === 'merged' && agent.conflicts.length > 0);
        if (!isLeft) throw nothingLeft(agent);
        out.print(`Discard the worktree of ${agentName(agent)}: ${agent.worktree.path}\n`);
        if (!(await allowed(out, given))) return exit.done;
        const done = await discardAgent(scene, agent);
        await tell(scene, `[Note: the user discarded the worktree of ${agentName(agent)}.]`);
        out.print(`${done.replaceAll('/undo', 'agent undo')}\n`);
        return exit.done;
      }),
  },
};

function nothingLeft({ number, state }: TrackedAgent): CliError {
  const now = state === 'running' ? 'it has not ended, or its session was not resumed since' : `it is ${state}`;
  return new CliError(
    exit.failed,
    `agent ${number} has nothing to merge or discard: ${now}`,
    'agent agents diff shows it.',
  );
}

async function allowed(out: CommandLine['out'], { yes }: Options): Promise<boolean> {
  if (yes === true || (out.canAsk && /^y(es)?$/i.test((await out.ask('Do this? [y/N] ')).trim()))) return true;
  out.print('Nothing was changed. Add --yes to run without asking.\n');
  return false;
}

async function tell({ record }: MergeScene, content: string): Promise<void> {
  await record.append({ kind: 'user', content, data: { note: true } });
}

type WithWorktree = TrackedAgent & { readonly worktree: NonNullable<TrackedAgent['worktree']> };

function agentIn(events: readonly Event[], number: string, row: SessionRow): WithWorktree {
  const all = trackedAgents(events);
  const agent = findTracked(all, number);
  if (agent?.worktree) return { ...agent, worktree: agent.worktree };
  const known = all.filter(({ worktree }) => worktree !== null).map((one) => one.number);
  throw new CliError(
    exit.usage,
    `session ${row.id} has no agent ${number} with a worktree`,
    known.length === 0 ? 'Name another session with -r.' : `There are: ${known.join(', ')}.`,
  );
}

async function placeOf({ store, settings, newestHere }: CommandStore, { resume }: Options) {
  const row = resume === undefined ? await newestHere() : await findSession(store, resume);
  if (!row)
    throw new CliError(
      exit.session,
      `there is no session in ${settings.cwd}`,
      'Name one with -r <session>; agent sessions list shows them.',
    );
  return { row, at: { cwd: row.cwd, env: settings.env } };
}

/** Opens the store. What git refuses becomes an error for the user. */
async function withWorktrees(line: CommandLine, use: (opened: CommandStore) => Promise<number>): Promise<number> {
  return await line.withStore(async (opened) => {
    try {
      return await use(opened);
    } catch (error) {
      if (!(error instanceof WorktreeError)) throw error;
      throw new CliError(exit.failed, error.message, 'agent worktrees list shows the worktrees of this repository.');
    }
  });
}

/** Holds the lease of the session while `use` reads and writes its log. */
async function settle(
  line: CommandLine,
  number: string,
  given: Options,
  use: (agent: WithWorktree, scene: MergeScene, out: CommandLine['out']) => Promise<number>,
): Promise<number> {
  return await withWorktrees(line, async (opened) => {
    const { store, settings } = opened;
    const { row, at } = await placeOf(opened, given);
    const lease = await store.acquire(row.id);
    if (!lease.held)
      throw new CliError(
        exit.session,
        `session ${row.id} is in use by process ${lease.holder.pid} on ${lease.holder.host}`,
        'Use /agents there, or exit that program first.',
      );
    try {
      const events = [...(await store.load(row.id))];
      const append: MergeScene['record']['append'] = async (draft: EventDraft, blobs) => {
        const event: Event = { seq: (events.at(-1)?.seq ?? 0) + 1, createdAt: Date.now(), ...draft };
        await store.append(row.id, event, blobs);
        events.push(event);
        return event;
      };
      const record = {
        events: () => events,
        recent: () => events,
        lastSeq: () => events.at(-1)?.seq ?? 0,
        append,
        blob: (sha256: string) => store.blob(sha256),
      };
      const scene = { record, at, capture: createCapture(settings.secrets, null) };
      await endInterrupted(scene, store, (note) => tell(scene, note));
      return await use(agentIn(events, number, row), scene, line.out);
    } finally {
      await lease.release();
    }
  });
}
