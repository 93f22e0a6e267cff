import type { Section } from '../kernel/console/command.js';

/** Commands of what is kept: sessions, notes, tasks. */
export const record: readonly Section[] = [
  {
    heading: 'Sessions and the record:',
    entries: [
      {
        line: ['sessions', 'List, show, search, export, import, rename and delete sessions'],
        slash: ['sessions|resume [id, prefix or title]', 'Switch to another session'],
        load: async () => (await import('./manage-sessions.js')).sessions,
      },
      {
        line: ['sessions list', 'List sessions, newest first'],
        load: async () => (await import('./manage-sessions.js')).listSessions,
      },
      {
        line: ['watch [session]', 'Follow a session that runs in another terminal'],
        load: async () => (await import('./serve-programs.js')).watchSession,
      },
      {
        line: ['serve', 'Serve all sessions as live web pages on this machine'],
        load: async () => (await import('./serve-programs.js')).servePages,
      },
      {
        line: ['sessions show <session>', "Show a session's events, or the request of its next turn"],
        load: async () => (await import('./manage-sessions.js')).showSession,
      },
      {
        line: ['sessions rename <session> <title...>', "Set a session's title"],
        slash: ['rename [title]', "Set this session's title; without one, ask the model for it"],
        load: async () => (await import('./manage-sessions.js')).renameSession,
      },
      {
        line: ['sessions rm <session...>', 'Delete sessions and all their events'],
        load: async () => (await import('./manage-sessions.js')).removeSessions,
      },
      {
        line: [
          'sessions search <words...>',
          'Search prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        load: async () => (await import('./search-record.js')).searchSessions,
      },
      {
        line: ['sessions export <session>', 'Export a session as Markdown, JSON Lines, HTML or an offline script'],
        slash: ['export [file]', 'Export this session to a .md, .html or .jsonl file'],
        load: async () => (await import('./export-session.js')).exportSession,
      },
      {
        line: ['sessions prune', 'List old sessions; delete them with --yes'],
        load: async () => (await import('./manage-sessions.js')).pruneSessions,
      },
      {
        line: ['search <words...>', 'Search prompts, answers, arguments and outputs of all sessions, newest first'],
        slash: ['search <words>', 'Search all sessions and open a match'],
        load: async () => (await import('./search-record.js')).searchRecord,
      },
      {
        line: ['audit', 'List every tool call: time, duration, status and who allowed it'],
        load: async () => (await import('./audit.js')).auditCalls,
      },
      {
        line: ['audit export', 'Print every tool call as a JSON line; --hash-args hides its arguments'],
        load: async () => (await import('./audit.js')).exportCalls,
      },
      {
        line: [
          'audit suggest-rules',
          'Suggest allow rules for commands you allowed three times or more and never denied',
        ],
        load: async () => (await import('./audit.js')).suggestAllowRules,
      },
      {
        line: ['audit verify [session]', 'Verify the hash chain and name the first break'],
        load: async () => (await import('./audit.js')).verifyRecord,
      },
      {
        line: ['redact <session> <event>', 'Permanently remove the texts of one event; the hash chain stays valid'],
        load: async () => (await import('./redact-texts.js')).redactTexts,
      },
      {
        line: ['stats', 'Show how tools performed and what was spent'],
        load: async () => (await import('./figures.js')).statistics,
      },
      {
        line: ['sql <select>', 'Query the event log in SQL, read-only'],
        load: async () => (await import('./figures.js')).askSql,
      },
      {
        line: ['replay <session>', 'Replay a session without model or tools'],
        load: async () => (await import('./replay.js')).replay,
      },
    ],
  },
];
