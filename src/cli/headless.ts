import type { Session } from '../agent/session.js';
import { CliError, exit } from '../commands/command.js';
import { type Event, knownEvent } from '../core/event.js';
import type { Fault } from '../core/provider.js';
import type { AgentEvent } from '../core/session-port.js';
import { didYouMean, escapedJson, firstLine, spelledLine } from '../core/text.js';
import type { EarlyFrame } from './early-frame.js';
import { type EndingSignal, onEndingSignal, turnExitCode } from './ending.js';
import type { RootOptions } from './options.js';
import { openOutput, outputIsTerminal, printError } from './print.js';
import { assemble, openRun } from './session/assemble.js';
import { eventNumber, type SessionChoice } from './session/find-session.js';
import { type Notice, readSettings } from './settings.js';
import { createUsageMeter, resultObject, streamLine, unreportedUsage } from './stream-json.js';
import { version } from './version.js';

const formats: readonly string[] = ['text', 'json', 'stream-json'] satisfies readonly OutputFormat[];

/** `agent` itself: the REPL on a terminal, one turn without one. Gives the exit code. */
export async function runChat(
  words: readonly string[],
  options: RootOptions,
  early: EarlyFrame | null,
): Promise<number> {
  const headless = options.print === true || !process.stdin.isTTY || !outputIsTerminal();
  const format = options.outputFormat;
  if (!formats.includes(format))
    throw new CliError(
      exit.usage,
      `--output-format: \`${format}\` is not a format`,
      `${didYouMean(format, formats)} Known: ${formats.join(', ')}`.trim(),
    );
  if (!headless) return await (await import('./repl/repl.js')).runRepl(words, options, early);
  const settings = await readSettings(options);
  const choice = sessionWish(options);
  const piped = process.stdin.isTTY ? '' : await readStdin(process.stdin, printError);
  const prompt = joinPrompt(words, piped);
  if (prompt === '')
    throw new CliError(
      exit.usage,
      'there is no prompt',
      'Give one as words or on standard input: agent -p "explain this".',
    );
  const run = await openRun(settings, options);
  try {
    const chat = await assemble(run, choice, false);
    try {
      return await runHeadless({
        session: chat.session,
        prompt,
        format: format as OutputFormat,
        verbose: options.verbose === true,
        notices: [...run.notices, ...chat.notices],
        toolNames: run.registry.list().map((tool) => tool.name),
        now: () => performance.now(),
      });
    } finally {
      await chat.close();
    }
  } finally {
    await run.close();
  }
}

function sessionWish(options: RootOptions): SessionChoice {
  if (options.resume === true)
    throw new CliError(
      exit.usage,
      '-r needs a session here, where none can be picked',
      'Give an id, a unique prefix of one, or a title: agent sessions list shows them.',
    );
  return {
    continueNewest: options.continue === true,
    resume: options.resume ?? null,
    fork: options.fork === true,
    ...eventNumber(options.at),
  };
}

export type OutputFormat = 'text' | 'json' | 'stream-json';

export interface HeadlessOptions {
  readonly session: Session;
  readonly prompt: string;
  readonly format: OutputFormat;
  readonly verbose: boolean;
  readonly toolNames: readonly string[];
  /** Said before the turn: notices of start-up. */
  readonly notices: readonly Notice[];
  readonly now: () => number;
}

/** One user turn without a terminal; gives the exit code. Source: contracts 4. */
export async function runHeadless(options: HeadlessOptions): Promise<number> {
  const { session, format } = options;
  const startedAt = options.now();
  let readerGone = false;
  const out = openOutput(() => {
    readerGone = true;
    session.interrupt();
  });
  const line = (value: unknown): void => {
    out.write(`${escapedJson(JSON.stringify(value))}\n`);
  };
  const meter = createUsageMeter();
  let signal: EndingSignal | null = null;
  onEndingSignal((name) => {
    signal ??= name;
    session.interrupt();
  });

  const { provider, model } = session.ref();
  if (format === 'stream-json')
    line({
      type: 'session',
      session_id: session.id,
      provider,
      model,
      cwd: session.cwd,
      tools: options.toolNames,
      version,
    });
  const toErrors = createErrorPrinter(options.verbose, format);
  const see = (event: AgentEvent): void => {
    const unreported = meter.see(event);
    toErrors(event);
    if (format !== 'stream-json') return;
    if (unreported) line(unreportedUsage);
    const value = streamLine(event);
    if (value) line(value);
  };
  session.subscribe(see);
  for (const notice of options.notices) see({ type: 'notice', ...notice });

  const end = await session.submit(options.prompt);
  const answer = end.text.trim();
  if (format === 'text' && answer !== '') out.write(`${answer}\n`);
  if (format !== 'text') line(resultObject(end, session.id, meter.sum(), options.now() - startedAt));
  if (end.fault) printError(describeFault(end.fault));
  await out.drained();
  return readerGone && !signal ? exit.done : turnExitCode(end, signal);
}

function describeFault({ code, message, hint }: Fault): string {
  return `agent: ${message}\n${hint ?? whatToDo[code]}\n`;
}

/** What to do about a failure whose provider said nothing better. */
const whatToDo: Readonly<Record<Fault['code'], string>> = {
  auth: 'Check the key; `agent providers` says which variable it comes from.',
  quota: 'Add credit at the provider, or choose another model.',
  rate_limited: 'Wait a moment and go on with `agent -c`, or choose another model.',
  bad_request: 'Check the model (`agent models`) and the settings (`agent config show`).',
  context_overflow: 'Send less at once, start a new session, or use a model with a larger window.',
  network: 'Check the network and the base URL, then go on with `agent -c`.',
  protocol: 'Check that the base URL is that of the API and speaks the wire of this provider (`provider_api`).',
  stream_incomplete: 'Go on with `agent -c`; `http.max_retries` and `http.idle_timeout_ms` say how long it is tried.',
  max_cost: 'Raise --max-cost to go on.',
  internal: 'This is a bug in agent. Run again with --debug for a stack trace.',
};

/** What goes to stderr: warnings and retries (in `stream-json` they are lines of it), and with `-v` one line per tool
 * call. */
function createErrorPrinter(verbose: boolean, format: OutputFormat): (event: AgentEvent) => void {
  const titles = new Map<string, string>();
  return (event) => {
    if (format !== 'stream-json') printTrouble(event);
    if (verbose && event.type === 'event') printCall(event.event, titles);
  };
}

function printTrouble(event: AgentEvent): void {
  if (event.type === 'notice' && event.level !== 'info') printError(`agent: ${event.message}\n`);
  if (event.type !== 'retry_scheduled') return;
  printError(
    `agent: ${event.reason.replace(/\.$/, '')}; trying again in ${(event.delayMs / 1000).toFixed(1)} s (${event.attempt} of ${event.maxRetries})\n`,
  );
}

function printCall(raw: Event, titles: Map<string, string>): void {
  const event = knownEvent(raw);
  if (event?.kind === 'tool_call') titles.set(event.data.id, event.content);
  if (event?.kind !== 'tool_result') return;
  const title = spelledLine(titles.get(event.data.tool_call_id) ?? event.data.name);
  printError(
    `${event.data.success ? '✔' : '✘'} ${title}: ${spelledLine(firstLine(event.content, 200))} (${event.data.duration_ms}ms)\n`,
  );
}

/** No model takes a prompt of this size; more is not kept in memory. */
const maxBytes = 32 * 1024 * 1024;

/** All of standard input as text; a `CliError` where it is longer than any prompt can be. After `noticeMs` without an
 * end it says on stderr what it waits for. */
export async function readStdin(
  input: NodeJS.ReadStream,
  notice: (text: string) => void,
  noticeMs = 2000,
): Promise<string> {
  const timer = setTimeout(() => {
    notice('agent: still reading standard input; it is not a terminal. Close it (or run with </dev/null) to go on.\n');
  }, noticeMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input) {
      const part = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
      bytes += part.length;
      if (bytes > maxBytes)
        throw new CliError(
          exit.usage,
          `standard input has more than ${maxBytes} bytes; no model takes that`,
          'Put it into a file and say where it is: the model reads what it needs.',
        );
      chunks.push(part);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EISDIR')) throw error;
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString('utf8').toWellFormed();
}

/** The prompt of a headless run: the words, and below a blank line what was piped in. */
export function joinPrompt(words: readonly string[], piped: string): string {
  return [words.join(' ').trim(), piped.trim() === '' ? '' : piped.replace(/\n+$/, '')]
    .filter((part) => part !== '')
    .join('\n\n');
}
