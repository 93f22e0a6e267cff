import type { Section } from '../kernel/console/command.js';

/** Commands of what is kept: sessions, notes, tasks. */
export const record: readonly Section[] = [
  {
    heading: 'Sessions and the record:',
    entries: [
      {
        line: ['sessions', 'list, show, search, export, import, rename and remove sessions'],
        slash: ['sessions|resume [id, prefix or title]', 'go on with another session'],
        load: async () => (await import('./manage-sessions.js')).sessions,
      },
      {
        line: ['sessions list', 'newest first'],
        load: async () => (await import('./manage-sessions.js')).listSessions,
      },
      {
        line: ['watch [session]', 'follow a session that runs in another terminal'],
        load: async () => (await import('./serve-programs.js')).watchSession,
      },
      {
        line: ['serve', 'all sessions as pages for a browser on this machine, also as they go on'],
        load: async () => (await import('./serve-programs.js')).servePages,
      },
      {
        line: ['sessions show <session>', 'its events, or the request its next turn would send'],
        load: async () => (await import('./manage-sessions.js')).showSession,
      },
      {
        line: ['sessions rename <session> <title...>', 'give it a title'],
        slash: ['rename [title]', 'give this session a title; without one the model is asked for it'],
        load: async () => (await import('./manage-sessions.js')).renameSession,
      },
      {
        line: ['sessions rm <session...>', 'delete sessions and all their events'],
        load: async () => (await import('./manage-sessions.js')).removeSessions,
      },
      {
        line: [
          'sessions search <words...>',
          'full text over prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        load: async () => (await import('./search-record.js')).searchSessions,
      },
      {
        line: ['sessions export <session>', 'as Markdown, JSON Lines, one HTML page or an offline script'],
        slash: ['export [file]', 'write this session to a file: .md, .html or .jsonl'],
        load: async () => (await import('./export-session.js')).exportSession,
      },
      {
        line: ['sessions prune', 'list old sessions, and delete them with --yes'],
        load: async () => (await import('./manage-sessions.js')).pruneSessions,
      },
      {
        line: [
          'search <words...>',
          'full text over prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        slash: ['search <words>', 'find words in all sessions and go on there'],
        load: async () => (await import('./search-record.js')).searchRecord,
      },
      {
        line: ['audit', 'every tool call on record: when, what, how long, how it ended, who allowed it'],
        load: async () => (await import('./audit.js')).auditCalls,
      },
      {
        line: ['audit export', 'every tool call as a line of JSON; --hash-args leaves out what it was made with'],
        load: async () => (await import('./audit.js')).exportCalls,
      },
      {
        line: [
          'audit suggest-rules',
          'allow rules for commands you allowed three times or more and never denied; changes nothing',
        ],
        load: async () => (await import('./audit.js')).suggestAllowRules,
      },
      {
        line: [
          'audit verify [session]',
          'follow the hash chain and name the first break (shows tampering, does not prevent it)',
        ],
        load: async () => (await import('./audit.js')).verifyRecord,
      },
      {
        line: [
          'redact <session> <event>',
          'take the texts of one event off the record for good; the hash chain stays whole',
        ],
        load: async () => (await import('./redact-texts.js')).redactTexts,
      },
      {
        line: ['stats', 'how often and how well tools ran, and what was spent on what'],
        load: async () => (await import('./figures.js')).statistics,
      },
      {
        line: ['sql <select>', 'a question to the record in SQL, read-only'],
        load: async () => (await import('./figures.js')).askSql,
      },
      {
        line: ['replay <session>', 'show a session again, without model or tools'],
        load: async () => (await import('./replay.js')).replay,
      },
    ],
  },
];
