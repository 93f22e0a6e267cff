import { setTimeout as wait } from 'node:timers/promises';
import type { Event } from '../../core/event.js';
import { CliError, exit } from '../cli-error.js';
import type { CommandLine, Printer, Verb } from '../command.js';
import { entriesOf, type Entry } from '../sessions/export-entries.js';
import { findSession } from '../sessions/stored-session.js';
import { verifyReplay } from './replay-verify.js';

interface Options {
  readonly speed?: string;
  readonly instant?: boolean;
  readonly verify?: boolean;
  readonly json?: boolean;
}

/** Nobody waits longer for the next line, however long it took then. */
const longestWaitMs = 3000;
const maxResultLines = 10;

export const replay: Verb = {
  line: {
    example: 'agent replay 0198 --speed 4',
    options: (command) =>
      command
        .option('--speed <n>', 'so many times as fast as it was', '1')
        .option('--instant', 'without waiting')
        .option(
          '--verify',
          'run its file and search calls again in a scratch copy of its directory and say where results differ',
        )
        .option('--json', 'with --verify: one JSON array'),
    run: (line, [id = ''], options: Options) => replaySession(line, id, options),
  },
};

/** Shows a session again, without model or tools, as fast as it was or `--speed` times that. */
async function replaySession(line: CommandLine, id: string, options: Options): Promise<number> {
  const speed = Number(options.speed ?? 1);
  if (!(speed > 0))
    throw new CliError(
      exit.usage,
      `--speed: \`${options.speed ?? ''}\` is not a number above 0`,
      'For example --speed 4, or --instant.',
    );
  const { out } = line;
  return await line.withStore(async ({ store }) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (options.verify) {
      return await verifyReplay(line, { row, events, blob: (sha256) => store.blob(sha256) }, options.json === true);
    }
    return await show(out, events, options.instant === true || !out.isTerminal ? Infinity : speed);
  });
}

async function show(out: Printer, events: readonly Event[], speed: number): Promise<number> {
  let before: number | null = null;
  for (const entry of entriesOf(events)) {
    const at = finishedAt(entry);
    if (speed !== Infinity && before !== null) await wait(Math.min(longestWaitMs, Math.max(0, at - before) / speed));
    before = at;
    out.print(`${lines(entry).trimEnd()}\n\n`);
  }
  return exit.done;
}

/** A call is shown with its result, so when that came. */
function finishedAt(entry: Entry): number {
  return entry.type === 'call' ? entry.at + (entry.result?.durationMs ?? 0) : entry.at;
}

function lines(entry: Entry): string {
  switch (entry.type) {
    case 'system':
      return `(system prompt, ${entry.text.split('\n').length} lines)`;
    case 'user':
      return `❯ ${entry.text}`;
    case 'note':
    case 'assistant':
      return entry.text;
    case 'call':
      return callLines(entry);
    case 'shell':
      return `!! ${entry.command}\n${indented(entry.output)}`;
    case 'event':
      return `(${entry.kind}: ${entry.text})`;
    default:
      return entry satisfies never;
  }
}

function callLines({ summary, result, decision }: Extract<Entry, { type: 'call' }>): string {
  const title = `${result === null ? '?' : result.success ? '✔' : '✘'} ${summary}${decision === null ? '' : `  [${decision}]`}`;
  return result === null
    ? title
    : `${title}\n${indented(`${result.summary} (${result.durationMs} ms)`)}\n${indented(result.diff ?? result.output)}`;
}

function indented(text: string): string {
  const all = text.trimEnd().split('\n');
  const more = all.length - maxResultLines;
  return [...all.slice(0, maxResultLines), ...(more > 0 ? [`… ${more} more line${more === 1 ? '' : 's'}`] : [])]
    .map((line) => `    ${line}`)
    .join('\n');
}
