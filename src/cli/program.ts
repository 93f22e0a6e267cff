import { Command, Help, Option } from 'commander';
import { didYouMean, editDistance } from '../core/text.js';
import { CliError, exit } from '../commands/cli-error.js';
import type { EarlyFrame } from './early-frame.js';
import { type OptionTable, rootOptions, type RootOptions } from './options.js';
import { group, helpFlags, leaf, type Finish } from './program-parts.js';
import { askLine, errorsAreTerminal, outputColumns, outputIsTerminal, print } from './print.js';
import { addRecord, addRecordSessions } from './program-record.js';
import { version, versionFlags } from './version.js';
import { defaultWire, wireNames } from '../providers/wires/known-wires.js';

export interface ProgramOptions {
  /** Prompt words from behind `--`. */
  readonly rest: readonly string[];
  readonly early: EarlyFrame | null;
  readonly finish: (exitCode: number) => void;
}

const rootExamples = `
Examples:
  agent                                   open the REPL
  agent -p "explain src/main.ts"          one answer, printed
  git diff | agent -p "review this"       piped input is appended to the prompt
  agent -c                                go on with the newest session here
  agent -m openrouter/moonshotai/kimi-k2.6  use this model`;

/** The command line. Each action loads what it needs and nothing else. */
export function buildProgram({ rest, early, finish }: ProgramOptions): Command {
  const program = addOptions(new Command('agent'), rootOptions)
    .description(
      'An interactive terminal agent shell: everything a model does on your machine is on screen and on record.',
    )
    .argument('[prompt...]', 'what to do; in the REPL it is submitted first')
    .version(version, versionFlags, 'print the version')
    .helpOption(...helpFlags)
    .addHelpText('after', rootExamples)
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      writeOut: print,
      getOutHelpWidth: () => Math.min(helpColumns, outputColumns() ?? helpColumns),
      writeErr: () => {
        /* errors are printed once, by run */
      },
    })
    .configureHelp({ minWidthToWrap: 24, optionDescription: describeOption })
    .action(async (words: string[], options: RootOptions) => {
      if (rest.length === 0)
        await askAboutCommand(
          words,
          options,
          program.commands.map((command) => command.name()),
        );
      finish(await (await import('./headless.js')).runChat([...words, ...rest], options, early));
    });
  program.commandsGroup('Sessions and the record:');
  addSessions(program, finish);
  addRecord(program, finish);
  program.commandsGroup('Take back:');
  addUndo(program, finish);
  program.commandsGroup('Tools, models and settings:');
  addTools(program, finish);
  addConfig(program, finish);
  addRest(program, finish);
  program.commandsGroup('About the program:');
  addAbout(program, finish);
  return program;
}

export function addOptions(program: Command, table: OptionTable): Command {
  for (const { group: heading, flags, about, default: preset, repeats } of Object.values(table)) {
    const option = new Option(flags, about);
    if (preset !== undefined) option.default(preset);
    if (repeats) option.argParser(appended).default([], '');
    program.optionsGroup(heading).addOption(option);
  }
  return program;
}

const appended = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

/** Where nobody knows how wide the reader's lines are. */
const helpColumns = 100;

/** A default that is an empty list says nothing. */
function describeOption(this: Help, option: Option): string {
  return Array.isArray(option.defaultValue) ? option.description : Help.prototype.optionDescription.call(this, option);
}

/** One word that is nearly a command was hardly meant for a model, which may cost money: a person is asked, elsewhere
 * it is a usage error. */
async function askAboutCommand(
  words: readonly string[],
  options: RootOptions,
  commands: readonly string[],
): Promise<void> {
  const [word = ''] = words;
  const isPrompt =
    words.length !== 1 || options.print === true || options.continue === true || options.resume !== undefined;
  const near = isPrompt
    ? undefined
    : commands.find((name) => editDistance(word.toLowerCase(), name) <= (word.length < 6 ? 1 : 2));
  if (near === undefined) return;
  const mistake = `\`${word}\` is not a command; did you mean \`agent ${near}\`?`;
  const isAsked = process.stdin.isTTY && outputIsTerminal() && errorsAreTerminal();
  if (isAsked && /^y(es)?$/i.test((await askLine(`${mistake} Send it as a prompt? [y/N] `)).trim())) return;
  throw new CliError(exit.usage, mistake, `A prompt of that one word goes behind --: agent -- ${word}`);
}

function addSessions(program: Command, finish: Finish): void {
  const sessions = group(
    program,
    'sessions',
    'list, show, search, export, import, rename and remove sessions',
    'agent sessions list',
  );
  const load = () => import('../commands/sessions/list-sessions.js');
  leaf(sessions, 'list', 'newest first', 'agent sessions list --here --json')
    .option('--here', 'only those of this directory')
    .option('--limit <n>', 'at most so many (default 50, with --json all)')
    .option('--page <n>', 'the second, third, … so many')
    .option('--json', 'one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await load()).listSessions(command.optsWithGlobals()));
    });
  leaf(
    sessions,
    'show <session>',
    'its events, or the request its next turn would send',
    `agent sessions show 0198 --as ${defaultWire}`,
  )
    .option('--as <wire>', `the request body: ${wireNames.slice(0, -1).join(', ')} or ${wireNames.at(-1) ?? ''}`)
    .option('--prompt <text>', 'with --as: add this user turn')
    .option('--json', 'one JSON array of events')
    .action(async (id: string, _options: unknown, command: Command) => {
      finish(await (await load()).showSession(id, command.optsWithGlobals()));
    });
  leaf(
    sessions,
    'rename <session> <title...>',
    'give it a title',
    'agent sessions rename 0198 "parser rewrite"',
  ).action(async (id: string, title: string[], _options: unknown, command: Command) => {
    finish(await (await load()).renameSession(id, title.join(' '), command.optsWithGlobals()));
  });
  leaf(sessions, 'rm <session...>', 'delete sessions and all their events', 'agent sessions rm 0198').action(
    async (ids: string[], _options: unknown, command: Command) => {
      finish(await (await load()).removeSessions(ids, command.optsWithGlobals()));
    },
  );
  addRecordSessions(sessions, finish);
}

function addTools(program: Command, finish: Finish): void {
  const tools = group(
    program,
    'tools',
    'list, show, call and check tools',
    'agent tools call glob \'{"pattern":"**/*.md"}\'',
  );
  const load = () => import('../commands/settings/call-tools.js');
  leaf(tools, 'list', 'the catalogue', 'agent tools list --json')
    .option('--json', 'one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await load()).listTools(command.optsWithGlobals()));
    });
  leaf(tools, 'show <name>', 'its description and schema', 'agent tools show grep')
    .option('--json', 'the schema as JSON')
    .action(async (name: string, _options: unknown, command: Command) => {
      finish(await (await load()).showTool(name, command.optsWithGlobals()));
    });
  leaf(
    tools,
    'call <name> [json]',
    'run one tool through the whole path and print its envelope',
    'agent tools call bash \'{"command":"date"}\'',
  ).action(async (name: string, json: string | undefined, _options: unknown, command: Command) => {
    finish(await (await load()).callTool(name, json ?? '', command.optsWithGlobals()));
  });
  leaf(
    tools,
    'check <name> [json]',
    'what policy says of that call, without running it',
    'agent tools check bash \'{"command":"rm -rf /"}\'',
  ).action(async (name: string, json: string | undefined, _options: unknown, command: Command) => {
    finish(await (await load()).checkTool(name, json ?? '', command.optsWithGlobals()));
  });
}

function addConfig(program: Command, finish: Finish): void {
  const config = group(
    program,
    'config',
    "path, show, get, set and check the configuration, and trust in a project's",
    'agent config set model openai/gpt-5.2',
  );
  const load = () => import('../commands/settings/configure.js');
  for (const [usage, description, example] of [
    ['path', 'where the files are', 'agent config path'],
    ['show', 'every value and where it came from', 'agent config show --json'],
    ['get <key>', 'one value', 'agent config get max_tool_turns'],
    ['set <key> <value>', 'change the user file, comments kept', 'agent config set ui.theme light'],
    ['check', 'read every file and say what is wrong', 'agent config check'],
  ] as const) {
    const [name = ''] = usage.split(' ');
    leaf(config, usage, description, example)
      .option('--json', 'JSON output')
      .action(async (...given: unknown[]) => {
        const command = given.at(-1) as Command;
        finish(await (await load()).configAction([name, ...command.args], command.optsWithGlobals()));
      });
  }
  leaf(config, 'trust', "asks about a project's settings that need your trust", 'agent config trust --list')
    .option('--list', 'the directories answered for')
    .option('--revoke', 'forget the answer for this directory')
    .option('--json', 'with --list: one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await import('../commands/settings/trust-project.js')).trustAction(command.optsWithGlobals()));
    });
}

function addUndo(program: Command, finish: Finish): void {
  const load = () => import('../commands/undo/undo.js');
  const withOptions = (command: Command): Command =>
    command
      .option('-r, --resume <session>', 'of this session; the newest of this directory without it')
      .option('-y, --yes', 'do it without asking');
  for (const [kind, description] of [
    ['undo', 'take back what the last call, or the one of an event, did to files'],
    ['redo', 'do again to files what was undone last'],
  ] as const) {
    withOptions(
      leaf(program, `${kind} [event]`, `${description}; \`all\` for every call`, `agent ${kind} 17 --yes`),
    ).action(async (event: string | undefined, _options: unknown, command: Command) => {
      finish(await (await load()).undoAction(kind, event ?? '', command.optsWithGlobals()));
    });
  }
  withOptions(
    leaf(
      program,
      'restore <file@event>',
      'bring a file back to what it was right after an event',
      'agent restore src/main.ts@17',
    ),
  ).action(async (target: string, _options: unknown, command: Command) => {
    finish(await (await load()).restoreAction(target, command.optsWithGlobals()));
  });
}

function addRest(program: Command, finish: Finish): void {
  const providers = group(
    program,
    'providers',
    'the providers known here and whether their keys are set; check one',
    'agent providers --json',
  ).option('--json', 'one JSON array');
  leaf(
    providers,
    'check <name>',
    'send one minimal request and say what works: auth, streaming, tools',
    'agent providers check openrouter',
  )
    .option('--json', 'one JSON array')
    .action(async (name: string, _options: unknown, command: Command) => {
      finish(
        await (await import('../commands/settings/list-providers.js')).checkProvider(name, command.optsWithGlobals()),
      );
    });
  providers.action(async (_options: unknown, command: Command) => {
    finish(await (await import('../commands/settings/list-providers.js')).listProviders(command.optsWithGlobals()));
  });
  leaf(program, 'models', 'the models known here, local servers included', 'agent models --provider ollama')
    .option('--json', 'one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await import('../commands/settings/list-models.js')).listModels(command.optsWithGlobals()));
    });
  leaf(program, 'doctor', 'checks this machine and says what to do about what is missing', 'agent doctor')
    .option('--json', 'one JSON array')
    .action(async (_options: unknown, command: Command) => {
      finish(await (await import('../commands/settings/doctor.js')).doctorAction(command.optsWithGlobals()));
    });
  leaf(
    program,
    'completion <shell>',
    'a completion script for bash, zsh or fish',
    'agent completion bash >> ~/.bashrc',
  ).action(async (shell: string) => {
    finish((await import('../commands/settings/complete-shell.js')).completionAction(shell, program));
  });
}

function addAbout(program: Command, finish: Finish): void {
  leaf(program, 'help [command...]', 'what a command does and takes', 'agent help sessions list').action(
    (words: string[]) => {
      commandOf(program, words).outputHelp();
      finish(exit.done);
    },
  );
  leaf(program, 'version', 'print the version', 'agent version').action(() => {
    print(`${version}\n`);
    finish(exit.done);
  });
}

function commandOf(program: Command, words: readonly string[]): Command {
  return words.reduce((above, word) => {
    const found = above.commands.find((command) => command.name() === word);
    if (found) return found;
    const names = above.commands.map((command) => command.name());
    const known = names.length === 0 ? '' : `${didYouMean(word, names)} Known: ${names.join(', ')}. `.trimStart();
    throw new CliError(
      exit.usage,
      `there is no command \`${words.join(' ')}\``,
      `${known}A prompt that begins with the name of a command goes behind --.`,
    );
  }, program);
}
