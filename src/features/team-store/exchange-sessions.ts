import type { Command } from 'commander';
import { type Exchange, type ExchangeScope, type ExchangeOutcome, redactedLine, type Team } from './team.js';
import {
  CliError,
  type CommandLine,
  exit,
  type CommandStore,
  type CommandHandler,
} from '../../kernel/console/command.js';
import { pointInTime, printJson } from '../../kernel/console/line-output.js';
import { pushAlone } from './background-push.js';
import { syncRows, withExchange } from './open-team.js';

interface Options {
  readonly since?: string;
  readonly session?: string;
  readonly json?: boolean;
  readonly unlessRunning?: boolean;
}

type Work = (exchange: Exchange, scope: ExchangeScope) => Promise<readonly ExchangeOutcome[]>;

const push: Work = (exchange, scope) => exchange.push(scope);
const pushLine = exchangeLine('push', push);

/** `agent db push`: the sessions of this machine go to the server. */
export const pushSessions: CommandHandler = {
  line: {
    ...pushLine,
    options: (command) =>
      pushLine
        .options(command)
        .option('--unless-running', 'send all that is left, unless another push with this option runs'),
    run: (line, args, options: Options) =>
      options.unlessRunning ? pushUnlessRunning(line, options) : pushLine.run(line, args, options),
  },
};

/** `agent db pull`: sessions of other machines and of the team come here. */
export const pullSessions: CommandHandler = { line: exchangeLine('pull', (exchange, scope) => exchange.pull(scope)) };

/** `agent db sync`: first the one, then the other. */
export const syncSessions: CommandHandler = {
  line: exchangeLine('sync', async (exchange, scope) => [
    ...(await push(exchange, scope)),
    ...(await exchange.pull(scope)),
  ]),
};

function exchangeLine(name: string, work: Work) {
  return {
    example: `agent db ${name} --since 7d`,
    options: (command: Command) =>
      command
        .option('--since <time>', 'sessions changed since: 45m, 12h, 30d, 8w or a date')
        .option('--session <session>', 'only this session: id, prefix or title')
        .option('--json', 'one JSON array'),
    run: (line: CommandLine, _args: readonly string[], options: Options) => run(line, options, work),
  };
}

async function pushUnlessRunning(line: CommandLine, { since, session, ...options }: Options): Promise<number> {
  if (since !== undefined || session !== undefined)
    throw new CliError(exit.usage, '--unless-running sends all sessions', 'Leave out --since and --session.');
  return await line.withStore(async (opened) => {
    const rows = await syncRows(opened.tables);
    const outcomes = await pushAlone(opened.store, rows, () => withExchange(opened, (exchange) => push(exchange, {})));
    if (outcomes !== null) return report(line.out, options, outcomes);
    line.out.print('Another push is running. It sends what is here.\n');
    return exit.done;
  });
}

async function run({ out, withStore }: CommandLine, options: Options, work: Work): Promise<number> {
  const since = options.since === undefined ? {} : { since: pointInTime(options.since, '--since', Date.now()) };
  return await withStore(async (opened) => {
    const outcomes = await withExchange(opened, async (exchange, team) => {
      const { session } = options;
      const one = session === undefined ? {} : { sessionId: await namedSession(opened, team, session) };
      return await work(exchange, { ...since, ...one });
    });
    return report(out, options, outcomes);
  });
}

/** Prints what came of an exchange and returns the exit code. */
function report(
  out: CommandLine['out'],
  { json, session }: Pick<Options, 'json' | 'session'>,
  outcomes: readonly ExchangeOutcome[],
): number {
  if (json) printJson(out, outcomes.map(asJson), 2);
  else out.print(`${[...totals(outcomes), ...outcomes.flatMap(branchLine)].join('\n')}\n`);
  const left = outcomes.filter((outcome) => outcome.kind === 'left');
  for (const { sessionId, reason } of left) out.error(`agent: session ${sessionId} is unchanged: ${reason}\n`);
  const unsent = left.flatMap((outcome) => outcome.unsent ?? []);
  if (unsent.length > 0) out.error(`agent: ${unsentText(unsent)} Run \`agent db push\` again.\n`);
  return unsent.length > 0 || (session !== undefined && left.length > 0) ? exit.failed : exit.done;
}

/** `counts`: of each session, the number of its events that are not sent. */
function unsentText(counts: readonly number[]): string {
  const events = counts.reduce((sum, count) => sum + count, 0);
  const which = counts.length === 1 ? '1 session is' : `${counts.length} sessions are`;
  return `${events} event${events === 1 ? '' : 's'} of ${which} not sent.`;
}

/** A session of this machine, or one that the server has. */
async function namedSession({ store }: CommandStore, team: Team, text: string): Promise<string> {
  const match = await store.find(text);
  if (match.found === 'one') return match.session.id;
  const id = text.trim().toUpperCase();
  if (match.found === 'none' && (await team.log.session(id)) !== null) return id;
  throw new CliError(
    exit.session,
    match.found === 'many' ? `several sessions match \`${text}\`` : `there is no session \`${text}\``,
    'agent sessions list shows those of this machine; for one on the server, give the whole id.',
  );
}

function asJson(outcome: ExchangeOutcome): object {
  const { kind, sessionId: session_id } = outcome;
  if (kind === 'branched') return { kind, session_id, branch: outcome.branch };
  if (kind !== 'left') return { kind, session_id, events: outcome.events };
  const unsent = outcome.unsent === undefined ? {} : { unsent: outcome.unsent };
  return { kind, session_id, reason: outcome.reason, ...unsent };
}

function totals(outcomes: readonly ExchangeOutcome[]): readonly string[] {
  const lines = (['pushed', 'pulled'] as const).flatMap((kind) => {
    const moved = outcomes.flatMap((outcome) => (outcome.kind === kind ? [outcome.events] : []));
    if (moved.length === 0) return [];
    const events = moved.reduce((sum, count) => sum + count, 0);
    const verb = kind === 'pushed' ? 'Pushed' : 'Pulled';
    return [
      `${verb} ${events} event${events === 1 ? '' : 's'} of ${moved.length} session${moved.length === 1 ? '' : 's'}.`,
    ];
  });
  return lines.length === 0 ? ['Nothing to exchange.'] : lines;
}

function branchLine(outcome: ExchangeOutcome): readonly string[] {
  if (outcome.kind === 'redacted') return [redactedLine(outcome)];
  if (outcome.kind !== 'branched') return [];
  return [
    `Session ${outcome.sessionId} also continued on another machine. The new events from here are now session ${outcome.branch}.`,
  ];
}
