import { Option, type Command } from 'commander';

/** The options of `agent` itself, as commander gives them. Values are checked where they become configuration. */
export interface RootOptions {
  readonly print?: boolean;
  readonly model?: string;
  readonly provider?: string;
  readonly baseUrl?: string;
  readonly continue?: boolean;
  /** true: given without a value. */
  readonly resume?: string | true;
  readonly fork?: boolean;
  readonly at?: string;
  readonly maxToolTurns?: string;
  readonly approval?: string;
  readonly safe?: boolean;
  readonly sandbox?: string;
  /** false: `--no-tools`. */
  readonly tools?: string | boolean;
  readonly systemPrompt?: string;
  readonly outputFormat: string;
  readonly cwd?: string;
  readonly maxCost?: string;
  readonly effort?: string;
  readonly ephemeral?: boolean;
  readonly test?: boolean;
  readonly set: readonly string[];
  readonly verbose?: boolean;
  readonly debug?: boolean;
}

const collect = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

export function addRootOptions(program: Command): Command {
  return program
    .optionsGroup('Model:')
    .option('-m, --model <[provider/]model>', 'for example openai/gpt-5.2 or openrouter/moonshotai/kimi-k2.6')
    .option('--provider <name>', 'the provider; the whole of --model is then its model id')
    .option('--base-url <url>', "the provider's base URL")
    .option('--effort <level>', 'how much a model thinks (low, medium, high, …), where it can be told')
    .option('--max-cost <usd>', 'stop before a request whose projected cost would pass this')
    .option('--system-prompt <text|@file>', 'your own system prompt, after the default one')
    .optionsGroup('Session:')
    .option('-c, --continue', 'resume the newest session of this directory')
    .option('-r, --resume [session]', 'resume by id, id prefix or title; without a value a picker')
    .option('--fork', 'with -c or -r: go on in a new session, the old one stays as it was')
    .option(
      '--at <event>',
      'with -c or -r: go on from right after this event; with --fork in the copy, without it by a rewind, which keeps what followed on record',
    )
    .option('--ephemeral', 'keep nothing on disk')
    .optionsGroup('Tools and what they may do:')
    .option('--tools <a,b,…>', 'only these tools or toolsets (fs, exec)')
    .option('--no-tools', 'send no tools at all')
    .option('--approval <never|dangerous|mutating|always>', 'which tool calls wait for a yes (default dangerous)')
    .option('--safe', 'safe mode: --approval mutating with --sandbox workspace')
    .option('--sandbox <off|workspace|read-only>', 'what the operating system holds commands to (Linux; default off)')
    .option('--max-tool-turns <n>', 'most responses with tool calls in one user turn (default 50)')
    .option('--test', 'unsafe tools answer with canned output, unless TEST_ALLOW=1')
    .optionsGroup('Headless:')
    .option('-p, --print', 'headless: one user turn, print, exit')
    .addOption(new Option('--output-format <text|json|stream-json>', 'headless output').default('text'))
    .option('-v, --verbose', 'headless: one line per tool call on stderr')
    .optionsGroup('General:')
    .option('-C, --cwd <dir>', 'work there')
    .addOption(
      new Option('--set <key=value>', 'override one configuration key; repeatable').argParser(collect).default([], ''),
    )
    .option('--debug', 'stack traces and the log on stderr');
}
