import type { Section } from '../kernel/console/command.js';

const load = () => import('./record-commands.js');

/** Commands of what is kept: sessions, notes, tasks. */
export const record: readonly Section[] = [
  {
    heading: 'Sessions and the record:',
    entries: [
      {
        line: ['sessions', 'List, show, search, export, import, rename and delete sessions'],
        slash: ['resume|sessions|continue|history [id, prefix or title]', 'Switch to another session', 'conversation'],
        also: 'load open switch threads conversations chats',
        needsScreen: 'Use -r: agent -r <session> -p "the next message".',
        load: async () => (await load()).sessions,
      },
      {
        line: ['sessions list', 'List sessions, newest first'],
        load: async () => (await load()).listSessions,
      },
      {
        line: ['attach [session]', 'Open a running session on this terminal'],
        load: async () => (await load()).attachToSession,
      },
      {
        line: ['watch [session]', 'Follow a session that runs in another terminal'],
        load: async () => (await load()).watchSession,
      },
      {
        line: ['ps', 'List running sessions: state, model, cost, title'],
        load: async () => (await load()).listRunning,
      },
      {
        line: ['stop <session>', 'End the process that runs a session; the session is saved'],
        load: async () => (await load()).stopSession,
      },
      {
        line: ['send <session> <text...>', 'Send a message into a session; - reads standard input'],
        load: async () => (await load()).sendMessage,
      },
      {
        line: ['serve', 'Serve all sessions on this machine, as web pages and an HTTP API'],
        load: async () => (await load()).servePages,
      },
      {
        line: ['sessions show <session>', "Show a session's events, or the request of its next turn"],
        load: async () => (await load()).showSession,
      },
      {
        line: ['sessions rename <session> <title...>', "Set a session's title"],
        slash: ['rename [title]', "Set this session's title; without one, ask the model for it", 'conversation'],
        also: 'title name',
        load: async () => (await load()).renameSession,
      },
      {
        line: ['sessions rm <session...>', 'Delete sessions and all their events'],
        load: async () => (await load()).removeSessions,
      },
      {
        line: [
          'sessions search <words...>',
          'Search prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        load: async () => (await load()).searchSessions,
      },
      {
        line: ['sessions export <session>', 'Export a session as Markdown, JSON Lines, HTML or an offline script'],
        slash: ['export [file]', 'Export this session to a .md, .html or .jsonl file', 'conversation'],
        also: 'save share transcript download',
        load: async () => (await load()).exportSession,
      },
      {
        line: ['sessions prune', 'List old sessions; delete them with --yes'],
        load: async () => (await load()).pruneSessions,
      },
      {
        line: ['search <words...>', 'Search prompts, answers, arguments and outputs of all sessions, newest first'],
        slash: ['search <words>', 'Search all sessions and open a match', 'conversation'],
        also: 'find grep',
        isHarmless: true,
        load: async () => (await load()).searchRecord,
      },
      {
        line: ['audit', 'List every tool call: time, duration, status and who allowed it'],
        load: async () => (await load()).auditCalls,
      },
      {
        line: ['audit export', 'Print every tool call as a JSON line; --hash-args hides its arguments'],
        load: async () => (await load()).exportCalls,
      },
      {
        line: [
          'audit suggest-rules',
          'Suggest allow rules for commands you allowed three times or more and never denied',
        ],
        load: async () => (await load()).suggestAllowRules,
      },
      {
        line: ['audit verify [session]', 'Verify the hash chain and name the first break'],
        load: async () => (await load()).verifyRecord,
      },
      {
        line: ['redact <session> <event>', 'Permanently remove the texts of one event; the hash chain stays valid'],
        load: async () => (await load()).redactTexts,
      },
      {
        line: ['stats', 'Show how tools performed and what was spent'],
        load: async () => (await load()).statistics,
      },
      {
        line: ['sql <select>', 'Query the event log in SQL, read-only'],
        load: async () => (await load()).askSql,
      },
      {
        line: ['replay <session>', 'Replay a session without model or tools'],
        // It draws differences as the screen does: what measures text for that takes 10 ms to load.
        load: async () => (await load()).replay,
      },
    ],
  },
];
