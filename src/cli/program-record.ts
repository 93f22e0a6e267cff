import { Option, type Command } from 'commander';
import { group, leaf, type Finish } from './program-parts.js';

/** What reads the record: search, audit, statistics, SQL, replay. */
export function addRecord(program: Command, finish: Finish): void {
  addSearch(program, 'search', 'agent search migration error --limit 5', finish);
  addAudit(program, finish);
  addRedact(program, finish);
  leaf(program, 'stats', 'how often and how well tools ran, and what was spent on what', 'agent stats --since 7d')
    .option('--since <time>', 'from then on: 2h, 3d, 2w or a date')
    .option('--here', 'of this directory only')
    .option('--json', 'one JSON array: a row each, with the name of its table')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await import('../commands/record/statistics.js')).showStats(command.optsWithGlobals()));
    });
  leaf(
    program,
    'sql <select>',
    'a question to the record in SQL, read-only',
    'agent sql "SELECT tool, count(*) FROM v_tool_calls GROUP BY tool"',
  )
    .option('--json', 'one JSON array')
    .option('--csv', 'comma-separated values')
    .action(async (sql: string, _options: unknown, command: Command) => {
      finish(await (await import('../commands/record/ask-sql.js')).querySql(sql, command.optsWithGlobals()));
    });
  leaf(program, 'replay <session>', 'show a session again, without model or tools', 'agent replay 0198 --speed 4')
    .option('--speed <n>', 'so many times as fast as it was', '1')
    .option('--instant', 'without waiting')
    .option(
      '--verify',
      'run its file and search calls again in a scratch copy of its directory and say where results differ',
    )
    .option('--json', 'with --verify: one JSON array')
    .action(async (id: string, _options: unknown, command: Command) => {
      finish(await (await import('../commands/record/replay.js')).replaySession(id, command.optsWithGlobals()));
    });
}

function addRedact(program: Command, finish: Finish): void {
  leaf(
    program,
    'redact <session> <event>',
    'take the texts of one event off the record for good; the hash chain stays whole',
    'agent redact 0198 17',
  ).action(async (id: string, seq: string, _options: unknown, command: Command) => {
    finish(
      await (await import('../commands/record/redact-texts.js')).redactSession(id, seq, command.optsWithGlobals()),
    );
  });
}

/** What belongs below `agent sessions`. */
export function addRecordSessions(sessions: Command, finish: Finish): void {
  addSearch(sessions, 'search', 'agent sessions search "exact phrase" begin*', finish);
  leaf(
    sessions,
    'export <session>',
    'as Markdown, JSON Lines, one HTML page or an offline script',
    'agent sessions export 0198 --format html -o session.html',
  )
    .addOption(new Option('--format <md|jsonl|html|script>', 'default: what the name of the file says, else md'))
    .option('-o, --output <file>', 'into this file (mode 0600)')
    .option('--no-redact', 'leave keys as they are')
    .action(async (id: string, _options: unknown, command: Command) => {
      finish(
        await (await import('../commands/sessions/export-session.js')).exportSession(id, command.optsWithGlobals()),
      );
    });
  leaf(sessions, 'import <file>', 'a session from JSON Lines', 'agent sessions import session.jsonl')
    .option('--as-new', 'under an id of its own')
    .action(async (file: string, _options: unknown, command: Command) => {
      finish(
        await (await import('../commands/sessions/import-session.js')).importSession(file, command.optsWithGlobals()),
      );
    });
  leaf(sessions, 'prune', 'list old sessions, and delete them with --yes', 'agent sessions prune --older-than 30d')
    .requiredOption('--older-than <time>', 'not written to since: 45m, 12h, 30d, 8w or a date')
    .option('--yes', 'delete them and all their events')
    .option('--json', 'one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await import('../commands/sessions/prune-sessions.js')).pruneSessions(command.optsWithGlobals()));
    });
}

function addSearch(parent: Command, name: string, example: string, finish: Finish): void {
  leaf(
    parent,
    `${name} <words...>`,
    'full text over prompts, answers, arguments and outputs of all sessions, newest first',
    example,
  )
    .option('--limit <n>', 'at most so many', '20')
    .option('--here', 'sessions of this directory only')
    .option('--json', 'one JSON array')
    .action(async (words: string[], _options: unknown, command: Command) => {
      finish(
        await (await import('../commands/sessions/search-record.js')).searchRecord(words, command.optsWithGlobals()),
      );
    });
}

function addAudit(program: Command, finish: Finish): void {
  const audit = group(
    program,
    'audit',
    'every tool call on record: when, what, how long, how it ended, who allowed it',
    'agent audit --since 2h --errors',
  )
    .option('--session <session>', 'of this session')
    .option('--tool <name>', 'of this tool')
    .option('--since <time>', 'from then on: 2h, 3d, 2w or a date')
    .option('--status <status>', 'ok, failed, open or an error code')
    .option('--errors', 'only what did not end well')
    .option('--limit <n>', 'the newest so many')
    .option('--json', 'one JSON array')
    .option('--csv', 'comma-separated values');
  audit.action(async (_options: unknown, command: Command) => {
    finish(await (await import('../commands/record/audit-calls.js')).auditCalls(command.optsWithGlobals()));
  });
  leaf(
    audit,
    'suggest-rules',
    'allow rules for commands you allowed three times or more and never denied; changes nothing',
    'agent audit suggest-rules',
  )
    .option('--json', 'one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await import('../commands/record/suggest-rules.js')).suggestAllowRules(command.optsWithGlobals()));
    });
  leaf(
    audit,
    'verify [session]',
    'follow the hash chain and name the first break (shows tampering, does not prevent it)',
    'agent audit verify',
  )
    .option('--json', 'one JSON object')
    .action(async (session: string | undefined, _options: unknown, command: Command) => {
      finish(
        await (await import('../commands/record/verify-record.js')).verifyAudit(session, command.optsWithGlobals()),
      );
    });
}
