import type { Readable } from 'node:stream';
import { CliError, exit } from '../../kernel/console/command.js';
import { didYouMean, withoutEnd } from '../../kernel/core/text.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import type { FrontParts } from '../headless/output-dialect.js';
import type { EarlyFrame } from '../../ui/early-frame.js';
import { type Ask, createTurnLines, type OutputFormat, runHeadless, type TurnLines } from '../headless/headless.js';
import { askTowardsGoal, goalOptions, goalRequest, missingPrompt } from '../headless/given-goal.js';
import { keptWait, longestLimitWait } from '../../kernel/console/limit-option.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { outputIsTerminal, printError } from '../../kernel/console/print.js';
import { type Assembly, createAgentSession, openRun, type Run, sessionHost } from '../../app/create-session.js';
import { backgroundAgents } from '../../kernel/console/background-agents-port.js';
import { goals, type GoalRequest } from '../../kernel/console/goal-port.js';
import { isCommandLine } from '../../kernel/console/slash-command.js';
import { eventNumber } from '../../app/find-session.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import { promptWithImages } from '../../kernel/console/pictures.js';
import { readSettings, workingDirectory } from '../../app/settings.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { repeatableLine } from '../../app/repeatable-line.js';
import { withGivenSettings } from '../../app/given-objects.js';
import { features, provided } from '../../app/features.js';
import { startedDetached } from './detached-start.js';

/** Loads the formats of headless runs besides plain text and JSON. */
const loadStreams = () => import('../headless/stream-json.js');
/** Loads what runs slash commands without a screen. */
const loadSlashTurns = () => import('../headless/slash-turn.js');

const formats: readonly string[] = ['text', 'json', 'stream-json'] satisfies readonly OutputFormat[];
const inputFormats: readonly string[] = ['text', 'stream-json'];

/** Runs `agent` itself, where a feature has it begin (a worktree). Returns the exit code. */
export async function runConversation(
  words: readonly string[],
  given: RootOptions,
  early: EarlyFrame | null,
): Promise<number> {
  const cwd = workingDirectory(given.cwd);
  const commandLine = await repeatableLine(given, words, cwd);
  const { options, unused } = await withGivenSettings(commandLine ? { ...given, commandLine } : given, cwd);
  if (unused.length > 0)
    printError(`agent: --settings: ${unused.join(', ')} ${unused.length === 1 ? 'has' : 'have'} no effect here.\n`);
  for (const feature of features) {
    const entered = await feature.enter?.(options, { cwd: workingDirectory(options.cwd), env: process.env });
    if (!entered) continue;
    const code = await runFront(words, entered.options, early);
    printError(await entered.farewell());
    return code;
  }
  if (options.worktree !== undefined)
    throw new CliError(
      exit.usage,
      '--worktree: this program was built without worktrees',
      'Start agent inside a worktree instead.',
    );
  return await runFront(words, options, early);
}

/** The REPL on a terminal, one turn without one. */
async function runFront(words: readonly string[], options: RootOptions, early: EarlyFrame | null): Promise<number> {
  const background = await runBehind(words, options);
  if (background !== null) return background;
  const byLines = readsLines(options);
  const headless = options.print === true || byLines || !process.stdin.isTTY || !outputIsTerminal();
  const format = options.outputFormat;
  if (!formats.includes(format))
    throw new CliError(
      exit.usage,
      `--output-format: \`${format}\` is not a format`,
      `${didYouMean(format, formats)} Known: ${formats.join(', ')}`.trim(),
    );
  if (byLines && (options.next ?? []).length > 0)
    throw new CliError(exit.usage, '--next: not with --input-format stream-json', 'Send each prompt as a line.');
  if (byLines)
    return await (await loadStreams()).converse(words, options, await readSettings(options), chosenSession(options));
  if (!headless) refuseHeadlessOptions(options);
  if (!headless) return await (await import('./repl.js')).runRepl(words, options, early);
  return await runOneTurn(words, options, format as OutputFormat);
}

/** Starts a session in the background, or is the process of one. Returns the exit code; null where neither is meant. */
async function runBehind(words: readonly string[], options: RootOptions): Promise<number | null> {
  const report = startedDetached();
  if (report) return await (await import('./repl.js')).runRepl(words, options, null, report);
  if (options.bg !== true) return null;
  return await (await import('./detached-code.js')).runInBackground(words, options);
}

/** `agent attach`: shows a session of another process, and afterwards what the user opens there. */
export async function runAttached(options: RootOptions, session: string | null): Promise<number> {
  const after = await (await import('./attach-running.js')).attachSession(options, session);
  return 'exitCode' in after ? after.exitCode : await (await import('./repl.js')).runRepl([], after.options, null);
}

/** Throws a `CliError` (2) for an option that the REPL would ignore. */
function refuseHeadlessOptions(options: RootOptions): void {
  const { jsonSchema, output, outputFormat, dialect, waitForLimit, next = [] } = options;
  if (goalOptions(options).length > 0)
    throw new CliError(
      exit.usage,
      `${goalOptions(options).join(', ')}: only in headless mode`,
      "Add -p, or type /goal in the REPL: /goal all tests pass --check 'npm test'.",
    );
  if (waitForLimit !== undefined && waitForLimit !== keptWait)
    throw new CliError(
      exit.usage,
      '--wait-for-limit: only in headless mode',
      'Add -p. The REPL asks, or waits by itself with --set limits.wait=always.',
    );
  const given = [
    ...(next.length === 0 ? [] : ['--next']),
    ...(jsonSchema === undefined ? [] : ['--json-schema']),
    ...(output === undefined ? [] : ['--output']),
    ...(outputFormat === 'text' ? [] : [`--output-format ${outputFormat}`]),
    ...(dialect === undefined ? [] : ['--dialect']),
  ];
  if (given.length > 0)
    throw new CliError(exit.usage, `${given.join(', ')}: only in headless mode`, 'Add -p and the prompt.');
}

function readsLines({ inputFormat: format = 'text', permissionPromptTool }: RootOptions): boolean {
  if (permissionPromptTool !== undefined && permissionPromptTool !== 'stdio')
    throw new CliError(
      exit.usage,
      `--permission-prompt-tool: \`${permissionPromptTool}\` is not known`,
      'Use stdio: permission prompts go to the program that sends the lines.',
    );
  if (!inputFormats.includes(format))
    throw new CliError(
      exit.usage,
      `--input-format: \`${format}\` is not a format`,
      `${didYouMean(format, inputFormats)} Known: ${inputFormats.join(', ')}`.trim(),
    );
  if (permissionPromptTool !== undefined && format !== 'stream-json')
    throw new CliError(
      exit.usage,
      '--permission-prompt-tool needs --input-format stream-json',
      'Answers to permission prompts come as lines on standard input: add ' +
        '--input-format stream-json --output-format stream-json.',
    );
  return format === 'stream-json';
}

/** Opens the session, hands it to the front without a terminal and closes it. */
async function runOneTurn(words: readonly string[], options: RootOptions, format: OutputFormat): Promise<number> {
  const settings = await readSettings(options);
  const choice = chosenSession(options);
  const prompt = await readPrompt(words, options, settings);
  const request = goalRequest(options);
  longestLimitWait(options);
  if (prompt === '' && request === null && !choice.continueNewest && choice.resume === null) throw missingPrompt();
  const parts = await frontParts(options, settings);
  const run = await openRun(settings, options);
  try {
    const withImages = await firstMessage(run, prompt, request);
    const chat = await createAgentSession(run, choice, false);
    const { session } = chat;
    try {
      const work = { request, prompt, continues: options.waitForLimit !== undefined };
      const towardsGoal = askTowardsGoal(session, run.toolbox.parts.find(goals), work);
      const pursue: Ask = async (text) => {
        const end = await towardsGoal(text);
        return { ...end, ...(await run.toolbox.parts.find(backgroundAgents)?.settle(session, end)) };
      };
      const ask: Ask = parts ? parts.ask(session, pursue) : pursue;
      const isPiped = joinPrompt(words, '') === '';
      const prompts: readonly Prompted[] = [
        { text: prompt, sent: withImages, isPiped },
        ...(options.next ?? []).map((text) => ({ text, sent: text, isPiped: false })),
      ];
      return await runPrompts(prompts, { run, chat, ask, parts, format });
    } finally {
      await chat.close();
    }
  } finally {
    await run.close();
  }
}

/** Returns the prompt with the images of the command line. Where there is none, images go with the condition of a goal. */
async function firstMessage({ pictures, options }: Run, prompt: string, goal: GoalRequest | null): Promise<string> {
  const { image: images = [] } = options;
  const text = prompt === '' && images.length > 0 ? (goal?.condition ?? '') : prompt;
  return await promptWithImages(provided, pictures, images, text);
}

/** Returns the words and what standard input has. */
async function readPrompt(words: readonly string[], { goal }: RootOptions, { log }: Settings): Promise<string> {
  const hasPrompt = joinPrompt(words, '') !== '' || goal !== undefined;
  const reading = { notice: printError, schedule: sessionHost(log).schedule, hasPrompt };
  return joinPrompt(words, process.stdin.isTTY ? '' : await readStdin(process.stdin, reading));
}

interface PromptScene {
  readonly run: Run;
  readonly chat: Assembly;
  readonly ask: Ask;
}

/** A prompt as it was given, and with its images. */
interface Prompted {
  readonly text: string;
  readonly sent: string;
  readonly isPiped: boolean;
}

/** Runs a turn for each prompt, and ends with the first that does not end well. Returns its exit code. */
async function runPrompts(
  prompts: readonly Prompted[],
  { parts, format, ...scene }: PromptScene & { readonly parts: FrontParts | null; readonly format: OutputFormat },
): Promise<number> {
  const { run, chat, ask } = scene;
  const { session } = chat;
  const lines = await linesOfTurns(run, chat, parts);
  let code: number = exit.done;
  // A command that does not run here ends the run before anything is sent.
  const commands: (Ask | null)[] = [];
  for (const prompt of prompts) commands.push(await commandOf(prompt, scene));
  for (const [index, prompt] of prompts.entries()) {
    const command = commands[index] ?? null;
    code = await runHeadless({
      session,
      prompt: prompt.sent,
      save: chat.save,
      ask: command === null ? ask : (parts?.keeping(command) ?? command),
      format,
      lines: lines(),
      verbose: run.options.verbose === true,
      notices: index === 0 ? [...run.notices(), ...chat.notices] : [],
    });
    if (code !== exit.done) break;
  }
  await parts?.keep();
  return code;
}

/** Returns what makes the lines of a turn. */
async function linesOfTurns(run: Run, chat: Assembly, parts: FrontParts | null): Promise<() => TurnLines> {
  const { session } = chat;
  const toolNames = run.toolbox.registry.list().map((tool) => tool.name);
  const turn = { session, toolNames, directories: run.policy.directories, now: () => performance.now() };
  if (parts === null) return () => createTurnLines(turn);
  const commands = async () => await (await loadSlashTurns()).openSlashTurns(run, chat).names('typed');
  const offers = await parts.offers(run, commands);
  return () => parts.lines(turn, run, offers);
}

/** Returns the slash command that `prompt` names; null for a message. Throws a `CliError` (2) for one that does not run
 * here. */
async function commandOf({ text, isPiped }: Prompted, { run, chat, ask }: PromptScene): Promise<Ask | null> {
  if (!isCommandLine(text)) return null;
  const turns = (await loadSlashTurns()).openSlashTurns(run, chat);
  const command = await turns.find(text, isPiped ? 'input' : 'typed', ask);
  if (command !== null && run.options.goal !== undefined)
    throw new CliError(exit.usage, '--goal: the prompt is a slash command', 'Give the prompt as a message.');
  if (command !== null && run.options.jsonSchema !== undefined)
    throw new CliError(
      exit.usage,
      '--json-schema: the output of a slash command is text',
      'Use --output-format json, or leave out --json-schema.',
    );
  return command;
}

/** Loads what only some runs ask for. */
async function frontParts(options: RootOptions, settings: Settings): Promise<FrontParts | null> {
  if (options.dialect === undefined && options.jsonSchema === undefined && options.output === undefined) return null;
  return await (await loadStreams()).openFrontParts(options, settings);
}

function chosenSession(options: RootOptions): SessionChoice {
  if (options.resume === true)
    throw new CliError(
      exit.usage,
      '-r needs a session: there is no terminal to pick one in',
      'Give an id, a unique prefix of one, or a title: agent sessions list shows them.',
    );
  return {
    continueNewest: options.continue === true,
    resume: options.resume ?? null,
    fork: options.fork === true,
    ...eventNumber(options.at),
  };
}

/** No model takes a longer prompt, so no more than this is held in memory. */
const maxBytes = 32 * 1024 * 1024;

const waitNoticeMs = 2000;
const longestSilenceMs = 3000;

export interface StdinReading {
  readonly notice: (text: string) => void;
  readonly schedule: Schedule;
  /** There is a prompt without it: standard input that is silent and stays open is not waited for. */
  readonly hasPrompt: boolean;
}

/** Reads all of standard input as text. Rejects with a `CliError` where it is longer than any prompt can be. Says on
 * stderr that it waits for the end, or that it no longer does. Source: contracts 8 and 10, "Standard input". */
export async function readStdin(input: Readable, reading: StdinReading): Promise<string> {
  const { notice, schedule, hasPrompt } = reading;
  const cancelNotice = hasPrompt
    ? () => undefined
    : schedule(() => {
        notice(
          'agent: still reading standard input; it is not a terminal. Close it (or run with </dev/null) to continue.\n',
        );
      }, waitNoticeMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  const source = input[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await nextWithin(source, hasPrompt ? schedule : null);
      if (next === 'silent') {
        notice(silenceText(bytes));
        input.destroy();
        break;
      }
      if (next.done === true) break;
      const part = Buffer.isBuffer(next.value) ? next.value : Buffer.from(String(next.value));
      bytes += part.length;
      if (bytes > maxBytes) throw tooMuchInput();
      chunks.push(part);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EISDIR')) throw error;
  } finally {
    cancelNotice();
  }
  return Buffer.concat(chunks).toString('utf8').toWellFormed();
}

/** Waits for the next chunk, for `longestSilenceMs` at most where there is a `schedule`. */
async function nextWithin<T>(
  source: AsyncIterator<T>,
  schedule: Schedule | null,
): Promise<IteratorResult<T> | 'silent'> {
  const next = source.next();
  if (schedule === null) return await next;
  let cancel = (): void => undefined;
  const silence = new Promise<'silent'>((resolve) => {
    cancel = schedule(() => {
      resolve('silent');
    }, longestSilenceMs);
  });
  next.catch(() => undefined); // a chunk that is not waited for
  try {
    return await Promise.race([next, silence]);
  } finally {
    cancel();
  }
}

function silenceText(bytes: number): string {
  const used =
    bytes === 0
      ? 'sent nothing for 3 s and is still open; it is ignored'
      : `sent nothing more for 3 s and is still open; its first ${bytes} bytes are used, the rest is ignored`;
  return `agent: standard input ${used}. Close it (or run with </dev/null) to avoid the wait.\n`;
}

function tooMuchInput(): CliError {
  return new CliError(
    exit.usage,
    `standard input has more than ${maxBytes} bytes, too many for any model`,
    'Save it to a file and give its path in the prompt: the model reads what it needs.',
  );
}

/** Returns the prompt of a headless run: the words, a blank line, and the text from standard input. */
export function joinPrompt(words: readonly string[], piped: string): string {
  return [words.join(' ').trim(), piped.trim() === '' ? '' : withoutEnd(piped, '\n')]
    .filter((part) => part !== '')
    .join('\n\n');
}
