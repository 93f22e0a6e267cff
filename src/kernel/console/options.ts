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
  /** With this option `agent` may print something else on a terminal than the REPL. */
  readonly opensRepl?: false;
  readonly default?: string;
  /** It may be given several times; the value is the list of all, in order. */
  readonly repeats?: true;
}

/** All options of `agent` itself, in the order of the help. The command line, the help, the completion scripts, the
 * settings and the early prompt are derived from it. */
export const rootOptions = {
  model: {
    group: 'Model:',
    flags: '-m, --model <[provider/]model>',
    about: 'for example openai/gpt-5.2 or openrouter/moonshotai/kimi-k2.6',
    setting: 'model',
  },
  provider: {
    group: 'Model:',
    flags: '--provider <name>',
    about: 'the provider; the whole of --model is then its model id',
    setting: 'provider',
  },
  baseUrl: { group: 'Model:', flags: '--base-url <url>', about: "the provider's base URL", setting: 'base_url' },
  fallbackModel: {
    group: 'Model:',
    flags: '--fallback-model <[provider/]model>',
    about: 'a turn goes on with it where the model is overloaded or cannot be reached',
    setting: 'fallback_model',
  },
  effort: {
    group: 'Model:',
    flags: '--effort <level>',
    about: 'how much a model thinks (low, medium, high, …), where it can be told',
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
    flags: '--system-prompt <text|@file>',
    about: 'your own system prompt, after the default one; with -c or -r it replaces that of the session',
    setting: 'system_prompt',
  },
  continue: {
    group: 'Session:',
    flags: '-c, --continue',
    about: 'resume the newest session of this directory',
  },
  resume: {
    group: 'Session:',
    flags: '-r, --resume [session]',
    about: 'resume by id, id prefix or title; without a value a picker',
  },
  fork: {
    group: 'Session:',
    flags: '--fork',
    about: 'with -c or -r: go on in a new session, the old one stays as it was',
  },
  at: {
    group: 'Session:',
    flags: '--at <event>',
    about:
      'with -c or -r: go on from right after this event; ' +
      'with --fork in the copy, without it by a rewind, which keeps what followed on record',
  },
  worktree: {
    group: 'Session:',
    flags: '-w, --worktree [name]',
    about: 'work in a git worktree of its own, beside the repository; made where there is none',
  },
  ephemeral: { group: 'Session:', flags: '--ephemeral', about: 'keep nothing on disk' },
  tools: {
    group: 'Tools and what they may do:',
    flags: '--tools <a,b,…>',
    about: `only these tools or toolsets (${toolsetNames.join(', ')})`,
  },
  noTools: { group: 'Tools and what they may do:', flags: '--no-tools', about: 'send no tools at all' },
  approval: {
    group: 'Tools and what they may do:',
    flags: '--approval <never|dangerous|mutating|always>',
    about: 'which tool calls wait for a yes (default dangerous)',
    setting: 'approval',
    global: true,
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
    about: 'what the operating system holds commands to (Linux; default off)',
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
    about: 'calls that need no yes in this run, for example "bash(git log *), file_edit(src/**)"',
  },
  noHooks: { group: 'Tools and what they may do:', flags: '--no-hooks', about: 'run none of your hooks' },
  image: {
    group: 'Session:',
    flags: '--image <file>',
    about: 'a picture or PDF for the first message; repeatable',
    repeats: true,
  },
  print: {
    group: 'Headless:',
    flags: '-p, --print',
    about: 'headless: one user turn, print, exit',
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
    about: 'stream-json: messages come as lines on standard input, each is a turn',
    opensRepl: false,
  },
  permissionPromptTool: {
    group: 'Headless:',
    flags: '--permission-prompt-tool <stdio>',
    about: 'with --input-format stream-json: the other program is asked about calls',
  },
  dialect: {
    group: 'Headless:',
    flags: '--dialect <agent|claude>',
    about: "claude: json and stream-json are Claude Code's",
  },
  jsonSchema: {
    group: 'Headless:',
    flags: '--json-schema <file|json>',
    about: 'the final answer has to be JSON that fits this schema',
    opensRepl: false,
  },
  output: {
    group: 'Headless:',
    flags: '-o, --output <file>',
    about: 'write the final answer to this file, too',
    opensRepl: false,
  },
  verbose: {
    group: 'Headless:',
    flags: '-v, --verbose',
    about: 'headless: one line per tool call on stderr',
  },
  cwd: { group: 'General:', flags: '-C, --cwd <dir>', about: 'work there', global: true },
  set: {
    group: 'General:',
    flags: '--set <key=value>',
    about: 'override one configuration key; repeatable',
    global: true,
    repeats: true,
  },
  debug: { group: 'General:', flags: '--debug', about: 'stack traces and the log on stderr', global: true },
} as const satisfies OptionTable;

export type OptionTable = Readonly<Record<string, OptionEntry>>;

type Table = typeof rootOptions;
type Value<Flags extends string> = Flags extends `${string} <${string}>`
  ? string
  : Flags extends `${string} [${string}]`
    ? string | true
    : boolean;
type Plain = Exclude<keyof Table, 'tools' | 'noTools' | 'noHooks' | 'outputFormat' | 'image' | 'set'>;

/** The options as commander gives them. Values are checked where they become configuration. */
export type RootOptions = { readonly [Name in Plain]?: Value<Table[Name]['flags']> } & {
  /** false: `--no-tools`. */
  readonly tools?: string | boolean;
  /** false: `--no-hooks`. */
  readonly hooks?: boolean;
  readonly outputFormat: string;
  readonly image?: readonly string[];
  readonly set: readonly string[];
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
