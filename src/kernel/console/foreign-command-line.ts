/** An option that users of other agents type. Exactly one of `gives` and `instead` is present. */
export interface ForeignFlag {
  /** As commander would write it; `<dir...>` takes several values. Unique in the table. */
  readonly flags: string;
  /** The programs that have it. */
  readonly of: string;
  /** Our words in its place. `$` is its value, `$tools` its value in our names of tools, `$files` each file of a list,
   * `$prompt` its value as words of the prompt. An object has the words for each value. Empty: nothing is needed. */
  readonly gives?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /** The sentence that names our equal; the program ends with exit code 2. */
  readonly instead?: string;
  /** It is only meant by a value that looks like this. An option of ours may have the same name. */
  readonly looks?: RegExp;
  /** The look of a further value of an option that takes several. */
  readonly more?: RegExp;
  /** The reason that nothing is needed, for the documentation. */
  readonly because?: string;
}

/** A command that users of other agents type. Exactly one of `gives` and `instead` is present. */
export interface ForeignCommand {
  /** Its words, and its operands as its program documents them. Unique in the table. */
  readonly usage: string;
  readonly of: string;
  /** The looks of its operands, in order; all of them may be missing unless `needs` says how many are there. A line with
   * other words is a prompt. */
  readonly takes?: readonly RegExp[];
  readonly needs?: number;
  /** Our words in its place. `$1` and `$2` are its operands; a word whose operand is missing is left out. */
  readonly gives?: readonly string[];
  readonly instead?: string;
}

const claude = 'Claude Code';
const codex = 'Codex';
const gemini = 'Gemini CLI';
const opencode = 'opencode';
const pi = 'pi';

/** Edits of files run unasked, all other changes need approval. */
const editsRun = ['--approval', 'mutating', '--allowed-tools', 'Edit(**)'];
const allRuns = ['--approval', 'never'];

const toolPattern =
  /^(?:[A-Za-z]\w*\(.*\)|mcp__\S+|Agent|Bash|Edit|Glob|Grep|Read|Skill|Task|Web(?:Fetch|Search)|Write)$/s;
const pathLike = /^(?:\.{0,2}\/|~\/|\.{1,2}$)/;
const imageFiles = /^\S+\.(?:png|jpe?g|gif|webp|bmp|pdf)(?:,\S+)*$/i;
const sandboxModes = /^(?:read-only|workspace-write|danger-full-access)$/;
const sandboxes = { 'read-only': ['--sandbox', 'read-only'], 'workspace-write': ['--sandbox', 'workspace'] };

/** Options of Claude Code, Codex, Gemini CLI and opencode that are no options in our help. Source: their command-line
 * references, November 2026. */
export const foreignFlags: readonly ForeignFlag[] = [
  // The system prompt and the model
  { flags: '--append-system-prompt <text>', of: claude, gives: ['--system-prompt', '$'] },
  { flags: '--append-system-prompt-file <file>', of: claude, gives: ['--system-prompt', '@$'] },
  { flags: '--system-prompt-file <file>', of: claude, gives: ['--system-prompt', '@$'] },
  { flags: '--variant <effort>', of: opencode, gives: ['--effort', '$'] },
  { flags: '--max-thinking-tokens <n>', of: claude, instead: 'Use --effort <level>.' },
  { flags: '--advisor <model>', of: claude, instead: 'No second model advises. Choose the model with -m.' },
  { flags: '--betas <header...>', of: claude, instead: 'Headers are settings of the provider: see docs/providers.md.' },
  { flags: '--oss', of: codex, instead: 'Name a local model: -m ollama/<model> or -m lmstudio/<model>.' },
  { flags: '--local-provider <name>', of: codex, gives: ['--provider', '$'] },
  // Approval and sandbox
  {
    flags: '--permission-mode <mode>',
    of: claude,
    gives: {
      default: ['--approval', 'mutating'],
      manual: ['--approval', 'mutating'],
      acceptEdits: editsRun,
      plan: ['--plan'],
      auto: ['--approval', 'dangerous'],
      dontAsk: ['--approval', 'mutating'],
      bypassPermissions: allRuns,
    },
  },
  { flags: '--dangerously-skip-permissions', of: `${claude}, ${opencode}`, gives: allRuns },
  {
    flags: '--allow-dangerously-skip-permissions',
    of: claude,
    instead: 'Start with --approval never, or type /approval never during the session.',
  },
  { flags: '--enable-auto-mode', of: claude, gives: ['--approval', 'dangerous'] },
  {
    flags: '--approval-mode <mode>',
    of: gemini,
    gives: { default: ['--approval', 'mutating'], auto_edit: editsRun, yolo: allRuns, plan: ['--plan'] },
  },
  { flags: '-y, --yolo', of: `${codex}, ${gemini}`, gives: allRuns },
  { flags: '--auto', of: opencode, gives: allRuns },
  {
    flags: '-a, --ask-for-approval <policy>',
    of: codex,
    gives: {
      untrusted: ['--approval', 'mutating'],
      'on-failure': ['--approval', 'dangerous'],
      'on-request': ['--approval', 'dangerous'],
      never: [...allRuns, '--sandbox', 'workspace'],
    },
  },
  { flags: '--full-auto', of: codex, gives: [...allRuns, '--sandbox', 'workspace'] },
  { flags: '--full-access', of: codex, gives: [...allRuns, '--sandbox', 'off'] },
  {
    flags: '--dangerously-bypass-approvals-and-sandbox',
    of: codex,
    gives: [...allRuns, '--sandbox', 'off'],
  },
  {
    flags: '-s, --sandbox <mode>',
    of: codex,
    looks: sandboxModes,
    gives: { ...sandboxes, 'danger-full-access': ['--sandbox', 'off'] },
  },
  { flags: '--skip-trust', of: gemini, instead: 'Review and trust the project once: agent config trust.' },
  // Tools, servers and folders
  {
    flags: '--allowedTools, --allowed-tools <patterns...>',
    of: `${claude}, ${gemini}`,
    gives: ['--allowed-tools', '$'],
    more: toolPattern,
  },
  {
    flags: '--disallowedTools, --disallowed-tools <patterns...>',
    of: claude,
    gives: ['--disallowed-tools', '$'],
    more: toolPattern,
  },
  { flags: '--tools <"">', of: claude, looks: /^$/, gives: ['--no-tools'] },
  { flags: '--tools <default>', of: claude, looks: /^default$/, gives: [], because: 'all tools are offered' },
  {
    flags: '--tools <Names...>',
    of: claude,
    looks: /^[A-Z]\w*(?:[,\s]+[A-Z]\w*)*$/,
    gives: ['--tools', '$tools'],
    more: toolPattern,
  },
  { flags: '--search', of: codex, gives: ['--tools', '+web'] },
  { flags: '--mcp-config <file|json...>', of: claude, gives: ['--mcp-config', '$'], more: /^\{|\.json$/ },
  { flags: '--strict-mcp-config', of: claude, gives: ['--strict-mcp-config'] },
  {
    flags: '--allowed-mcp-server-names <names...>',
    of: gemini,
    instead: 'Switch a server off with "enabled": false in mcp.json, or give the servers of this run: --mcp-config.',
  },
  { flags: '--add-dir <dir...>', of: `${claude}, ${codex}`, gives: ['--add-dir', '$'], more: pathLike },
  { flags: '--include-directories <dirs...>', of: gemini, gives: ['--add-dir', '$files'], more: pathLike },
  {
    flags: '--plugin-dir <dir>',
    of: claude,
    instead: 'Run agent plugin add <folder or git address>.',
  },
  {
    flags: '--plugin-url <url>',
    of: claude,
    instead: 'Run agent plugin add <folder or git address>.',
  },
  {
    flags: '-e, --extensions <names...>',
    of: gemini,
    instead: 'Skills, commands and servers replace extensions: docs/extending.md.',
  },
  { flags: '-l, --list-extensions', of: gemini, instead: 'Run agent skills, agent commands or agent mcp list.' },
  { flags: '--disable-slash-commands', of: claude, instead: 'Put -- before a prompt that begins with a slash.' },
  // Agents
  {
    flags: '--agent <name>',
    of: `${claude}, ${opencode}`,
    instead: 'Name the agent in the prompt; agent agents lists them.',
  },
  {
    flags: '--agents <json>',
    of: claude,
    gives: ['--agents', '$'],
  },
  // Sessions
  { flags: '--max-turns <n>', of: claude, gives: ['--max-tool-turns', '$'] },
  { flags: '--max-session-turns <n>', of: gemini, gives: ['--max-tool-turns', '$'] },
  { flags: '--max-budget-usd <usd>', of: claude, gives: ['--max-cost', '$'] },
  { flags: '--session-id <id>', of: claude, gives: ['--session-id', '$'] },
  { flags: '-n, --name <title>', of: claude, gives: ['--name', '$'] },
  { flags: '--title <title>', of: opencode, gives: ['--name', '$'] },
  { flags: '--no-session-persistence', of: claude, gives: ['--ephemeral'] },
  { flags: '--fork-session', of: claude, gives: ['--fork'] },
  { flags: '-r, --resume <latest>', of: gemini, looks: /^latest$/, gives: ['--continue'] },
  { flags: '-s, --session <id>', of: opencode, looks: /^(?=.*\d)[\w-]{6,}$/, gives: ['--resume', '$'] },
  { flags: '-s', of: gemini, instead: 'Use --sandbox workspace.' },
  { flags: '--list-sessions', of: gemini, instead: 'Run agent sessions list.' },
  { flags: '--delete-session <id>', of: gemini, instead: 'Run agent sessions rm <session>.' },
  { flags: '--from-pr <pr>', of: claude, instead: 'Find the session by its words: agent search <words>.' },
  {
    flags: '--teleport',
    of: claude,
    instead: 'Sessions stay on this machine; a team store shares them: docs/team.md.',
  },
  { flags: '--remote', of: claude, instead: 'Sessions run on this machine; agent serve shows them in a browser.' },
  {
    flags: '--remote-control',
    of: claude,
    instead: 'agent serve shows sessions in a browser, agent watch in a terminal.',
  },
  { flags: '--share', of: opencode, instead: 'Export it: agent sessions export <session> --format html.' },
  { flags: '--attach <url>', of: opencode, instead: 'agent attach opens a session that runs on this machine.' },
  { flags: '--port <n>', of: opencode, instead: 'Run agent serve.' },
  { flags: '--hostname <name>', of: opencode, instead: 'Run agent serve.' },
  { flags: '--tmux', of: claude, instead: 'Use -w for a worktree, and start tmux yourself.' },
  { flags: '--checkpointing', of: gemini, gives: [], because: 'every change of a file can be undone: agent undo' },
  // The prompt
  { flags: '--prompt <text>', of: `${gemini}, ${opencode}`, gives: ['--print', '$prompt'] },
  { flags: '-i, --image <files>', of: codex, looks: imageFiles, gives: ['--image', '$files'] },
  { flags: '-i, --prompt-interactive <text>', of: gemini, gives: ['$prompt'] },
  { flags: '-f, --file <image>', of: opencode, looks: imageFiles, gives: ['--image', '$files'] },
  { flags: '-f, --file <path>', of: opencode, instead: 'Name the file in the prompt: @path.' },
  {
    flags: '--command <name>',
    of: opencode,
    instead: 'Begin the prompt with the command: agent -p "/name arguments".',
  },
  // Output
  { flags: '--json', of: codex, gives: ['--output-format', 'stream-json'] },
  { flags: '--experimental-json', of: codex, gives: ['--output-format', 'stream-json'] },
  {
    flags: '--format <default|json>',
    of: opencode,
    gives: { default: ['--output-format', 'text'], json: ['--output-format', 'stream-json'] },
  },
  { flags: '--output-last-message <file>', of: codex, gives: ['--output', '$'] },
  { flags: '--output-schema <file>', of: codex, gives: ['--json-schema', '$'] },
  {
    flags: '--include-partial-messages',
    of: claude,
    gives: [],
    because: 'stream-json has a line for each part of an answer',
  },
  {
    flags: '--replay-user-messages',
    of: claude,
    instead: 'agent sessions show <session> lists what was sent.',
  },
  { flags: '--include-hook-events', of: claude, instead: 'agent audit lists what hooks decided.' },
  { flags: '--color <when>', of: codex, instead: 'Set NO_COLOR=1 for output without colors.' },
  { flags: '--no-alt-screen', of: codex, gives: [], because: 'the alternate screen is not used' },
  { flags: '--screen-reader', of: gemini, instead: 'Set AGENT_PLAIN=1.' },
  { flags: '--acp', of: gemini, instead: 'Run agent acp.' },
  { flags: '--experimental-acp', of: gemini, instead: 'Run agent acp.' },
  // Settings and the program
  { flags: '--settings <file|json>', of: claude, gives: ['--settings', '$'] },
  {
    flags: '-c, --config <key=value>',
    of: codex,
    looks: /^[\w.]+=/,
    instead: 'Use --set <key=value> with a key of ours: agent config show lists them.',
  },
  {
    flags: '--setting-sources <list>',
    of: claude,
    instead: 'AGENT_HOME=<dir> starts with other settings; --set changes one.',
  },
  {
    flags: '--profile <name>',
    of: codex,
    instead: 'AGENT_HOME=<dir> starts with other settings; --settings <file> adds some for this run.',
  },
  { flags: '--enable <feature>', of: codex, instead: 'Use --set <key=value>: agent config show lists the keys.' },
  { flags: '--disable <feature>', of: codex, instead: 'Use --set <key=value>: agent config show lists the keys.' },
  { flags: '--bare', of: claude, gives: ['--bare'] },
  { flags: '--cd <dir>', of: codex, gives: ['--cwd', '$'] },
  { flags: '--dir <dir>', of: opencode, gives: ['--cwd', '$'] },
  { flags: '--skip-git-repo-check', of: codex, gives: [], because: 'agent runs outside of git repositories, too' },
  { flags: '-d', of: `${claude}, ${gemini}`, gives: ['--debug'] },
  { flags: '--debug-to-stderr', of: claude, gives: ['--debug'] },
  { flags: '--print-logs', of: opencode, gives: ['--debug'] },
  { flags: '--mcp-debug', of: claude, gives: ['--debug'] },
  {
    flags: '--debug-file <file>',
    of: claude,
    instead: 'agent config path names the log file; --debug prints it to stderr.',
  },
  { flags: '--log-level <level>', of: opencode, instead: 'Use --debug.' },
  { flags: '--ide', of: claude, instead: 'Editors start agent acp; agent acp --help says how.' },
  { flags: '--chrome', of: claude, instead: 'Add a browser as an MCP server: docs/mcp.md.' },
  { flags: '--no-chrome', of: claude, gives: [], because: 'there is no browser extension' },
];

const id = /^(?=.*\d)[\w-]{6,}$/;
const word = /^[\w./:@-]+$/;
const anything = /[^]/;

/** A prompt in quotes. */
const sentence = /\s/;
const upgradeHint = 'agent upgrade shows how to upgrade.';
const pluginHint = 'Run agent plugin add <folder, git address or owner/repo>: agent plugin --help lists the rest.';
const keyHint = 'Run agent login <provider> to save a key; agent providers lists what is connected.';

/** Commands of those programs that are none here. Source: as above. */
export const foreignCommands: readonly ForeignCommand[] = [
  // One turn, and sessions
  { usage: 'exec resume --last [prompt]', of: codex, takes: [anything], gives: ['--print', '--continue', '$1'] },
  {
    usage: 'exec resume <session> [prompt]',
    of: codex,
    takes: [id, anything],
    needs: 1,
    gives: ['--print', '--resume=$1', '$2'],
  },
  { usage: 'exec review', of: codex, gives: ['--print', '/review'] },
  { usage: 'exec [prompt]', of: codex, takes: [anything], gives: ['--print', '$1'] },
  { usage: 'e <prompt>', of: codex, takes: [sentence], needs: 1, gives: ['--print', '$1'] },
  { usage: 'run <prompt>', of: opencode, takes: [sentence], needs: 1, gives: ['--print', '$1'] },
  { usage: 'resume --last [prompt]', of: codex, takes: [anything], gives: ['--continue', '$1'] },
  { usage: 'resume <session> [prompt]', of: codex, takes: [id, anything], needs: 1, gives: ['--resume=$1', '$2'] },
  { usage: 'resume <title>', of: codex, takes: [word], needs: 1, gives: ['--resume=$1'] },
  { usage: 'resume', of: codex, gives: ['--resume'] },
  { usage: 'fork --last', of: codex, gives: ['--continue', '--fork'] },
  {
    usage: 'fork <session> [prompt]',
    of: codex,
    takes: [id, anything],
    needs: 1,
    gives: ['--fork', '--resume=$1', '$2'],
  },
  { usage: 'fork', of: codex, gives: ['--fork', '--resume'] },
  { usage: 'session list', of: opencode, gives: ['sessions', 'list'] },
  { usage: 'session delete <session>', of: opencode, takes: [word], needs: 1, gives: ['sessions', 'rm', '$1'] },
  { usage: 'delete <session>', of: codex, takes: [id], needs: 1, gives: ['sessions', 'rm', '$1'] },
  {
    usage: 'archive <session>',
    of: codex,
    takes: [id],
    needs: 1,
    instead: 'Nothing to do: agent sessions prune deletes old sessions.',
  },
  { usage: 'export <session>', of: opencode, takes: [id], needs: 1, gives: ['sessions', 'export', '$1'] },
  {
    usage: 'apply <task>',
    of: codex,
    takes: [id],
    needs: 1,
    instead: 'Changes are made in the folder itself; agent undo reverts them.',
  },
  // Keys and accounts
  { usage: 'auth', of: `${claude}, ${opencode}`, instead: keyHint },
  { usage: 'auth login [provider]', of: `${claude}, ${opencode}`, takes: [word], gives: ['login', '$1'] },
  { usage: 'auth logout [provider]', of: `${claude}, ${opencode}`, takes: [word], gives: ['logout', '$1'] },
  { usage: 'auth list', of: opencode, gives: ['providers'] },
  { usage: 'auth ls', of: opencode, gives: ['providers'] },
  { usage: 'auth status', of: claude, gives: ['providers'] },
  { usage: 'login status', of: codex, gives: ['providers'] },
  { usage: 'setup-token', of: claude, instead: keyHint },
  // Settings
  { usage: 'config list', of: claude, gives: ['config', 'show'] },
  {
    usage: 'config add <key> <value>',
    of: claude,
    takes: [word, anything],
    needs: 1,
    instead: 'Use agent config set <key> <value>.',
  },
  {
    usage: 'config remove <key>',
    of: claude,
    takes: [word],
    needs: 1,
    instead: 'Remove the key from the file that agent config path names.',
  },
  { usage: 'features list', of: codex, instead: 'agent config show lists every setting.' },
  { usage: 'auto-mode defaults', of: claude, instead: 'docs/approval.md says what needs approval in each mode.' },
  {
    usage: 'auto-mode config',
    of: claude,
    instead: '/permissions lists the rules; docs/approval.md says what else needs approval.',
  },
  // Plugins, servers and agents
  { usage: 'plugin install <source>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'add', '$1'] },
  { usage: 'plugin i <source>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'add', '$1'] },
  { usage: 'plugin uninstall <name>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'remove', '$1'] },
  { usage: 'plugin rm <name>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'remove', '$1'] },
  { usage: 'plugin marketplace add <source>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'add', '$1'] },
  { usage: 'plugin marketplace list', of: claude, gives: ['plugin', 'available'] },
  { usage: 'plugin marketplace update', of: claude, gives: ['plugin', 'update'] },
  { usage: 'plugin marketplace remove <name>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'remove', '$1'] },
  { usage: 'plugin validate <folder>', of: claude, takes: [word], needs: 1, instead: pluginHint },
  { usage: 'plugins install <source>', of: claude, takes: [word], needs: 1, gives: ['plugin', 'add', '$1'] },
  { usage: 'plugins list', of: claude, gives: ['plugin', 'list'] },
  { usage: 'extensions install <source>', of: gemini, takes: [word], needs: 1, gives: ['plugin', 'add', '$1'] },
  { usage: 'extensions uninstall <name>', of: gemini, takes: [word], needs: 1, gives: ['plugin', 'remove', '$1'] },
  { usage: 'extensions list', of: gemini, gives: ['plugin', 'list'] },
  {
    usage: 'extensions [command] [source]',
    of: gemini,
    takes: [/^(?:update|enable|disable|link|new|validate|config)$/, word],
    instead: pluginHint,
  },
  { usage: 'skill list', of: gemini, gives: ['skills', 'list'] },
  {
    usage: 'skill [command]',
    of: gemini,
    takes: [/^(?:install|uninstall|enable|disable|link)$/, word],
    instead: 'Run agent skills.',
  },
  {
    usage: 'mcp add-json <name> <json>',
    of: claude,
    takes: [word, anything],
    needs: 1,
    instead:
      'Put the entry into mcp.json (agent config path names its folder), or run agent mcp add <name> -- <command>.',
  },
  { usage: 'mcp add-from-claude-desktop', of: claude, gives: ['mcp', 'import', 'claude-desktop'] },
  { usage: 'mcp reset-project-choices', of: claude, instead: 'Run agent config trust to review the project again.' },
  { usage: 'mcp auth [name]', of: opencode, takes: [word], gives: ['mcp', 'login', '$1'] },
  {
    usage: 'mcp enable <name>',
    of: gemini,
    takes: [word],
    needs: 1,
    instead: 'Set "enabled": true for it in mcp.json.',
  },
  {
    usage: 'mcp disable <name>',
    of: gemini,
    takes: [word],
    needs: 1,
    instead: 'Set "enabled": false for it in mcp.json.',
  },
  { usage: 'mcp-server', of: codex, gives: ['mcp', 'serve'] },
  { usage: 'agent list', of: opencode, gives: ['agents', 'list'] },
  { usage: 'agent create', of: opencode, instead: 'Write a file into .claude/agents: docs/extending.md.' },
  // The program
  {
    usage: 'update [version]',
    of: `${claude}, ${codex}`,
    takes: [/^(?:--check|v?\d[\w.-]*|latest|stable)$/],
    gives: ['upgrade'],
  },
  { usage: 'install [version]', of: claude, takes: [/^(?:v?\d[\w.-]*|latest|stable)$/], instead: upgradeHint },
  { usage: 'migrate-installer', of: claude, instead: upgradeHint },
  {
    usage: 'uninstall',
    of: opencode,
    instead: 'Remove the package: npm uninstall -g agent-shell. agent config path names its files.',
  },
  {
    usage: 'remote-control',
    of: claude,
    instead: 'agent serve shows sessions in a browser, agent watch in a terminal.',
  },
  { usage: 'web', of: opencode, gives: ['serve'] },
  {
    usage: 'app-server',
    of: codex,
    instead: 'Editors start agent acp; programs use agent serve --json or agent -p --input-format stream-json.',
  },
  { usage: 'cloud', of: codex, instead: 'Sessions run on this machine; agent serve shows them in a browser.' },
  {
    usage: 'sandbox <command...>',
    of: codex,
    takes: [/^(?:linux|macos|seatbelt|landlock|windows)$/, anything],
    needs: 1,
    instead: 'Commands of the agent run in it with --sandbox workspace.',
  },
  {
    usage: 'github <install|run>',
    of: opencode,
    takes: [/^(?:install|run)$/],
    needs: 1,
    instead: 'Run agent review or agent -p in the workflow: docs/ci.md.',
  },
  {
    usage: 'pr <number>',
    of: opencode,
    takes: [/^#?\d+$/],
    needs: 1,
    instead: 'Check the branch out (gh pr checkout <number>), then run agent.',
  },
  // Rarer ones
  {
    usage: 'unarchive <session>',
    of: codex,
    takes: [id],
    needs: 1,
    instead: 'Nothing to do: sessions are not archived; agent sessions list lists them.',
  },
  {
    usage: 'a <task>',
    of: codex,
    takes: [/^task_\w+$/],
    needs: 1,
    instead: 'Changes are made in the folder itself; agent undo reverts them.',
  },
  { usage: 'providers login [provider]', of: opencode, takes: [word], gives: ['login', '$1'] },
  { usage: 'providers logout [provider]', of: opencode, takes: [word], gives: ['logout', '$1'] },
  { usage: 'providers list', of: opencode, gives: ['providers'] },
  { usage: 'features', of: codex, instead: 'agent config show lists every setting.' },
  {
    usage: 'features <command> <name>',
    of: codex,
    takes: [/^(?:enable|disable)$/, word],
    needs: 2,
    instead: 'Use agent config set <key> <value>: agent config show lists the keys.',
  },
  { usage: 'auto-mode', of: claude, instead: 'docs/approval.md says what needs approval in each mode.' },
  { usage: 'project purge [folder]', of: claude, takes: [word], instead: 'agent sessions prune deletes old sessions.' },
  { usage: 'ultrareview', of: claude, gives: ['--print', '/review'] },
  { usage: 'ultrareview <target>', of: claude, takes: [word], needs: 1, gives: ['--print', '/review $1'] },
  { usage: 'gateway', of: claude, instead: 'Set the base_url of a provider: docs/providers.md.' },
  {
    usage: 'hooks migrate',
    of: gemini,
    instead: 'agent import lists the hooks of Gemini CLI; write new ones as docs/extending.md says.',
  },
  {
    usage: 'install <source>',
    of: pi,
    takes: [/^(?:npm:|git:|https?:)\S+$/],
    needs: 1,
    gives: ['plugin', 'add', '$1'],
  },
  { usage: 'list', of: pi, gives: ['plugin', 'list'] },
  {
    usage: 'debug [command]',
    of: `${codex}, ${opencode}`,
    takes: [/^(?:agent|app-server|config|file|lsp|models|paths|prompt-input|rg|skill|snapshot)$/],
    instead: 'agent doctor checks this machine; --debug prints the log to stderr.',
  },
  {
    usage: 'app [folder]',
    of: codex,
    takes: [pathLike],
    instead: 'There is no desktop program; agent serve shows sessions in a browser.',
  },
  { usage: 'exec-server', of: codex, instead: 'Programs use agent -p --input-format stream-json.' },
  { usage: 'responses-api-proxy', of: codex, instead: 'Set the base_url of a provider: docs/providers.md.' },
  {
    usage: 'execpolicy check <command...>',
    of: codex,
    takes: [anything],
    needs: 1,
    instead: 'agent tools check bash <json> shows how a command is judged.',
  },
  {
    usage: 'console [command]',
    of: opencode,
    takes: [/^(?:login|logout|switch|orgs|open)$/],
    instead: 'There is no account to sign in to; agent login connects a provider.',
  },
  { usage: 'db path', of: opencode, instead: 'agent config path --json names the database.' },
];
