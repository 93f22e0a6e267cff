import { existsSync } from 'node:fs';
import type { Assembly, Run } from '../../app/create-session.js';
import { CliError, exit } from '../../kernel/console/command.js';
import { keepSetting } from '../../kernel/console/keep-setting.js';
import type { Notice } from '../../kernel/console/run-settings.js';
import {
  type CommandContext,
  isCommandLine,
  type Picking,
  type SlashCommand,
  type TypedCommand,
  typedCommand,
  unknownCommand,
} from '../../kernel/console/slash-command.js';
import type { Fault } from '../../kernel/core/provider.js';
import type { TurnEnd } from '../../kernel/core/session-port.js';
import { missingPart } from '../../kernel/core/missing-part.js';
import { onEndingSignal } from '../../ui/ending.js';
import { type CommandSessions, replCommands } from '../repl/session-commands.js';
import { createThemes } from '../repl/terminal-theme.js';
import type { Ask } from './headless.js';

/** The origin of a prompt: typed on the command line, or read from standard input. */
export type PromptOrigin = 'typed' | 'input';

/** The slash commands of a run without a screen. */
export interface SlashTurns {
  /** Returns how the command that `prompt` names is run, as a turn; null for a message, a command in a file, a skill, or
   * the prompt of a server. Throws a `CliError` (2) for a command that does not run here: the model could do nothing with
   * it. `ask` runs what the command sends to the model. */
  find(prompt: string, origin: PromptOrigin, ask: Ask): Promise<(() => Promise<TurnEnd>) | null>;
  /** Returns the names of those that run here, and of commands in files, skills and the prompts of servers. */
  names(origin: PromptOrigin): Promise<readonly string[]>;
}

export function openSlashTurns(run: Run, chat: Assembly): SlashTurns {
  const commands = replCommands(run, oneSession(run, chat), {
    keep: (key, value) => keepSetting(run.settings, run.settings.ephemeral, key, value),
    menus: [],
    themes: createThemes(run.settings),
  })();
  return {
    find: async (prompt, origin, ask) => {
      const typed = isCommandLine(prompt) ? typedCommand(prompt, commands) : null;
      if (typed === null || (await run.parts.expand(prompt)) !== null) return null;
      // `/tmp is full` is a message.
      if (typed.command === undefined && existsSync(`/${typed.name}`)) return null;
      const command = await usableCommand(typed, origin, { run, chat, commands });
      return async () => await runAsTurn(command, typed.argument, chat, ask);
    },
    names: async (origin) =>
      (await knownCommands(run, commands))
        .filter(({ group, isHarmless }) => origin === 'typed' || group === undefined || isHarmless === true)
        .map(({ name }) => name),
  };
}

/** Returns the sessions of a run that has one. */
function oneSession({ store }: Run, chat: Assembly): CommandSessions {
  let { title } = chat.row;
  return {
    ready: () => Promise.resolve(),
    current: () => chat,
    title: () => title,
    rename: async (given) => {
      const { session, secrets } = chat;
      if ((await store.session(session.id)) === null)
        throw new CliError(exit.usage, 'a session without messages has no title', 'Name the session with -c or -r.');
      title = secrets.text(given);
      await store.update(session.id, { title });
    },
    open: () => Promise.reject(new CliError(exit.usage, 'another session cannot be opened here', 'Use -r <session>.')),
  };
}

interface Scene {
  readonly run: Run;
  readonly chat: Assembly;
  readonly commands: readonly SlashCommand[];
}

async function usableCommand(typed: TypedCommand, origin: PromptOrigin, scene: Scene): Promise<SlashCommand> {
  const { name, command } = typed;
  if (command === undefined) throw await unknownHere(typed, scene);
  const instead = command.leaves ? 'Without the screen there is nothing to leave.' : command.needsScreen;
  if (instead !== undefined)
    throw new CliError(exit.usage, `/${name} works only in the REPL: it needs the screen`, instead);
  if (origin === 'input' && command.isHarmless !== true)
    throw new CliError(
      exit.usage,
      `/${name} is not run from standard input, because it may change settings or files`,
      `Give it as an argument: agent -p "/${name}". For a message that begins like a command, write other words first.`,
    );
  return command;
}

async function unknownHere(typed: TypedCommand, { run, chat, commands }: Scene): Promise<CliError> {
  const known = await knownCommands(run, commands);
  const [, ...nearest] = (unknownCommand(typed, known).split('\n', 1)[0] ?? '').split(/(?<=\.) /);
  const works = [...new Set(known.map(({ name }) => `/${name}`))].join(', ');
  // A command of a project that is not trusted is not there, either.
  const warnings = chat.notices.filter(isWarning).map(({ message }) => `${message}\n`);
  const hint = `${warnings.join('')}${nearest.join(' ')} With -p these work: ${works}.`.trim();
  return new CliError(exit.usage, `there is no command /${typed.name}`, hint);
}

/** Returns the commands that need no screen, and those in files, skills and the prompts of servers, without a group. */
async function knownCommands(
  { parts }: Pick<Run, 'parts'>,
  commands: readonly SlashCommand[],
): Promise<readonly SlashCommand[]> {
  const usable = commands.filter(({ leaves, needsScreen }) => leaves !== true && needsScreen === undefined);
  const written = (await parts.menus()).flatMap((menu) => menu.commands());
  return [...usable, ...written.map(({ name, description }) => ({ name, description, run: () => Promise.resolve() }))];
}

const isWarning = ({ level }: Notice): boolean => level === 'warn';

/** Holds the reports of a command so far. */
interface Outcome {
  readonly output: string[];
  readonly warnings: string[];
  failure: Fault | null;
  /** Messages for the model. */
  readonly messages: string[];
}

async function runAsTurn(command: SlashCommand, argument: string, chat: Assembly, ask: Ask): Promise<TurnEnd> {
  const { session } = chat;
  const outcome: Outcome = { output: [], warnings: [], failure: null, messages: [] };
  const said: string[] = [];
  const unsubscribe = session.subscribe((event) => {
    if (event.type === 'notice' && event.level === 'info') said.push(event.message);
  });
  const stop = new AbortController();
  onEndingSignal(() => {
    stop.abort();
  });
  const stopped = new Promise<void>((resolve) => {
    stop.signal.addEventListener('abort', () => {
      resolve();
    });
  });
  const context = createContext(command, outcome, stop.signal);
  await Promise.race([stopped, command.run(argument, context)]).catch((error: unknown) => {
    outcome.failure ??= faultOf(error);
  });
  unsubscribe();
  // A command prints its output, or the session says what was done.
  const text = (outcome.output.length === 0 ? said : outcome.output).join('\n');
  const turn = { turns: 0, toolCalls: 0, denials: [], text };
  if (stop.signal.aborted) return { ...turn, status: 'interrupted' };
  if (outcome.failure === null && turn.text === '' && outcome.messages.length === 0)
    outcome.failure = warningsFault(outcome.warnings);
  else for (const message of outcome.warnings) session.notify({ level: 'warn', code: 'command', message });
  if (outcome.failure !== null) return { ...turn, status: 'failed', fault: outcome.failure };
  let end: TurnEnd = { ...turn, status: 'completed' };
  for (const message of outcome.messages) end = await ask(message);
  return end;
}

/** A command that only warned has not done what was asked. */
function warningsFault(warnings: readonly string[]): Fault | null {
  return warnings.length === 0 ? null : { code: 'bad_request', ...sentence(warnings.join('\n')), hint: unchanged };
}

const unchanged = 'The conversation is unchanged. Continue it with: agent -c';

/** Errors of the command line begin with a small letter and end without a full stop. */
function sentence(text: string): { readonly message: string } {
  const isWord = /^[A-Z][a-z]*\b/.test(text);
  return {
    message: `${isWord ? text.slice(0, 1).toLowerCase() : text.slice(0, 1)}${text.slice(1).replace(/\.$/, '')}`,
  };
}

function faultOf(error: unknown): Fault {
  if (error instanceof CliError) return { code: 'bad_request', message: error.message, hint: error.hint };
  const missing = missingPart(error);
  if (missing) return { code: 'bad_request', ...missing };
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

async function listedItems<T>({ title, items, more, current }: Picking<T>, usage: string): Promise<string> {
  const later = await more?.found;
  const rows = [...items, ...(later?.items ?? [])].map(({ label, detail = '', value }) =>
    `${value === current ? '* ' : '  '}${label}  ${detail}`.trimEnd(),
  );
  return [`${title}:`, ...rows, later?.said ?? '', usage].filter((row) => row !== '').join('\n');
}

/** The screen of a command where there is none: its lines are the output of the turn. A list to choose from is printed. A
 * question that needs an answer fails the command. */
function createContext(command: SlashCommand, outcome: Outcome, signal: AbortSignal): CommandContext {
  const { name, argument } = command;
  const fail = (message: string, hint: string): null => {
    outcome.failure ??= { code: 'bad_request', message, hint };
    return null;
  };
  return {
    signal,
    keyOf: () => null,
    print: (text) => {
      outcome.output.push(text);
    },
    notice: (level, message, fault) => {
      if (level === 'info') outcome.output.push(message);
      else if (level === 'warn' && fault === undefined) outcome.warnings.push(message);
      else outcome.failure ??= { code: 'bad_request', hint: unchanged, ...fault, ...sentence(message) };
    },
    pick: async (picking) => {
      if (picking.confirms) return fail(`/${name} asks for a yes, which needs the screen`, 'Run it in the REPL.');
      const usage = argument === undefined ? '' : `Choose one with: agent -p "/${name} ${argument}"`;
      outcome.output.push(picking.listing ?? (await listedItems(picking, usage)));
      return null;
    },
    ask: () => Promise.resolve(fail(`/${name} asks a question, which needs the screen`, 'Run it in the REPL.')),
    hidden: () => Promise.resolve(fail(`/${name} asks for a secret, which needs the screen`, 'Run it in the REPL.')),
    page: (_title, text) => {
      outcome.output.push(text);
      return Promise.resolve(null);
    },
    openEditor: () => Promise.resolve(null),
    box: async ({ content, whole }) => {
      await whole;
      outcome.output.push(content().text);
      return null;
    },
    setDraft: (text) => {
      outcome.output.push(text);
    },
    send: (text) => {
      outcome.messages.push(text);
    },
    copy: () => Promise.resolve(null),
    setTheme: () => false,
    attach: () => {
      /* `open` has refused it. */
    },
    refresh: () => {
      /* There is no status line. */
    },
    exit: () => {
      /* The run ends after the command. */
    },
    detach: () => Promise.resolve(null),
  };
}
