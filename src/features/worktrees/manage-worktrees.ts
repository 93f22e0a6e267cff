import { type CommandLine, exit, type CommandHandler } from '../../kernel/console/command.js';
import { columns, printListing } from '../../kernel/console/line-output.js';
import { type Checkout, listWorktrees, removeWorktree, stateOf, stateText } from './git-worktrees.js';

/** `agent worktrees` holds other verbs. */
export const worktrees: CommandHandler = { line: { example: 'agent worktrees list' } };

export const listAll: CommandHandler = {
  line: {
    example: 'agent worktrees list',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async (line, _args, { json }: { json?: boolean }) => {
      const at = place(line);
      const all = await Promise.all(
        (await listWorktrees(at)).map(async (worktree) => ({ worktree, state: await stateOf(at, worktree) })),
      );
      const rows = all.map(({ worktree: { name, path, branch }, state: { changed, ahead } }) => ({
        name,
        path,
        branch,
        changed,
        ahead,
      }));
      printListing(line.out, json, rows, () =>
        all.length === 0
          ? ['There are no worktrees here. Create one with agent -w NAME.']
          : columns(
              all.map(({ worktree: { name, branch, path }, state }) => [name, branch ?? '-', stateText(state), path]),
            ),
      );
      return exit.done;
    },
  },
};

export const removeOne: CommandHandler = {
  line: {
    example: 'agent worktrees rm parser',
    options: (command) => command.option('--force', 'discard uncommitted files'),
    run: async (line, [name = ''], { force }: { force?: boolean }) => {
      line.out.print(`${await removeWorktree(place(line), name, force === true)}\n`);
      return exit.done;
    },
  },
};

function place({ request: { cwd, env } }: CommandLine): Checkout {
  return { cwd, env };
}
