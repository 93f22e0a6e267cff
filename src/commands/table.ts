import type { Section } from './command.js';

/** Every command of the program. The command line, `agent help`, `/help`, the menu and the completion scripts are made
 * from it. A verb is loaded when it is used: nothing here may import one. */
export const table: readonly Section[] = [
  {
    heading: null,
    entries: [
      {
        slash: ['model [provider/model]', 'show or change the model; --keep keeps it'],
        load: async () => (await import('./settings/switch-model.js')).switchModel,
      },
      {
        slash: ['effort [level]', 'how much the model thinks; --keep keeps it'],
        load: async () => (await import('./connect/choose-effort.js')).chooseEffort,
      },
      {
        slash: ['clear|new', 'start a new session; this one is kept'],
        load: async () => (await import('./conversation/rewind.js')).clear,
      },
      {
        slash: ['fork', 'go on in a copy of this session'],
        load: async () => (await import('./conversation/rewind.js')).fork,
      },
      {
        slash: ['rewind [event]', 'go back to before an earlier message, or to right after an event'],
        load: async () => (await import('./conversation/rewind.js')).rewind,
      },
      {
        slash: [
          'compact [--dry-run] [what to keep]',
          'put a summary in the place of the conversation so far; the originals stay',
        ],
        load: async () => (await import('./conversation/rewind.js')).compact,
      },
      {
        slash: ['uncompact', 'take the last compaction back'],
        load: async () => (await import('./conversation/rewind.js')).uncompact,
      },
      {
        slash: ['context', 'what the next request is made of'],
        load: async () => (await import('./conversation/show-parts.js')).context,
      },
      {
        slash: ['cost', 'tokens and cost of this session'],
        load: async () => (await import('./conversation/show-parts.js')).cost,
      },
      {
        slash: ['budget [+usd, usd or off]', 'what this session may cost'],
        load: async () => (await import('./conversation/show-parts.js')).budget,
      },
      {
        slash: ['init [what matters]', 'write AGENTS.md, instructions for agents, from this repository'],
        load: async () => (await import('./conversation/written-prompts.js')).initProject,
      },
      {
        slash: ['review [commit, branch or range]', 'review changes: not committed, or since a commit or branch'],
        load: async () => (await import('./conversation/written-prompts.js')).reviewChanges,
      },
      {
        slash: ['diff', 'what the calls of this session changed in files'],
        load: async () => (await import('./conversation/show-parts.js')).showChanges,
      },
      {
        slash: ['show [number]', 'an event in full; the last result without a number'],
        load: async () => (await import('./conversation/show-parts.js')).showEvent,
      },
      {
        slash: ['copy [block]', 'copy the last answer, or a code block of it'],
        load: async () => (await import('./conversation/show-parts.js')).copyAnswer,
      },
      {
        slash: ['agents', 'the agents that the model may ask for, their tools and models'],
        load: async () => (await import('./conversation/written-prompts.js')).listAgents,
      },
      {
        slash: ['skills', 'the skills that are found, and where; /skill:name uses one'],
        load: async () => (await import('./conversation/written-prompts.js')).listSkills,
      },
      {
        slash: ['theme [name]', 'other colours: dark, light, none or your own; --keep keeps them'],
        load: async () => (await import('./settings/switch-model.js')).chooseTheme,
      },
      {
        slash: ['approval [always|mutating|dangerous|never]', 'which calls wait for a yes; --keep keeps it'],
        load: async () => (await import('./settings/switch-model.js')).approvalMode,
      },
      {
        slash: ['jobs [number, kill or background]', 'commands in the background: their output, and how one is ended'],
        load: async () => (await import('./tasks/show-jobs.js')).showJobs,
      },
      {
        slash: ['plan [request or off]', 'plan mode: only calls that read are run; off carries the plan out'],
        load: async () => (await import('./settings/plan-mode.js')).planMode,
      },
      {
        slash: ['permissions [add, edit or rm]', 'calls allowed, asked about and denied by rules; change them'],
        load: async () => (await import('./settings/tend-rules.js')).permissions,
      },
    ],
  },
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
        slash: ['rename <title>', 'give this session a title'],
        load: async () => (await import('./sessions/tend-sessions.js')).renameSession,
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
        line: ['sessions import <file>', 'a session from JSON Lines'],
        load: async () => (await import('./sessions/tend-sessions.js')).importSession,
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
    heading: 'Memory:',
    entries: [
      {
        line: ['memory', 'notes for later sessions: list, show, add, edit, pin, approve, remove'],
        slash: ['memory [command] [note]', 'notes for later sessions: list, show, add, edit, pin, approve, rm, …'],
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
    ],
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
        load: async () => (await import('./conversation/undo.js')).undo,
      },
      {
        line: ['redo [event]', 'do again to files what was undone last; `all` for every call'],
        slash: ['redo [event or all]', 'do again to files what was undone last'],
        load: async () => (await import('./conversation/undo.js')).redo,
      },
      {
        line: ['restore <file@event>', 'bring a file back to what it was right after an event'],
        load: async () => (await import('./conversation/undo.js')).restore,
      },
    ],
  },
  {
    heading: 'Tools, models and settings:',
    entries: [
      {
        line: ['tools', 'list, show, call and check tools; add and remove your own'],
        slash: ['tools [+set, -tool or add path]', 'the tools the model has; switch some on and off, or add your own'],
        load: async () => (await import('./settings/use-tools.js')).tools,
      },
      {
        line: ['tools list', 'the catalogue'],
        load: async () => (await import('./settings/use-tools.js')).listTools,
      },
      {
        line: ['tools show <name>', 'its description and schema'],
        load: async () => (await import('./settings/use-tools.js')).showTool,
      },
      {
        line: ['tools call <name> [json]', 'run one tool through the whole path and print its envelope'],
        load: async () => (await import('./settings/use-tools.js')).callTool,
      },
      {
        line: ['tools check <name> [json]', 'what policy says of that call, without running it'],
        load: async () => (await import('./settings/use-tools.js')).checkTool,
      },
      {
        line: ['tools add <path>', 'allow tools of your own: the folder of a tool.json, or an .mjs file'],
        load: async () => (await import('./settings/use-tools.js')).addTools,
      },
      {
        line: ['tools remove <what>', 'take that back; by name, folder or file'],
        load: async () => (await import('./settings/use-tools.js')).removeTools,
      },
      {
        line: ['hooks', 'your own programs that are asked at points of a session'],
        slash: ['hooks', 'your own programs that are asked at points of a session'],
        load: async () => (await import('./settings/list-hooks.js')).hooks,
      },
      {
        line: ['mcp', 'list, show, add, import, remove and try MCP servers'],
        slash: ['mcp [name]', 'the MCP servers of this session; reconnect, login, enable, disable <name>'],
        load: async () => (await import('./settings/use-servers.js')).mcp,
      },
      {
        line: ['mcp list', 'the servers of mcp.json; starts none'],
        load: async () => (await import('./settings/use-servers.js')).listServers,
      },
      {
        line: ['mcp get <name>', 'its entry'],
        load: async () => (await import('./settings/use-servers.js')).showServer,
      },
      {
        line: ['mcp add <name> [command...]', 'a server by its command line behind --, or by --url'],
        load: async () => (await import('./settings/use-servers.js')).addServer,
      },
      {
        line: ['mcp remove <name>', 'take it out of mcp.json'],
        load: async () => (await import('./settings/use-servers.js')).removeServer,
      },
      {
        line: ['mcp import <client>', 'copy the servers of claude-code, codex, cursor, vscode, gemini or opencode'],
        load: async () => (await import('./mcp/import-servers.js')).importServers,
      },
      {
        line: ['mcp test <name>', 'connect to it and list its tools'],
        load: async () => (await import('./settings/use-servers.js')).testServer,
      },
      {
        line: ['mcp login <name>', 'sign in to a server that asks for it'],
        load: async () => (await import('./mcp/sign-in-to-server.js')).signIn,
      },
      {
        line: ['mcp logout <name>', 'delete what a sign-in gave'],
        load: async () => (await import('./mcp/sign-in-to-server.js')).signOut,
      },
      {
        line: ['mcp serve', 'offer our tools to another program, as an MCP server over standard input and output'],
        load: async () => (await import('./settings/use-servers.js')).serveTools,
      },
      {
        line: ['acp', 'serve an editor over standard input and output (Agent Client Protocol)'],
        load: async () => (await import('./doors/serve-programs.js')).serveEditor,
      },
      {
        line: ['schema', 'the JSON Schema of every line that --output-format stream-json prints'],
        load: async () => (await import('./doors/serve-programs.js')).showSchema,
      },
      {
        line: ['config', "path, show, get, set and check the configuration, and trust in a project's"],
        slash: ['config', 'every setting and where it came from'],
        load: async () => (await import('./settings/configure.js')).config,
      },
      {
        line: ['config path', 'where the files are'],
        load: async () => (await import('./settings/configure.js')).configPath,
      },
      {
        line: ['config show', 'every value and where it came from'],
        load: async () => (await import('./settings/configure.js')).configShow,
      },
      {
        line: ['config get <key>', 'one value'],
        load: async () => (await import('./settings/configure.js')).configGet,
      },
      {
        line: ['config set <key> <value>', 'change the user file, comments kept'],
        load: async () => (await import('./settings/configure.js')).configSet,
      },
      {
        line: ['config check', 'read every file and say what is wrong'],
        load: async () => (await import('./settings/configure.js')).configCheck,
      },
      {
        line: ['config trust', "asks about a project's settings that need your trust"],
        load: async () => (await import('./settings/trust-project.js')).trustProject,
      },
      {
        line: [
          'login [provider]',
          'connect a model: its key or a sign-in, checked and kept, and a model of the provider',
        ],
        slash: ['login [provider]', 'connect a model: a key or a sign-in, and a model of the provider'],
        load: async () => (await import('./connect/log-in.js')).login,
      },
      {
        line: ['logout [provider]', 'forget the key of a provider'],
        slash: ['logout [provider]', 'forget the key of a provider'],
        load: async () => (await import('./connect/log-in.js')).logout,
      },
      {
        line: ['providers', 'the providers known here and whether their keys are set; check one'],
        load: async () => (await import('./settings/list-models.js')).listProviders,
      },
      {
        line: ['providers check <name>', 'send one minimal request and say what works: auth, streaming, tools'],
        load: async () => (await import('./settings/list-models.js')).checkProvider,
      },
      {
        line: ['models', 'the models known here, local servers included'],
        load: async () => (await import('./settings/list-models.js')).listModels,
      },
      {
        line: ['doctor', 'checks this machine and says what to do about what is missing'],
        slash: ['doctor', 'check this machine: node, storage, keys, servers, sandbox'],
        load: async () => (await import('./settings/doctor.js')).doctor,
      },
      {
        line: ['completion <shell>', 'a completion script for bash, zsh or fish'],
        load: async () => (await import('./settings/complete-shell.js')).completeShell,
      },
    ],
  },
  {
    heading: 'About the program:',
    entries: [
      {
        line: ['help [command...]', 'what a command does and takes'],
        slash: ['help|?', 'what one can type here'],
        load: async () => (await import('./settings/about.js')).showHelp,
      },
      {
        line: ['version', 'print the version'],
        load: async () => (await import('./settings/about.js')).showVersion,
      },
      {
        slash: ['exit|quit|q', 'leave'],
        leaves: true,
      },
    ],
  },
];
