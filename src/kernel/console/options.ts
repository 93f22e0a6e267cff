import { toolsetNames } from '../config/settings-schema.js';

/** An option of `agent` itself. Its key in the table is the name that commander gives it. */
interface OptionEntry {
  /** The heading in the help. */
  readonly group: string;
  /** As commander reads them: `<value>` is required, `[value]` is optional. */
  readonly flags: string;
  readonly about: string;
  /** The key of the configuration that it sets. */
  readonly setting?: string;
  /** The setting is a number. */
  readonly number?: true;
  /** It may also stand behind a command. */
  readonly global?: true;
  /** Users of other agents type it; the help stays short, and `docs/other-agents.md` lists it. */
  readonly hidden?: true;
  /** With this option `agent` may print something else on a terminal than the REPL. */
  readonly opensRepl?: false;
  readonly default?: string;
  /** A run with this option has its command line in the log, so that it can be repeated. */
  readonly isRecorded?: true;
  /** The value of the option without one. A value follows `=`, so the next word is never taken for it. */
  readonly alone?: string;
  /** It may be given several times; the value is the list of all, in order. */
  readonly repeats?: true;
}

/** All options of `agent` itself, in the order of the help. The command line, the help, the completion scripts, the
 * settings and the early prompt are derived from it. */
export const rootOptions = {
  model: {
    group: 'Model:',
    flags: '-m, --model <[provider/]model>',
    about: 'for example openai/gpt-5.2, opus or sonnet:high',
    setting: 'model',
  },
  provider: {
    group: 'Model:',
    flags: '--provider <name>',
    about: 'provider; all of --model is then its model id',
    setting: 'provider',
  },
  baseUrl: { group: 'Model:', flags: '--base-url <url>', about: "the provider's base URL", setting: 'base_url' },
  fallbackModel: {
    group: 'Model:',
    flags: '--fallback-model <[provider/]model>',
    about: 'models to use when the main one is overloaded or unreachable, in order: a,b',
    setting: 'fallback_model',
  },
  effort: {
    group: 'Model:',
    flags: '--effort <level>',
    about: 'reasoning effort (low, medium, high, …), if supported',
    setting: 'effort',
  },
  maxCost: {
    group: 'Model:',
    flags: '--max-cost <usd>',
    about: 'stop before a request whose projected cost would pass this',
    setting: 'max_cost_usd',
    number: true,
  },
  systemPrompt: {
    group: 'Model:',
    flags: '--append-system-prompt, --system-prompt <text|@file>',
    about: "add your text to the default system prompt; with -c or -r, in place of the session's addition",
    setting: 'system_prompt',
  },
  replaceSystemPrompt: {
    group: 'Model:',
    flags: '--replace-system-prompt <text|@file>',
    about: 'use your text in place of the default system prompt; instructions and skills still follow it',
    setting: 'replace_system_prompt',
  },
  continue: {
    group: 'Session:',
    flags: '-c, --continue',
    about: 'resume the newest session of this directory',
  },
  resume: {
    group: 'Session:',
    flags: '-r, --resume [session]',
    about: 'resume by id, id prefix or title; without a value, pick one',
  },
  fork: {
    group: 'Session:',
    flags: '--fork',
    about: 'with -c or -r: continue in a new session; the old one is unchanged',
  },
  at: {
    group: 'Session:',
    flags: '--at <event>',
    about:
      'with -c or -r: continue right after this event, in a copy with --fork, else by a rewind; later events stay in the log',
  },
  worktree: {
    group: 'Session:',
    flags: '-w, --worktree [name]',
    about: 'work in a separate git worktree beside the repository; created if missing',
  },
  sessionId: {
    group: 'Session:',
    flags: '--session-id <id>',
    about: 'the id of the new session',
    isRecorded: true,
  },
  name: {
    group: 'Session:',
    flags: '-n, --name <title>',
    about: 'the title of the session',
    isRecorded: true,
  },
  bg: {
    group: 'Session:',
    flags: '--bg',
    about: 'start in the background, without a terminal, and print the session id; agent attach opens it',
    opensRepl: false,
  },
  ephemeral: { group: 'Session:', flags: '--ephemeral', about: 'write nothing to disk' },
  tools: {
    group: 'Tools and what they may do:',
    flags: '--tools <a,b,…>',
    about: `only these tools or toolsets (${toolsetNames.join(', ')})`,
  },
  noTools: { group: 'Tools and what they may do:', flags: '--no-tools', about: 'send no tools at all' },
  approval: {
    group: 'Tools and what they may do:',
    flags: '--approval <never|dangerous|mutating|always>',
    about: 'which tool calls need approval (default dangerous)',
    setting: 'approval',
    global: true,
  },
  approvalTimeout: {
    group: 'Tools and what they may do:',
    flags: '--approval-timeout <duration>',
    about: 'deny calls and end questions without an answer after this time (90s, 10m, 2h)',
    setting: 'approval_timeout',
  },
  safe: {
    group: 'Tools and what they may do:',
    flags: '--safe',
    about: 'safe mode: --approval mutating with --sandbox workspace',
    global: true,
  },
  sandbox: {
    group: 'Tools and what they may do:',
    flags: '--sandbox <off|workspace|read-only>',
    about: 'OS sandbox for commands (Linux, macOS; default off)',
    setting: 'sandbox',
    global: true,
  },
  maxToolTurns: {
    group: 'Tools and what they may do:',
    flags: '--max-tool-turns <n>',
    about: 'most responses with tool calls in one user turn (default 50)',
    setting: 'max_tool_turns',
    number: true,
  },
  test: {
    group: 'Tools and what they may do:',
    flags: '--test',
    about: 'unsafe tools answer with canned output, unless TEST_ALLOW=1',
    global: true,
  },
  allowedTools: {
    group: 'Tools and what they may do:',
    flags: '--allowedTools, --allowed-tools <patterns>',
    about: 'calls that need no approval in this run, for example "bash(git log *), file_edit(src/**)"',
    repeats: true,
  },
  disallowedTools: {
    group: 'Tools and what they may do:',
    flags: '--disallowedTools, --disallowed-tools <patterns>',
    about: 'calls that are denied in this run, written as for --allowed-tools',
    hidden: true,
    repeats: true,
  },
  askTools: {
    group: 'Tools and what they may do:',
    flags: '--ask-tools <patterns>',
    about: 'calls that need approval in this run, written as for --allowed-tools',
    hidden: true,
    repeats: true,
  },
  plan: {
    group: 'Tools and what they may do:',
    flags: '--plan',
    about: 'start in plan mode: only calls that read are run',
    isRecorded: true,
  },
  addDir: {
    group: 'Tools and what they may do:',
    flags: '--add-dir <dir[:ro]>',
    about: 'work in this directory too; with :ro, only read there; repeatable',
    repeats: true,
  },
  mcpConfig: {
    group: 'Tools and what they may do:',
    flags: '--mcp-config <file|json>',
    about: 'MCP servers of this run, as mcp.json has them',
    isRecorded: true,
    repeats: true,
  },
  strictMcpConfig: {
    group: 'Tools and what they may do:',
    flags: '--strict-mcp-config',
    about: 'only the MCP servers of --mcp-config',
    isRecorded: true,
  },
  agents: {
    group: 'Tools and what they may do:',
    flags: '--agents <file|json>',
    about: 'sub-agents of this run: {"name": {"description": "…", "prompt": "…", "tools": ["Read"]}}',
    isRecorded: true,
  },
  bare: {
    group: 'Tools and what they may do:',
    flags: '--bare',
    about: 'no instruction files, skills, commands, agents, hooks, plugins and MCP servers of yours or the project',
    isRecorded: true,
  },
  noHooks: { group: 'Tools and what they may do:', flags: '--no-hooks', about: 'do not run hooks' },
  image: {
    group: 'Session:',
    flags: '--image <file|url>',
    about: 'an image or PDF for the first message; repeatable',
    repeats: true,
  },
  print: {
    group: 'Headless:',
    flags: '-p, --print',
    about: 'headless: one user turn, print, exit',
    opensRepl: false,
  },
  goal: {
    group: 'Headless:',
    flags: '--goal <condition>',
    about: 'continue turn by turn until the condition is met; in the REPL type /goal',
    opensRepl: false,
  },
  goalCheck: {
    group: 'Headless:',
    flags: '--goal-check <command>',
    about: 'with --goal: the command that decides after each turn; exit code 0 meets the goal',
    opensRepl: false,
  },
  maxGoalTurns: {
    group: 'Headless:',
    flags: '--max-goal-turns <n>',
    about: 'with --goal: most turns (default 30)',
    opensRepl: false,
  },
  waitForLimit: {
    group: 'Headless:',
    flags: '--wait-for-limit [duration]',
    about: 'wait for the end of a usage limit and continue, at most this long: =90s, =2h (default 6h)',
    alone: '6h',
    opensRepl: false,
  },
  next: {
    group: 'Headless:',
    flags: '--next <prompt>',
    about: 'a further prompt in the same session, once the turn before it is done; repeatable',
    repeats: true,
    isRecorded: true,
    opensRepl: false,
  },
  outputFormat: {
    group: 'Headless:',
    flags: '--output-format <text|json|stream-json>',
    about: 'headless output',
    default: 'text',
    opensRepl: false,
  },
  inputFormat: {
    group: 'Headless:',
    flags: '--input-format <text|stream-json>',
    about: 'stream-json: read messages as lines from standard input, each a turn',
    opensRepl: false,
  },
  permissionPromptTool: {
    group: 'Headless:',
    flags: '--permission-prompt-tool <stdio>',
    about: 'with --input-format stream-json: send permission prompts to the other program',
  },
  dialect: {
    group: 'Headless:',
    flags: '--dialect <agent|claude>',
    about: 'claude: write json and stream-json like Claude Code',
  },
  jsonSchema: {
    group: 'Headless:',
    flags: '--json-schema <file|json>',
    about: 'require a final answer in JSON that matches this schema',
    opensRepl: false,
  },
  output: {
    group: 'Headless:',
    flags: '-o, --output <file>',
    about: 'also write the final answer to this file',
    opensRepl: false,
  },
  verbose: {
    group: 'Headless:',
    flags: '-v, --verbose',
    about: 'headless: print one line per tool call to stderr',
  },
  cwd: { group: 'General:', flags: '-C, --cwd <dir>', about: 'work there', global: true },
  set: {
    group: 'General:',
    flags: '--set <key=value>',
    about: 'override one configuration key; repeatable',
    global: true,
    repeats: true,
  },
  settings: {
    group: 'General:',
    flags: '--settings <file|json>',
    about: 'settings of this run, with our keys or the permissions of Claude Code',
    isRecorded: true,
  },
  debug: { group: 'General:', flags: '--debug', about: 'print stack traces and the log to stderr', global: true },
} as const satisfies OptionTable;

export type OptionTable = Readonly<Record<string, OptionEntry>>;

type Table = typeof rootOptions;
type Value<Flags extends string> = Flags extends `${string} <${string}>`
  ? string
  : Flags extends `${string} [${string}]`
    ? string | true
    : boolean;
/** The options whose value is a list. */
type Repeated = 'image' | 'set' | 'allowedTools' | 'disallowedTools' | 'askTools' | 'addDir' | 'mcpConfig' | 'next';
type Plain = Exclude<keyof Table, 'tools' | 'noTools' | 'noHooks' | 'outputFormat' | Repeated>;

/** The options as commander gives them. Values are checked where they become configuration. */
export type RootOptions = { readonly [Name in Plain]?: Value<Table[Name]['flags']> } & {
  readonly [Name in Exclude<Repeated, 'set'>]?: readonly string[];
} & {
  /** false: `--no-tools`. */
  readonly tools?: string | boolean;
  /** false: `--no-hooks`. */
  readonly hooks?: boolean;
  readonly outputFormat: string;
  readonly set: readonly string[];
  /** The words of the command line that repeat this run; absent where it is not recorded. */
  readonly commandLine?: readonly string[];
  /** The names of the program's slash commands, which no command in a file can take. */
  readonly commandNames?: readonly string[];
};

/** Returns the names in `flags` (`-m` and `--model`), and how the option takes a value. */
export function namesOf(flags: string): {
  readonly names: readonly string[];
  readonly value: 'none' | 'required' | 'optional';
} {
  const at = flags.search(/ [<[]/);
  const names = (at < 0 ? flags : flags.slice(0, at)).split(', ');
  if (at < 0) return { names, value: 'none' };
  return { names, value: flags[at + 1] === '<' ? 'required' : 'optional' };
}

/** Returns the words with the values of options that are given without one. The next word is not their value. */
export function withValues(words: readonly string[], table: OptionTable = rootOptions): readonly string[] {
  const alone = new Map(
    Object.values(table).flatMap(({ flags, alone: value }) =>
      value === undefined ? [] : namesOf(flags).names.map((name) => [name, `${name}=${value}`] as const),
    ),
  );
  return words.map((word) => alone.get(word) ?? word);
}

/** An option that was given. A value `true`: it has no value. */
export interface GivenOption {
  readonly key: string;
  /** Its long name. */
  readonly flag: string;
  readonly values: readonly (string | true)[];
  readonly alone: string | undefined;
  readonly isRecorded: boolean;
}

/** Returns the options that were given, besides those that have their usual value. */
export function givenOptions(options: Partial<RootOptions>): readonly GivenOption[] {
  const table: OptionTable = rootOptions;
  const all: Readonly<Record<string, unknown>> = options;
  return Object.entries(table).flatMap(([key, { flags, default: usual, alone, isRecorded = false }]) => {
    const flag = namesOf(flags).names.at(-1) ?? '';
    const isNo = flag.startsWith('--no-') && all[withoutNo(key)] === false;
    const value = isNo ? true : all[key];
    if (value === undefined || value === false || value === usual) return [];
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    const given = values.map((each) => (each === true ? each : String(each)));
    return given.length === 0 ? [] : [{ key, flag, values: given, alone, isRecorded }];
  });
}

/** Returns an option with a value as it is typed. */
export function optionWords({ flag, alone }: GivenOption, value: string | true): readonly string[] {
  if (value === true) return [flag];
  return alone === undefined ? [flag, value] : [`${flag}=${value}`];
}

/** Commander names `--no-hooks` as `hooks`. */
function withoutNo(key: string): string {
  const name = key.replace(/^no/, '');
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}

/** Returns the long names of the options that may also stand behind a command. */
export function globalOptions(table: OptionTable = rootOptions): readonly string[] {
  return Object.values(table).flatMap(({ flags, global }) => (global ? namesOf(flags).names.slice(-1) : []));
}

/** Returns the settings that the options give, by key. Text that is no number stays text: the schema refuses it. */
export function optionSettings(
  given: Readonly<Record<string, unknown>>,
  table: OptionTable = rootOptions,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, { setting, number }]) => {
      const value = given[name];
      if (setting === undefined || value === undefined) return [];
      return [[setting, number ? numeric(value) : value]];
    }),
  );
}

/** Reads a number as it is read from the environment: digits and a point. */
function numeric(value: unknown): unknown {
  return typeof value === 'string' && /^-?(?:\d+|\d*\.\d+)$/.test(value.trim()) ? Number(value) : value;
}

/** Returns whether the options alone show that the REPL opens on a terminal. A word that is no option may be a command,
 * so the answer is no. */
export function opensRepl(argv: readonly string[], table: OptionTable = rootOptions): boolean {
  const known = new Map(
    Object.values(table).flatMap(({ flags, opensRepl: opens = true }) => {
      const { names, value } = namesOf(flags);
      return opens ? names.map((name) => [name, value] as const) : [];
    }),
  );
  for (let at = 0; at < argv.length; at++) {
    const value = known.get(argv[at] ?? '');
    if (value === undefined) return false;
    const isValue = value === 'required' || (value === 'optional' && /^[^-]/.test(argv[at + 1] ?? ''));
    if (isValue) at++;
  }
  return true;
}
