import type { TeamFacts } from './team.js';
import { exit, type CommandHandler } from '../../kernel/console/command.js';
import { columns, printJson } from '../../kernel/console/line-output.js';
import { withTeam } from './open-team.js';

interface Options {
  readonly json?: boolean;
}

/** Groups the others. */
export const database: CommandHandler = { line: { example: 'agent db status' } };

export const initDatabase: CommandHandler = {
  line: {
    example: 'AGENT_STORE_URL=postgresql://owner@host/agent agent db init',
    options: (command) => command.option('--json', 'as JSON'),
    run: async ({ out, settings }, _args, { json }: Options) =>
      await withTeam(await settings(), async (opened) => {
        const { from, to } = await opened.init();
        if (json) printJson(out, { schema_before: from, schema: to });
        else if (from === to) out.print(`The tables are up to date (schema ${to}).\n`);
        else out.print(`Created the tables (schema ${to}). Next: ${grants}\n`);
        return exit.done;
      }),
  },
};

const grants = "CREATE ROLE ann LOGIN PASSWORD '…' IN ROLE agent_app; for each person";

export const databaseStatus: CommandHandler = {
  line: {
    example: 'agent db status --json',
    options: (command) => command.option('--json', 'as JSON'),
    run: async ({ out, settings }, _args, { json }: Options) =>
      await withTeam(await settings(), async ({ team }) => {
        const facts = await team.facts();
        const shared = (await settings()).config.store.team;
        if (json) printJson(out, { ...asJson(facts), shares_with: shared }, 2);
        else out.print(`${columns(lines(facts, shared)).join('\n')}\n`);
        return exit.done;
      }),
  },
};

function asJson({ server, version, schema, role, teams, encrypted, sessions, events, bytes }: TeamFacts): object {
  return { server, version, schema, role, teams, encrypted, sessions, events, bytes };
}

function lines(facts: TeamFacts, shared: string | null): readonly (readonly string[])[] {
  const bytesInMegabyte = 1_000_000;
  return [
    ['server', `${facts.server}, PostgreSQL ${facts.version}, ${facts.encrypted ? 'encrypted' : 'not encrypted'}`],
    ['tables', `schema ${facts.schema}`],
    ['you', facts.role],
    [
      'may read',
      facts.teams.length === 0 ? 'your own sessions' : `your own sessions and those of ${facts.teams.join(', ')}`,
    ],
    ['share with', shared ?? 'nobody (store.team is not set)'],
    [
      'holds',
      `${facts.sessions} sessions, about ${facts.events} events, ${Math.round(facts.bytes / bytesInMegabyte)} MB`,
    ],
  ];
}
