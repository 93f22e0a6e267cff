import type { Entry, Section } from './command.js';

const memory: readonly Entry[] = [
  {
    line: ['memory', 'notes for later sessions: list, show, add, edit, pin, approve, remove'],
    slash: ['memory|notes [command] [note]', 'notes for later sessions: list, show, add, edit, pin, approve, rm, …'],
    load: async () => (await import('./memory/tend-notes.js')).memory,
  },
  {
    line: ['memory list', 'pinned ones first, then the newest'],
    load: async () => (await import('./memory/tend-notes.js')).listNotes,
  },
  {
    line: ['memory show <note>', 'the whole note, who kept it and when'],
    load: async () => (await import('./memory/tend-notes.js')).showNote,
  },
  {
    line: ['memory add <text...>', 'keep a fact for later sessions of this directory'],
    load: async () => (await import('./memory/tend-notes.js')).addNote,
  },
  {
    line: ['memory edit <note> <text...>', 'put another text in its place'],
    load: async () => (await import('./memory/tend-notes.js')).editNote,
  },
  {
    line: ['memory pin <note...>', 'have it in the prompt of every new session'],
    load: async () => (await import('./memory/tend-notes.js')).pinNote,
  },
  {
    line: ['memory unpin <note...>', 'leave it to its age again'],
    load: async () => (await import('./memory/tend-notes.js')).unpinNote,
  },
  {
    line: ['memory approve <note...>', 'let prompts show what text from outside may have asked for'],
    load: async () => (await import('./memory/tend-notes.js')).approveNote,
  },
  {
    line: ['memory restore <note...>', 'bring it back from the archive'],
    load: async () => (await import('./memory/tend-notes.js')).restoreNote,
  },
  {
    line: ['memory rm <note...>', 'remove it for good'],
    load: async () => (await import('./memory/tend-notes.js')).removeNote,
  },
];

/** `agent notes` is `agent memory`. Source: contracts 10. */
function underNotes(entry: Entry): Entry {
  const [usage = '', about = ''] = entry.line ?? [];
  return {
    line: [usage.replace(/^memory/, 'notes'), usage === 'memory' ? 'the same as memory' : about],
    load: async () => {
      const form = (await entry.load?.())?.line;
      return form ? { line: form } : {};
    },
  };
}

/** Commands of what is kept: sessions, notes, tasks. */
export const record: readonly Section[] = [
  {
    heading: 'Sessions and the record:',
    entries: [
      {
        line: ['sessions', 'list, show, search, export, import, rename and remove sessions'],
        slash: ['sessions|resume [id, prefix or title]', 'go on with another session'],
        load: async () => (await import('./sessions/tend-sessions.js')).sessions,
      },
      {
        line: ['sessions list', 'newest first'],
        load: async () => (await import('./sessions/tend-sessions.js')).listSessions,
      },
      {
        line: ['watch [session]', 'follow a session that runs in another terminal'],
        load: async () => (await import('./doors/serve-programs.js')).watchSession,
      },
      {
        line: ['serve', 'all sessions as pages for a browser on this machine, also as they go on'],
        load: async () => (await import('./doors/serve-programs.js')).servePages,
      },
      {
        line: ['sessions show <session>', 'its events, or the request its next turn would send'],
        load: async () => (await import('./sessions/tend-sessions.js')).showSession,
      },
      {
        line: ['sessions rename <session> <title...>', 'give it a title'],
        slash: ['rename [title]', 'give this session a title; without one the model is asked for it'],
        load: async () => (await import('./sessions/tend-sessions.js')).renameSession,
      },
      {
        line: ['worktrees', 'list and remove the git worktrees that -w works in'],
        load: async () => (await import('./comfort/tend-worktrees.js')).worktrees,
      },
      {
        line: ['worktrees list', 'those of this repository, and what is in them'],
        load: async () => (await import('./comfort/tend-worktrees.js')).listAll,
      },
      {
        line: ['worktrees rm <name>', 'remove one; changes that are not committed are kept unless forced'],
        load: async () => (await import('./comfort/tend-worktrees.js')).removeOne,
      },
      {
        line: ['sessions rm <session...>', 'delete sessions and all their events'],
        load: async () => (await import('./sessions/tend-sessions.js')).removeSessions,
      },
      {
        line: [
          'sessions search <words...>',
          'full text over prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        load: async () => (await import('./sessions/search-record.js')).searchSessions,
      },
      {
        line: ['sessions export <session>', 'as Markdown, JSON Lines, one HTML page or an offline script'],
        slash: ['export [file]', 'write this session to a file: .md, .html or .jsonl'],
        load: async () => (await import('./sessions/export-session.js')).exportSession,
      },
      {
        line: ['sessions import [file]', 'a session from JSON Lines, or what you did with other programs'],
        load: async () => (await import('./histories/import-sessions.js')).importSession,
      },
      {
        line: ['sessions prune', 'list old sessions, and delete them with --yes'],
        load: async () => (await import('./sessions/tend-sessions.js')).pruneSessions,
      },
      {
        line: [
          'search <words...>',
          'full text over prompts, answers, arguments and outputs of all sessions, newest first',
        ],
        slash: ['search <words>', 'find words in all sessions and go on there'],
        load: async () => (await import('./sessions/search-record.js')).searchRecord,
      },
      {
        line: ['audit', 'every tool call on record: when, what, how long, how it ended, who allowed it'],
        load: async () => (await import('./record/audit.js')).auditCalls,
      },
      {
        line: ['audit export', 'every tool call as a line of JSON; --hash-args leaves out what it was made with'],
        load: async () => (await import('./record/audit.js')).exportCalls,
      },
      {
        line: [
          'audit suggest-rules',
          'allow rules for commands you allowed three times or more and never denied; changes nothing',
        ],
        load: async () => (await import('./record/audit.js')).suggestAllowRules,
      },
      {
        line: [
          'audit verify [session]',
          'follow the hash chain and name the first break (shows tampering, does not prevent it)',
        ],
        load: async () => (await import('./record/audit.js')).verifyRecord,
      },
      {
        line: [
          'redact <session> <event>',
          'take the texts of one event off the record for good; the hash chain stays whole',
        ],
        load: async () => (await import('./record/redact-texts.js')).redactTexts,
      },
      {
        line: ['stats', 'how often and how well tools ran, and what was spent on what'],
        load: async () => (await import('./record/figures.js')).statistics,
      },
      {
        line: ['sql <select>', 'a question to the record in SQL, read-only'],
        load: async () => (await import('./record/figures.js')).askSql,
      },
      {
        line: ['replay <session>', 'show a session again, without model or tools'],
        load: async () => (await import('./record/replay.js')).replay,
      },
    ],
  },
  {
    heading: 'Team:',
    entries: [
      {
        line: ['db', 'the PostgreSQL database of `store.url` that a team shares its sessions through'],
        load: async () => (await import('./team/tend-database.js')).database,
      },
      {
        line: ['db init', 'make its tables, or bring them up to date; for its owner'],
        load: async () => (await import('./team/tend-database.js')).initDatabase,
      },
      {
        line: ['db status', 'who you are there, what it holds, and who else may read it'],
        load: async () => (await import('./team/tend-database.js')).databaseStatus,
      },
      {
        line: ['db push', 'send it the sessions of this machine'],
        load: async () => (await import('./team/exchange-sessions.js')).pushSessions,
      },
      {
        line: ['db pull', 'fetch sessions of your other machines and of the team'],
        load: async () => (await import('./team/exchange-sessions.js')).pullSessions,
      },
      {
        line: ['db sync', 'both, one after the other'],
        load: async () => (await import('./team/exchange-sessions.js')).syncSessions,
      },
    ],
  },
  {
    heading: 'Memory:',
    entries: [...memory, ...memory.map(underNotes)],
  },
  {
    heading: 'Tasks:',
    entries: [
      {
        line: ['tasks', 'what is done at its time: list, show, run, pause, remove, fire'],
        slash: ['tasks [command] [task or run]', 'reminders and scheduled work: list, show, run, pause, inbox, …'],
        load: async () => (await import('./tasks/fire-tasks.js')).tasks,
      },
      {
        line: ['tasks list', 'the next one first'],
        load: async () => (await import('./tasks/tend-tasks.js')).listTasks,
      },
      {
        line: ['tasks show <task>', 'all that is known of it, and its last runs'],
        load: async () => (await import('./tasks/tend-tasks.js')).showTask,
      },
      {
        line: ['tasks run <task>', 'do it now, whatever its schedule says'],
        load: async () => (await import('./tasks/fire-tasks.js')).runTask,
      },
      {
        line: ['tasks pause <task>', 'leave it out until it is resumed'],
        load: async () => (await import('./tasks/tend-tasks.js')).pauseTask,
      },
      {
        line: ['tasks resume <task>', 'go on with its next time, and keep it beyond its end'],
        load: async () => (await import('./tasks/tend-tasks.js')).resumeTask,
      },
      {
        line: ['tasks rm <task>', 'remove it'],
        load: async () => (await import('./tasks/tend-tasks.js')).removeTask,
      },
      {
        line: ['tasks inbox', 'what came of tasks and you were not told yet'],
        load: async () => (await import('./tasks/tend-tasks.js')).taskInbox,
      },
      {
        line: ['tasks runs [task]', 'what came of each run, newest first'],
        load: async () => (await import('./tasks/tend-tasks.js')).listRuns,
      },
      {
        line: [
          'tasks approve <run>',
          'show the call that a run wanted a yes for, allow this task exactly that, and run it',
        ],
        load: async () => (await import('./tasks/fire-tasks.js')).approveRun,
      },
      {
        line: ['tasks run-due', 'fire what is due, and end'],
        load: async () => (await import('./tasks/fire-tasks.js')).runDueTasks,
      },
      {
        line: ['tasks timer <kind>', 'print what makes systemd, launchd or cron fire tasks each minute'],
        load: async () => (await import('./tasks/fire-tasks.js')).printTimer,
      },
      {
        line: ['tasks daemon', 'fire tasks until it is ended'],
        load: async () => (await import('./tasks/fire-tasks.js')).taskDaemon,
      },
    ],
  },
  {
    heading: 'Take back:',
    entries: [
      {
        line: [
          'undo [event]',
          'take back what the last call, or the one of an event, did to files; `all` for every call',
        ],
        slash: ['undo [event or all]', 'take back what the last call, or the one of an event, did to files'],
        waits: true,
        load: async () => (await import('./conversation/undo.js')).undo,
      },
      {
        line: ['redo [event]', 'do again to files what was undone last; `all` for every call'],
        slash: ['redo [event or all]', 'do again to files what was undone last'],
        waits: true,
        load: async () => (await import('./conversation/undo.js')).redo,
      },
      {
        line: ['restore <file@event>', 'bring a file back to what it was right after an event'],
        load: async () => (await import('./conversation/undo.js')).restore,
      },
    ],
  },
];
