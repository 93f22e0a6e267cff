import { setTimeout as wait } from 'node:timers/promises';
import { findSession } from '../../cli/session/find-session.js';
import type { RootOptions } from '../../cli/options.js';
import { outputIsTerminal, print } from '../../cli/print.js';
import type { Event } from '../../core/event.js';
import { CliError, exit } from '../cli-error.js';
import { entriesOf, type Entry } from '../sessions/export-entries.js';
import { withStore } from './record-opening.js';

type Options = RootOptions & {
  readonly speed?: string;
  readonly instant?: boolean;
  readonly verify?: boolean;
  readonly json?: boolean;
};

/** Nobody waits longer for the next line, however long it took then. */
const longestWaitMs = 3000;
const maxResultLines = 10;

/** `agent replay <session>`: shows a session again, without model or tools, as fast as it was or `--speed` times
 * that. */
export async function replaySession(id: string, options: Options): Promise<number> {
  const speed = Number(options.speed ?? 1);
  if (!(speed > 0))
    throw new CliError(
      exit.usage,
      `--speed: \`${options.speed ?? ''}\` is not a number above 0`,
      'For example --speed 4, or --instant.',
    );
  return await withStore(options, async (store, setup) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (options.verify)
      return await (await import('./replay-verify.js')).verifyReplay(setup, store, row, events, options.json === true);
    return await show(events, options.instant === true || !outputIsTerminal() ? Infinity : speed);
  });
}

async function show(events: readonly Event[], speed: number): Promise<number> {
  let before: number | null = null;
  for (const entry of entriesOf(events)) {
    const at = finishedAt(entry);
    if (speed !== Infinity && before !== null) await wait(Math.min(longestWaitMs, Math.max(0, at - before) / speed));
    before = at;
    print(`${lines(entry).trimEnd()}\n\n`);
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
