import type { Section } from '../kernel/console/command.js';

const loadAudit = () => import('./audit.js');
const loadExporting = () => import('./export-session.js');
const loadFigures = () => import('./figures.js');
const loadSessions = () => import('./manage-sessions.js');
const loadRedacting = () => import('./redact-texts.js');
const loadSearch = () => import('./search-record.js');
const loadServing = () => import('./serve-programs.js');
const loadReplaying = () => import('./replay.js');
const loadRunning = () => import('./running-sessions.js');

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
        load: async () => (await loadSessions()).sessions,
      },
      {
        line: ['sessions list', 'List sessions, newest first'],
        load: async () => (await loadSessions()).listSessions,
      },
      {
        line: ['attach [session]', 'Open a running session on this terminal'],
        load: async () => (await loadServing()).attachToSession,
      },
      {
        line: ['watch [session]', 'Follow a session that runs in another terminal'],
        load: async () => (await loadServing()).watchSession,
      },
      {
        line: ['ps', 'List running sessions: state, model, cost, title'],
        load: async () => (await loadRunning()).listRunning,
      },
      {
        line: ['stop <session>', 'End the process that runs a session; the session is saved'],
        load: async () => (await loadRunning()).stopSession,
      },
      {
        line: ['send <session> <text...>', 'Send a message into a session; - reads standard input'],
        load: async () => (await loadRunning()).sendMessage,
      },
      {
        line: ['serve', 'Serve all sessions on this machine, as web pages and an HTTP API'],
        load: async () => (await loadServing()).servePages,
      },
      {
        line: ['sessions show <session>', "Show a session's events, or the request of its next turn"],
        load: async () => (await loadSessions()).showSession,
      },
      {
        line: ['sessions rename <session> <title...>', "Set a session's title"],
        slash: ['rename [title]', "Set this session's title; without one, ask the model for it", 'conversation'],
        also: 'title name',
        load: async () => (await loadSessions()).renameSession,
      },
      {
        line: ['sessions rm <session...>', 'Delete sessions and all their events'],
        load: async () => (await loadSessions()).removeSessions,
      },
      {
        line: [
          'sessions search <words...>',
          'Search prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        load: async () => (await loadSearch()).searchSessions,
      },
      {
        line: ['sessions export <session>', 'Export a session as Markdown, JSON Lines, HTML or an offline script'],
        slash: ['export [file]', 'Export this session to a .md, .html or .jsonl file', 'conversation'],
        also: 'save share transcript download',
        load: async () => (await loadExporting()).exportSession,
      },
      {
        line: ['sessions prune', 'List old sessions; delete them with --yes'],
        load: async () => (await loadSessions()).pruneSessions,
      },
      {
        line: ['search <words...>', 'Search prompts, answers, arguments and outputs of all sessions, newest first'],
        slash: ['search <words>', 'Search all sessions and open a match', 'conversation'],
        also: 'find grep',
        isHarmless: true,
        load: async () => (await loadSearch()).searchRecord,
      },
      {
        line: ['audit', 'List every tool call: time, duration, status and who allowed it'],
        load: async () => (await loadAudit()).auditCalls,
      },
      {
        line: ['audit export', 'Print every tool call as a JSON line; --hash-args hides its arguments'],
        load: async () => (await loadAudit()).exportCalls,
      },
      {
        line: [
          'audit suggest-rules',
          'Suggest allow rules for commands you allowed three times or more and never denied',
        ],
        load: async () => (await loadAudit()).suggestAllowRules,
      },
      {
        line: ['audit verify [session]', 'Verify the hash chain and name the first break'],
        load: async () => (await loadAudit()).verifyRecord,
      },
      {
        line: ['redact <session> <event>', 'Permanently remove the texts of one event; the hash chain stays valid'],
        load: async () => (await loadRedacting()).redactTexts,
      },
      {
        line: ['stats', 'Show how tools performed and what was spent'],
        load: async () => (await loadFigures()).statistics,
      },
      {
        line: ['sql <select>', 'Query the event log in SQL, read-only'],
        load: async () => (await loadFigures()).askSql,
      },
      {
        line: ['replay <session>', 'Replay a session without model or tools'],
        // It draws differences as the screen does: what measures text for that takes 10 ms to load.
        load: async () => (await loadReplaying()).replay,
      },
    ],
  },
];
